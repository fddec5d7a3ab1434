-- Keeps a job from everyone until its lease, set anew, has run out, and blames nobody for it. Fenced like a completion.
-- $1 worker, $2 seconds, $3 batch, $4 lo, $5 attempt.
update job
set started = false, lease_until = now() + make_interval(secs => $2)
where batch_id = $3 and lo = $4 and attempt = $5 and owner = $1
