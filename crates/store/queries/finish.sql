-- Ends one sealed or cancelled batch if it has no job left. No counters: closed and nothing left to do is done.
update batch b
set state = case b.state when 2 then 3 else 5 end, ended_at = now()
where b.id = $1 and b.state in (2, 4) and not exists (select 1 from job j where j.batch_id = b.id)
returning b.id, b.name, b.state
