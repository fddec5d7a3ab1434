-- Takes back the deaths of a worker that is alive after all, wherever its ranges have gone to meanwhile. What has none left waits with the others again, from
-- where the clock is. In one order, and past what others hold: several may be alive after all, and each comes again. $1 worker.
with blamed as materialized (
    select batch_id, lo
    from job
    where deaths > 0 and $1::uuid = any (dead_owners)
    order by batch_id, lo
    for update skip locked
)
update job j
set deaths = j.deaths - cardinality(array_positions(j.dead_owners, $1::uuid)), dead_owners = array_remove(j.dead_owners, $1::uuid),
    tag = greatest(j.tag, virtual_now(j.is_long))
from (select batch_id, lo from blamed limit 1000) b
where (j.batch_id, j.lo) = (b.batch_id, b.lo)
