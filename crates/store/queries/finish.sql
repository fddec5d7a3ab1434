-- Ends one sealed or cancelled batch if it has no job left. No counters: closed and nothing left to do is done. The look for a job is ordered and limited, so
-- that it stays one look at the key of job: "not exists" may be planned as a walk through all jobs. It is kept from now on. $1 batch.
update batch b
set state = case b.state when 2 then 3 else 5 end, ended_at = now(),
    expires_at = now() + case b.state when 2 then b.keep else b.keep_cancelled end
where b.id = $1 and b.state in (2, 4) and (select j.lo from job j where j.batch_id = b.id order by j.lo limit 1) is null
returning b.id, b.name, b.state
