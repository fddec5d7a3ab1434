-- Tells workers of the jobs that wait, for appends that did not; unless there are none any more, or so many that no worker can be idle.
-- Those that have a head start are before the clock: they are counted from where claims look.
-- $1 waiting jobs that keep every worker awake, $2 how far behind the clock claims look.
select pg_notify('sudoku_job', '')::text as notified
from (
    select count(*) as jobs
    from (
        select
        from job
        where lease_until is null and deaths = 0 and not is_long and place >= (select last_value - $2::bigint from virtual_clock)
        order by place
        limit $1
    ) w
) waiting
where jobs between 1 and $1 - 1
