-- A worker's turn, in one statement: stores what is done of a job, claims further ones. Each part may be left out.
--
-- Done: the verdicts of [lo, mid) are stored and taken off the job; what is left goes back to the queue, in parts, later by what the slice has cost beyond what was charged. Fenced on
-- the range, the attempt and the owner: a worker that has lost its lease changes nothing and gets 0. Claimed: the first ready jobs in the queue's order,
-- with their puzzles; those that a death is blamed on are left to claim_blamed.sql, those that may take long to claim_long.sql. All that waits stands
-- at the clock or later, but for head starts and what appends under way are behind: from there the index is read, for before it are only dead entries, which an
-- old snapshot elsewhere keeps. The candidates are materialised: without that the planner may run the limited query more than once and lease more than
-- asked.
-- $1 worker, $2 lease in seconds; done: $3 batch, $4 lo, $5 hi, $6 attempt, $7 mid, $8 to $15 counts, $16 placements, $17 to $19 pieces, $20 format,
-- $21 the pieces' bytes, $22 end of the first part put back, $23 $24 the other parts, $25 nanoseconds that the slice cost beyond what was charged, $26 those of a
-- puzzle; claimed: $27 jobs at the most, $28 how far behind the clock, $29 how far
-- the clock goes by a job at the most.
with gone as (
    delete from job
    where batch_id = $3 and lo = $4 and hi = $5 and attempt = $6 and owner = $1 and hi = $7
    returning part, batch_id
),
put_back as (
    update job j
    set lo = $7, hi = $22, owner = null, lease_until = null, started = false,
        tag = greatest(j.tag + $25::bigint / t.weight, virtual_now(j.is_long)), cost = ($22 - $7) * $26::bigint / t.weight
    from tenant t
    where j.batch_id = $3 and j.lo = $4 and j.hi = $5 and j.attempt = $6 and j.owner = $1 and j.hi > $7 and t.id = j.tenant_id
    returning
        j.part, j.batch_id, j.chunk_lo, j.tenant_id, j.tag, j.head_start, j.is_long, j.attempt, j.deaths, j.dead_owners, t.weight,
        pg_notify('sudoku_job', case when j.is_long then 'long' else '' end)::text as notified
),
cut as (
    insert into job (batch_id, lo, hi, chunk_lo, part, tenant_id, tag, cost, head_start, is_long, attempt, deaths, dead_owners)
    select
        b.batch_id, p.lo, p.hi, b.chunk_lo, b.part, b.tenant_id,
        b.tag + (p.lo - $7) * $26::bigint / b.weight, (p.hi - p.lo) * $26::bigint / b.weight,
        b.head_start, b.is_long, b.attempt, b.deaths, b.dead_owners
    from put_back b, unnest($23::bigint[], $24::bigint[]) as p (lo, hi)
),
held as (
    select part, batch_id from gone
    union all
    select part, batch_id from put_back
),
header as (
    insert into result (
        part, batch_id, lo, hi, attempt, unique_count, multiple_count, no_solution_count, invalid_count, undecided_count, failed_count,
        cancelled_count, over_limit_count, placement_count
    )
    select part, batch_id, $4, $7, $6, $8, $9, $10, $11, $12, $13, $14, $15, $16 from held
),
pieces as (
    insert into result_piece (part, batch_id, result_lo, piece, lo, hi, format, data)
    select h.part, h.batch_id, $4, p.piece, p.lo, p.hi, $20, p.data
    from held h, unnest($17::smallint[], $18::bigint[], $19::bigint[], $21::bytea[]) as p (piece, lo, hi, data)
),
first_ready as materialized (
    select batch_id, lo
    from job
    where lease_until is null and deaths = 0 and not is_long and place >= (select last_value - $28::bigint from virtual_clock)
    order by place, batch_id, lo
    limit $27
    for update skip locked
),
leased as (
    update job j
    set owner = $1, lease_until = now() + make_interval(secs => $2), attempt = j.attempt + 1, started = true
    -- This limit is for the planner, which cannot know the other one: they are few.
    from (select batch_id, lo from first_ready limit 32) f
    where (j.batch_id, j.lo) = (f.batch_id, f.lo)
    returning j.batch_id, j.lo, j.hi, j.chunk_lo, j.part, j.attempt, j.place, least(j.tag_end, j.tag + $29::bigint) as clock
)
select
    h.held as "held!",
    -- Whether so few of its jobs are left that this may have been the last one: an append or a worker elsewhere may be ahead of what is seen here.
    h.held > 0 and $7 = $5 and (select count(*) < 64 from (select from job j where j.batch_id = $3 order by j.lo limit 64) few) as "may_be_last!",
    c.advanced as clock,
    l.batch_id as "batch_id?", l.lo as "job_lo?", l.hi as "job_hi?", l.attempt as "attempt?", l.place as "place?",
    b.placement_limit as "placement_limit?", b.puzzle_cost as "puzzle_cost?", b.state in (4, 5) as "cancelled?",
    p.lo as "piece_lo?", p.hi as "piece_hi?", p.format as "format?", p.data as "data?"
from (select count(*) as held from held) h
cross join (select advance_virtual_clock('virtual_clock', max(clock))::text as advanced from leased) c
left join leased l on true
left join batch b on b.id = l.batch_id
left join payload p
    on (p.part, p.batch_id, p.chunk_lo) = (l.part, l.batch_id, l.chunk_lo) and p.lo < l.hi and p.hi > l.lo
