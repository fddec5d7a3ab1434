-- Takes back the death of an owner that is alive after all, from all that is left of the range that it had leased.
-- $1 worker, $2 batch, $3 lo, $4 hi.
update job
set deaths = deaths - 1, dead_owners = array_remove(dead_owners, $1::uuid)
where batch_id = $2 and lo >= $3 and lo < $4 and $1::uuid = any (dead_owners)
