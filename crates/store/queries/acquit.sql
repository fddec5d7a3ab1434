-- Takes back the deaths of a worker that is alive after all, wherever its ranges have gone to meanwhile. $1 worker.
update job
set deaths = deaths - cardinality(array_positions(dead_owners, $1::uuid)), dead_owners = array_remove(dead_owners, $1::uuid)
where deaths > 0 and $1::uuid = any (dead_owners)
