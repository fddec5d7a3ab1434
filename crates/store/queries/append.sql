-- Adds chunks at an offset: guarded by state and offset, so that a repeat, a gap or a sealed batch adds nothing and returns no row.
-- $1 batch, $2 offset, $3 puzzles, $4 $5 chunk ranges, $6 to $9 pieces, $10 format, $11 the pieces' bytes, $12 priority step in microseconds.
with guarded as (
    update batch
    set puzzle_count = puzzle_count + $3, appended_at = now()
    where id = $1 and state = 1 and puzzle_count = $2 and deleted_at is null
    returning id, part, tenant_id, priority, puzzle_count
),
stored as (
    insert into payload (part, batch_id, chunk_lo, piece, lo, hi, format, data)
    select g.part, g.id, p.chunk_lo, p.piece, p.lo, p.hi, $10, p.data
    from guarded g,
        unnest($6::bigint[], $7::smallint[], $8::bigint[], $9::bigint[], $11::bytea[]) as p (chunk_lo, piece, lo, hi, data)
),
queued as (
    insert into job (batch_id, lo, hi, chunk_lo, part, tenant_id, tag)
    select g.id, c.lo, c.hi, c.lo, g.part, g.tenant_id,
        (extract(epoch from now()) * 1000000)::bigint - g.priority * $12::bigint
    from guarded g, unnest($4::bigint[], $5::bigint[]) as c (lo, hi)
)
select puzzle_count, pg_notify('sudoku_job', '')::text as notified from guarded
