-- Claims jobs: the first ready ones in the queue's order, with their puzzles. Those that a death is blamed on are left to claim_blamed.sql, those that may
-- take long to claim_long.sql. All that waits stands at the clock or later, but for head starts and what appends under way are behind: from there the
-- index is read, for before it are only dead entries, which an old snapshot elsewhere keeps. The candidates are materialised: without that the planner may
-- run the limited query more than once and lease more than asked.
-- $1 worker, $2 lease in seconds, $3 jobs at the most, $4 how far behind the clock, $5 how far the clock goes by a job at the most.
with first_ready as materialized (
    select batch_id, lo
    from job
    where lease_until is null and deaths = 0 and not is_long and place >= (select last_value - $4::bigint from virtual_clock)
    order by place, batch_id, lo
    limit $3
    for update skip locked
),
leased as (
    update job j
    set owner = $1, lease_until = now() + make_interval(secs => $2), attempt = j.attempt + 1, started = true
    -- This limit is for the planner, which cannot know the other one: they are few.
    from (select batch_id, lo from first_ready limit 32) f
    where (j.batch_id, j.lo) = (f.batch_id, f.lo)
    returning j.batch_id, j.lo, j.hi, j.chunk_lo, j.part, j.attempt, j.place, least(j.tag_end, j.tag + $5::bigint) as clock
)
select
    l.batch_id as "batch_id!", l.lo as "job_lo!", l.hi as "job_hi!", l.attempt as "attempt!", l.place as "place!",
    b.placement_limit as "placement_limit!", b.puzzle_cost as "puzzle_cost!", b.state in (4, 5) and c.advanced is not null as "cancelled!",
    p.lo as "piece_lo?", p.hi as "piece_hi?", p.format as "format?", p.data as "data?"
from leased l
join batch b on b.id = l.batch_id
cross join (select advance_virtual_clock('virtual_clock', max(clock))::text as advanced from leased) c
left join payload p
    on (p.part, p.batch_id, p.chunk_lo) = (l.part, l.batch_id, l.chunk_lo) and p.lo < l.hi and p.hi > l.lo
