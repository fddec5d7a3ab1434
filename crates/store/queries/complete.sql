-- A worker's turn, in one statement: stores what is done of whole jobs and takes those off the queue, and claims further ones, as claim.sql does.
--
-- Fenced on the range, the attempt and the owner: what a worker has lost its lease of changes nothing. The rows are locked in the order of their key, as the
-- heartbeat locks them: the two meet on the same ones.
-- $1 worker, $2 lease in seconds; done: $3 batches, $4 los, $5 his, $6 attempts, $7 to $14 counts, $15 placements; their pieces: $16 number of the job among these, from 1,
-- $17 number, $18 los, $19 his, $20 format, $21 bytes; claimed: $22 jobs at the most, $23 how far behind the clock, $24 how far the clock goes by a job at the most.
with done as materialized (
    select j.batch_id, j.lo, d.number
    from unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::integer[]) with ordinality as d (batch_id, lo, hi, attempt, number)
    join job j on (j.batch_id, j.lo, j.hi, j.attempt) = (d.batch_id, d.lo, d.hi, d.attempt) and j.owner = $1
    order by j.batch_id, j.lo
    for update of j
),
gone as (
    delete from job j
    -- This limit is for the planner, which cannot know how many: they are few.
    using (select batch_id, lo, number from done limit 32) d
    where (j.batch_id, j.lo) = (d.batch_id, d.lo)
    returning j.part, j.batch_id, j.lo, j.hi, j.attempt, d.number
),
header as (
    insert into result (
        part, batch_id, lo, hi, attempt, unique_count, multiple_count, no_solution_count, invalid_count, undecided_count, failed_count,
        cancelled_count, over_limit_count, placement_count
    )
    select
        g.part, g.batch_id, g.lo, g.hi, g.attempt, n.uniques, n.multiples, n.no_solutions, n.invalids, n.undecided, n.failed,
        n.cancelled, n.over_limit, n.placements
    from unnest(
        $7::integer[], $8::integer[], $9::integer[], $10::integer[], $11::integer[], $12::integer[], $13::integer[], $14::integer[], $15::bigint[]
    ) with ordinality as n (uniques, multiples, no_solutions, invalids, undecided, failed, cancelled, over_limit, placements, number)
    join gone g on g.number = n.number
),
pieces as (
    insert into result_piece (part, batch_id, result_lo, piece, lo, hi, format, data)
    select g.part, g.batch_id, g.lo, p.piece, p.lo, p.hi, $20, p.data
    -- Unnested in a select list, as in append.sql.
    from (
        select
            unnest($16::bigint[]) as job, unnest($17::smallint[]) as piece, unnest($18::bigint[]) as lo, unnest($19::bigint[]) as hi,
            unnest($21::bytea[]) as data
    ) p
    join gone g on g.number = p.job
),
first_ready as materialized (
    select batch_id, lo
    from job
    where lease_until is null and deaths = 0 and not is_long and place >= (select last_value - $23::bigint from virtual_clock)
    order by place, batch_id, lo
    limit $22
    for update skip locked
),
leased as (
    update job j
    set owner = $1, lease_until = now() + make_interval(secs => $2), attempt = j.attempt + 1, started = true
    -- This limit is for the planner, which cannot know the other one: they are few.
    from (select batch_id, lo from first_ready limit 32) f
    where (j.batch_id, j.lo) = (f.batch_id, f.lo)
    returning j.batch_id, j.lo, j.hi, j.chunk_lo, j.part, j.attempt, j.place, least(j.tag_end, j.tag + $24::bigint) as clock
)
select
    s.numbers as stored,
    -- Of which so few jobs are left that these may have been the last: an append or a worker elsewhere may be ahead of what is seen here.
    (
        select array_agg(g.batch_id)
        from (select distinct batch_id from gone) g
        where (select count(*) < 96 from (select from job j where j.batch_id = g.batch_id order by j.lo limit 96) few)
    ) as maybe_ended,
    c.advanced as clock,
    l.batch_id as "batch_id?", l.lo as "job_lo?", l.hi as "job_hi?", l.attempt as "attempt?", l.place as "place?",
    b.placement_limit as "placement_limit?", b.puzzle_cost as "puzzle_cost?", b.state in (4, 5) as "cancelled?",
    p.lo as "piece_lo?", p.hi as "piece_hi?", p.format as "format?", p.data as "data?"
from (select array_agg(number) as numbers from gone) s
cross join (select advance_virtual_clock('virtual_clock', max(clock))::text as advanced from leased) c
left join leased l on true
left join batch b on b.id = l.batch_id
left join payload p
    on (p.part, p.batch_id, p.chunk_lo) = (l.part, l.batch_id, l.chunk_lo) and p.lo < l.hi and p.hi > l.lo
