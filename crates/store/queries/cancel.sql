-- Begins to cancel a batch; says how it stood at that moment: puzzles in all, those with a result, those in the hands of workers. $1 batch.
with begun as (
    update batch
    set state = 4, expires_at = now() + keep_cancelled
    where id = $1 and state in (1, 2)
    returning id, part, puzzle_count
)
select
    b.puzzle_count,
    (select coalesce(sum(r.hi - r.lo), 0) from result r where r.part = b.part and r.batch_id = b.id)::bigint as "done!",
    (select coalesce(sum(j.hi - j.lo), 0) from job j where j.batch_id = b.id and j.started)::bigint as "held!"
from begun b
