-- Takes back the deaths of a worker that is alive after all, wherever its ranges have gone to meanwhile. What has none left waits with the others again, from
-- where the clock is. $1 worker.
update job j
set deaths = j.deaths - cardinality(array_positions(j.dead_owners, $1::uuid)), dead_owners = array_remove(j.dead_owners, $1::uuid),
    tag = greatest(j.tag, (select last_value from virtual_clock)), place = greatest(j.tag, (select last_value from virtual_clock)) - (j.tag - j.place)
where j.deaths > 0 and $1::uuid = any (j.dead_owners)
