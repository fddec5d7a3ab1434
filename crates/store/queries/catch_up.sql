-- Brings jobs that were left behind the clock to where claims look: an append that took so long that the clock has gone on meanwhile, or an older program's. Their
-- head start is used up. $1 how far behind the clock claims look, $2 jobs at the most.
with late as materialized (
    select batch_id, lo
    from job
    where lease_until is null and deaths = 0 and not is_long and place < (select last_value - $1::bigint from virtual_clock)
    order by place
    limit $2
    for update skip locked
)
update job j
set tag = greatest(j.tag, (select last_value from virtual_clock)), head_start = 0
-- This limit is for the planner, which cannot know the other one: they are few.
from (select batch_id, lo from late limit 100) few
where (j.batch_id, j.lo) = (few.batch_id, few.lo)
