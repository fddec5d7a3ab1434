-- Stores the verdicts of [lo, mid) and takes them off the job; what is left, [mid, hi), goes back to the queue. Fenced on the range, the attempt and
-- the owner: a worker that has lost its lease changes nothing and gets 0.
-- $1 batch, $2 lo, $3 hi, $4 attempt, $5 owner, $6 mid, $7 to $14 counts, $15 placements, $16 to $18 pieces, $19 format, $20 the pieces' bytes.
with gone as (
    delete from job
    where batch_id = $1 and lo = $2 and hi = $3 and attempt = $4 and owner = $5 and hi = $6
    returning part, batch_id
),
put_back as (
    update job
    set lo = $6, owner = null, lease_until = null, started = false
    where batch_id = $1 and lo = $2 and hi = $3 and attempt = $4 and owner = $5 and hi > $6
    returning part, batch_id
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
    select part, batch_id, $2, $6, $4, $7, $8, $9, $10, $11, $12, $13, $14, $15 from held
),
pieces as (
    insert into result_piece (part, batch_id, result_lo, piece, lo, hi, format, data)
    select h.part, h.batch_id, $2, p.piece, p.lo, p.hi, $19, p.data
    from held h, unnest($16::smallint[], $17::bigint[], $18::bigint[], $20::bytea[]) as p (piece, lo, hi, data)
)
select count(*) as "held!" from held
