-- Ends the sealed and the cancelled batches that have no job left, at most $1 of them. The look for a job is a limited sub-select, so that it stays
-- one look at the key of job for each batch: "not exists" is planned as a join that reads the whole of job.
update batch b
set state = case b.state when 2 then 3 else 5 end, ended_at = now()
where b.state in (2, 4)
    and b.id in (
        select s.id
        from batch s
        where s.state in (2, 4) and (select j.lo from job j where j.batch_id = s.id limit 1) is null
        limit $1
    )
    and not exists (select 1 from job j where j.batch_id = b.id)
returning b.id, b.name, b.state
