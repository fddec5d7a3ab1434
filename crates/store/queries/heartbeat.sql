-- Prolongs the worker's leases and says how far their searches are. What does not come back was lost: stop that job. The rows are locked in the order of their key, as by complete.sql.
-- $1 worker, $2 lease in seconds, $3 batches, $4 los, $5 attempts, $6 placements so far.
with held as materialized (
    select j.batch_id, j.lo, x.placements
    from unnest($3::bigint[], $4::bigint[], $5::integer[], $6::bigint[]) as x (batch_id, lo, attempt, placements)
    join job j on (j.batch_id, j.lo, j.attempt) = (x.batch_id, x.lo, x.attempt) and j.owner = $1
    order by j.batch_id, j.lo
    for update of j
)
update job j
set lease_until = now() + make_interval(secs => $2), running_placement_count = nullif(h.placements, 0)
from held h
where (j.batch_id, j.lo) = (h.batch_id, h.lo)
returning j.batch_id, j.lo, j.attempt
