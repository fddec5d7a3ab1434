-- Ends the sealed batches that have no job left; $1 names one, null means any. No counters: closed and nothing left to do is done.
update batch b
set state = 3, ended_at = now()
where b.state = 2
    and ($1::bigint is null or b.id = $1)
    and not exists (select 1 from job j where j.batch_id = b.id)
returning b.id, b.name
