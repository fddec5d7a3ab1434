-- Keeps a job from everyone until its lease, set anew, has run out, and blames nobody for it. Fenced like a completion; the attempt rises, so that
-- a heartbeat that is under way does not prolong it.
-- $1 worker, $2 seconds, $3 batch, $4 lo, $5 attempt.
update job
set started = false, running_placement_count = null, attempt = attempt + 1, lease_until = now() + make_interval(secs => $2)
where batch_id = $3 and lo = $4 and attempt = $5 and owner = $1
