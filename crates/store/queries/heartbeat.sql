-- Prolongs the worker's leases. What does not come back was lost: stop that job.
-- $1 worker, $2 lease in seconds, $3 batches, $4 los, $5 attempts.
update job j
set lease_until = now() + make_interval(secs => $2)
from unnest($3::bigint[], $4::bigint[], $5::integer[]) as x (batch_id, lo, attempt)
where j.batch_id = x.batch_id and j.lo = x.lo and j.attempt = x.attempt and j.owner = $1
returning j.batch_id, j.lo, j.attempt
