-- Ends one sealed batch if it has no job left. No counters: closed and nothing left to do is done.
update batch b
set state = 3, ended_at = now()
where b.id = $1 and b.state = 2 and not exists (select 1 from job j where j.batch_id = b.id)
returning b.id, b.name
