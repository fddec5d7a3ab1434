-- Stores what is done of a job, the verdicts of [lo, mid), and gives the rest back to the queue in parts, in one statement. They wait later by what the slice has
-- cost beyond what was charged. Fenced on the range, the attempt and the owner: a worker that has lost its lease changes nothing and gets no row. Workers are told.
-- $1 worker, $2 batch, $3 lo, $4 hi, $5 attempt, $6 mid, $7 to $14 counts, $15 placements, $16 to $18 pieces, $19 format, $20 the pieces' bytes,
-- $21 end of the first part put back, $22 $23 the other parts, $24 nanoseconds that the slice cost beyond what was charged, $25 those of a puzzle.
with put_back as (
    update job j
    set lo = $6, hi = $21, owner = null, lease_until = null, started = false, running_placement_count = null,
        tag = greatest(j.tag + $24::bigint / t.weight, virtual_now(j.is_long)), cost = ($21 - $6) * $25::bigint / t.weight
    from tenant t
    where j.batch_id = $2 and j.lo = $3 and j.hi = $4 and j.attempt = $5 and j.owner = $1 and j.hi > $6 and t.id = j.tenant_id
    returning
        j.part, j.batch_id, j.chunk_lo, j.tenant_id, j.tag, j.head_start, j.is_long, j.attempt, j.deaths, j.dead_owners, t.weight,
        pg_notify('sudoku_job', case when j.is_long then 'long' else '' end)::text as notified
),
cut as (
    insert into job (batch_id, lo, hi, chunk_lo, part, tenant_id, tag, cost, head_start, is_long, attempt, deaths, dead_owners)
    select
        b.batch_id, p.lo, p.hi, b.chunk_lo, b.part, b.tenant_id,
        b.tag + (p.lo - $6) * $25::bigint / b.weight, (p.hi - p.lo) * $25::bigint / b.weight,
        b.head_start, b.is_long, b.attempt, b.deaths, b.dead_owners
    from put_back b, unnest($22::bigint[], $23::bigint[]) as p (lo, hi)
),
header as (
    insert into result (
        part, batch_id, lo, hi, attempt, unique_count, multiple_count, no_solution_count, invalid_count, undecided_count, failed_count,
        cancelled_count, over_limit_count, placement_count
    )
    select part, batch_id, $3, $6, $5, $7, $8, $9, $10, $11, $12, $13, $14, $15 from put_back
),
pieces as (
    insert into result_piece (part, batch_id, result_lo, piece, lo, hi, format, data)
    select b.part, b.batch_id, $3, p.piece, p.lo, p.hi, $19, p.data
    from put_back b
    -- Unnested in a select list, as in append.sql.
    cross join (
        select
            unnest($16::smallint[]) as piece, unnest($17::bigint[]) as lo, unnest($18::bigint[]) as hi, unnest($20::bytea[]) as data
    ) p
)
select notified from put_back
