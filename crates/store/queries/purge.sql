-- Removes the rows of one deleted batch that has ended, at most $1 of each table at a time; with the last of them the batch itself. One that has
-- expired is left to the drop of its day until purge_at. Gives its number, or no row when there is nothing to remove. Others may be at it: what this
-- statement sees of the tables may be gone already, so the batch goes only if everything that was seen was little enough to be all, and was removed by
-- this statement.
with doomed as materialized (
    select id, part
    from batch
    where purge_at <= now() and state in (3, 5)
    order by purge_at, id
    limit 1
    for update skip locked
),
seen_payloads as materialized (
    select p.part, p.batch_id, p.chunk_lo, p.piece
    from payload p
    join doomed d on (p.part, p.batch_id) = (d.part, d.id)
    limit $1
),
seen_pieces as materialized (
    select p.part, p.batch_id, p.result_lo, p.piece
    from result_piece p
    join doomed d on (p.part, p.batch_id) = (d.part, d.id)
    limit $1
),
seen_headers as materialized (
    select r.part, r.batch_id, r.lo
    from result r
    join doomed d on (r.part, r.batch_id) = (d.part, d.id)
    limit $1
),
payloads as (
    delete from payload where (part, batch_id, chunk_lo, piece) in (select part, batch_id, chunk_lo, piece from seen_payloads) returning 1
),
pieces as (
    delete from result_piece where (part, batch_id, result_lo, piece) in (select part, batch_id, result_lo, piece from seen_pieces) returning 1
),
headers as (
    delete from result where (part, batch_id, lo) in (select part, batch_id, lo from seen_headers) returning 1
),
counted as (
    select
        array[(select count(*) from seen_payloads), (select count(*) from seen_pieces), (select count(*) from seen_headers)] as seen,
        array[(select count(*) from payloads), (select count(*) from pieces), (select count(*) from headers)] as removed
),
ended as (
    delete from batch b
    using doomed d, counted c
    where b.id = d.id and c.seen = c.removed and $1 > all (c.seen)
    returning b.id
)
select d.id, exists (select from ended) as "is_gone!" from doomed d
