-- Adds chunks at an offset: guarded by state and offset, so that a repeat, a gap or a sealed batch adds nothing and returns no row.
--
-- Each job gets its turn by start-time fair queueing: it begins where its tenant's queue ends, or at the virtual clock if that has gone beyond, and is over
-- after its cost by the tenant's weight. No row is shared by a tenant's appends: where the queue ends is read from its waiting jobs beyond the clock. The first
-- chunks of a tenant's batches queue by themselves: a small batch does not wait behind a large one of the same tenant, and neither can have more than a
-- share each. Workers are told, unless so much waits already that none of them can be idle, or $14 is 0.
-- $1 batch, $2 offset, $3 puzzles, $4 $5 chunk ranges, $6 to $9 pieces, $10 format, $11 the pieces' bytes, $12 head start of one step of priority,
-- $13 the greatest placement limit that is not long, $14 waiting jobs that keep every worker awake.
with guarded as (
    update batch
    set puzzle_count = puzzle_count + $3, appended_at = now()
    where id = $1 and state = 1 and puzzle_count = $2 and deleted_at is null
    returning id, part, tenant_id, priority, puzzle_count, placement_limit, puzzle_cost
),
queue as (
    select
        g.id, g.part, g.tenant_id, g.priority * $12::bigint as head_start, k.is_long, g.puzzle_cost, t.weight,
        greatest(k.clock, (
            select j.tag_end
            from job j
            where j.tenant_id = g.tenant_id and j.is_long = k.is_long and j.lease_until is null and j.lo = 0 and j.tag_end > k.clock
            order by j.tag_end desc
            limit 1
        )) as first_end,
        greatest(k.clock, (
            select j.tag_end
            from job j
            where j.tenant_id = g.tenant_id and j.is_long = k.is_long and j.lease_until is null and j.lo > 0 and j.tag_end > k.clock
            order by j.tag_end desc
            limit 1
        )) as rest_end
    from guarded g
    join tenant t on t.id = g.tenant_id
    cross join lateral (
        select g.placement_limit > $13::bigint as is_long, virtual_now(g.placement_limit > $13::bigint) as clock
    ) k
),
stored as (
    insert into payload (part, batch_id, chunk_lo, piece, lo, hi, format, data)
    select g.part, g.id, p.chunk_lo, p.piece, p.lo, p.hi, $10, p.data
    from guarded g
    -- Unnested in a select list: the rows of a function after "from" are kept until the last is made, which copies every piece once more.
    cross join (
        select
            unnest($6::bigint[]) as chunk_lo, unnest($7::smallint[]) as piece, unnest($8::bigint[]) as lo, unnest($9::bigint[]) as hi,
            unnest($11::bytea[]) as data
    ) p
),
queued as (
    insert into job (batch_id, lo, hi, chunk_lo, part, tenant_id, is_long, tag, cost, head_start)
    select q.id, c.lo, c.hi, c.lo, q.part, q.tenant_id, q.is_long, c.tag, c.cost, q.head_start
    from queue q
    cross join lateral (
        select
            u.lo, u.hi, u.cost,
            -- Where the queue ends, and behind those before it in this append; not before the first chunk, if that is among them.
            case
                when u.lo = 0 then q.first_end
                else greatest(q.rest_end, q.first_end + max(case when u.lo = 0 then u.cost end) over ())
            end + (sum(u.cost) over (partition by u.lo = 0 order by u.lo))::bigint - u.cost as tag
        from (
            select lo, hi, (hi - lo) * q.puzzle_cost / q.weight as cost
            from unnest($4::bigint[], $5::bigint[]) as r (lo, hi)
        ) u
    ) c
),
waiting as (
    select count(*) as jobs
    from (
        select
        from job
        where lease_until is null and deaths = 0 and not is_long and place >= (select last_value from virtual_clock)
        order by place
        limit $14
    ) w
)
select
    g.puzzle_count,
    case when q.is_long then pg_notify('sudoku_job', 'long') when w.jobs < $14 then pg_notify('sudoku_job', '') end::text as notified
from guarded g
join queue q on q.id = g.id
cross join waiting w
