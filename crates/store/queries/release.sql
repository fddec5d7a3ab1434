-- Gives leases back untouched, to where the clock is now if it has gone beyond them. Fenced like a completion; the attempt stays. Workers are told.
-- $1 worker, $2 batches, $3 los, $4 attempts.
update job j
set owner = null, lease_until = null, started = false, running_placement_count = null, tag = greatest(j.tag, virtual_now(j.is_long))
from unnest($2::bigint[], $3::bigint[], $4::integer[]) as x (batch_id, lo, attempt)
where j.batch_id = x.batch_id and j.lo = x.lo and j.attempt = x.attempt and j.owner = $1
returning pg_notify('sudoku_job', case when j.is_long then 'long' else '' end)::text as notified
