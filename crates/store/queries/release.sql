-- Gives leases back untouched. Fenced like a completion; the attempt stays.
-- $1 worker, $2 batches, $3 los, $4 attempts.
update job j
set owner = null, lease_until = null, started = false
from unnest($2::bigint[], $3::bigint[], $4::integer[]) as x (batch_id, lo, attempt)
where j.batch_id = x.batch_id and j.lo = x.lo and j.attempt = x.attempt and j.owner = $1
