-- Leaves a lease nothing but the first puzzle of its job, which takes long; the others go back to the queue, in parts, one behind the other by what a
-- puzzle costs. Fenced like a completion; the attempt stays.
-- $1 worker, $2 batch, $3 lo, $4 hi, $5 attempt, $6 $7 the parts, $8 nanoseconds of a puzzle.
with held as (
    update job
    set hi = $3 + 1
    where batch_id = $2 and lo = $3 and hi = $4 and attempt = $5 and owner = $1
    returning batch_id, chunk_lo, part, tenant_id, tag, head_start, is_long, attempt, deaths, dead_owners
),
turn as (
    select h.*, greatest(h.tag, virtual_now(h.is_long)) as clock, t.weight
    from held h
    join tenant t on t.id = h.tenant_id
),
cut as (
    insert into job (batch_id, lo, hi, chunk_lo, part, tenant_id, tag, cost, head_start, is_long, attempt, deaths, dead_owners)
    select
        h.batch_id, p.lo, p.hi, h.chunk_lo, h.part, h.tenant_id,
        h.clock + (p.lo - $3) * $8::bigint / h.weight, (p.hi - p.lo) * $8::bigint / h.weight,
        h.head_start, h.is_long, h.attempt, h.deaths, h.dead_owners
    from turn h, unnest($6::bigint[], $7::bigint[]) as p (lo, hi)
)
select pg_notify('sudoku_job', case when is_long then 'long' else '' end)::text as notified from held
