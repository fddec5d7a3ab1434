-- Puts back the jobs whose lease has ended, at most $1 of them, and counts the death of their owner where they had been begun. The attempt stays: the next
-- claim raises it, so the late owner's completion finds no row.
with ended as materialized (
    select batch_id, lo
    from job
    where lease_until < now()
    order by lease_until
    limit $1
    for update skip locked
),
put_back as (
    update job j
    set owner = null, lease_until = null, started = false, deaths = j.deaths + case when j.started then 1 else 0 end
    from ended e
    where (j.batch_id, j.lo) = (e.batch_id, e.lo)
    returning j.batch_id, j.lo, j.hi, j.attempt
)
select
    batch_id as "batch_id!", lo as "lo!", hi as "hi!", attempt as "attempt!",
    pg_notify('sudoku_job', '')::text as notified
from put_back
