-- As claim.sql, for the jobs that a death is blamed on. Not one statement for both: a plan that does not know which are wanted can use neither index. They run out of
-- turn, so the clock stays.
-- $1 jobs at the most, $2 worker, $3 lease in seconds.
with first_ready as materialized (
    select batch_id, lo
    from job
    where lease_until is null and deaths > 0
    order by place, batch_id, lo
    limit $1
    for update skip locked
),
leased as (
    update job j
    set owner = $2, lease_until = now() + make_interval(secs => $3), attempt = j.attempt + 1, started = true
    -- This limit is for the planner, which cannot know the other one: they are few.
    from (select batch_id, lo from first_ready limit 32) f
    where (j.batch_id, j.lo) = (f.batch_id, f.lo)
    returning j.batch_id, j.lo, j.hi, j.chunk_lo, j.part, j.attempt, j.place
)
select
    l.batch_id as "batch_id!", l.lo as "job_lo!", l.hi as "job_hi!", l.attempt as "attempt!", l.place as "place!",
    b.placement_limit as "placement_limit!", b.puzzle_cost as "puzzle_cost!", b.state in (4, 5) as "cancelled!",
    p.lo as "piece_lo?", p.hi as "piece_hi?", p.format as "format?", p.data as "data?"
from leased l
join batch b on b.id = l.batch_id
left join payload p
    on (p.part, p.batch_id, p.chunk_lo) = (l.part, l.batch_id, l.chunk_lo) and p.lo < l.hi and p.hi > l.lo
