-- Ends the sealed and the cancelled batches that have no job left, at most $1 of them; see finish.sql. One look is enough: such a batch gets no job any more.
with done as materialized (
    select id
    from batch s
    where s.state in (2, 4) and (select j.lo from job j where j.batch_id = s.id order by j.lo limit 1) is null
    order by s.id
    limit $1
    for update skip locked
)
update batch b
set state = case b.state when 2 then 3 else 5 end, ended_at = now(),
    expires_at = now() + case b.state when 2 then b.keep else b.keep_cancelled end
from done d
where b.id = d.id
returning b.id, b.name, b.state
