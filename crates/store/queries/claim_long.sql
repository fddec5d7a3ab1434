-- As claim.sql, for the jobs that may take long, which have lanes and a clock of their own.
-- $1 jobs at the most, $2 worker, $3 lease in seconds, $4 how far the clock goes by a job at the most.
with first_ready as materialized (
    select batch_id, lo
    from job
    where lease_until is null and deaths = 0 and is_long
    order by place, batch_id, lo
    limit $1
    for update skip locked
),
leased as (
    update job j
    set owner = $2, lease_until = now() + make_interval(secs => $3), attempt = j.attempt + 1, started = true
    -- This limit is for the planner, which cannot know the other one: they are few.
    from (select batch_id, lo from first_ready limit 32) f
    where (j.batch_id, j.lo) = (f.batch_id, f.lo)
    returning j.batch_id, j.lo, j.hi, j.chunk_lo, j.part, j.attempt, j.place, least(j.tag_end, j.tag + $4::bigint) as clock
)
select
    l.batch_id as "batch_id!", l.lo as "job_lo!", l.hi as "job_hi!", l.attempt as "attempt!", l.place as "place!",
    b.placement_limit as "placement_limit!", b.puzzle_cost as "puzzle_cost!", b.state in (4, 5) and c.advanced is not null as "cancelled!",
    p.lo as "piece_lo?", p.hi as "piece_hi?", p.format as "format?", p.data as "data?"
from leased l
join batch b on b.id = l.batch_id
cross join (select advance_virtual_clock('virtual_clock_long', max(clock))::text as advanced from leased) c
left join payload p
    on (p.part, p.batch_id, p.chunk_lo) = (l.part, l.batch_id, l.chunk_lo) and p.lo < l.hi and p.hi > l.lo
