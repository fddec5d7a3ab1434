-- Turns a leased job of a batch that is being cancelled into a CANCELLED range. Fenced like a completion.
-- $1 worker, $2 batch, $3 lo, $4 hi, $5 attempt.
with dropped as (
    delete from job j
    using batch b
    where b.id = j.batch_id and b.state = 4
        and j.batch_id = $2 and j.lo = $3 and j.hi = $4 and j.attempt = $5 and j.owner = $1
    returning j.part, j.batch_id, j.lo, j.hi, j.attempt
)
insert into result (part, batch_id, lo, hi, attempt, cancelled_count)
select part, batch_id, lo, hi, attempt, hi - lo from dropped
