-- Removes the rows of one deleted batch that has ended, at most $1 of each table at a time; with the last of them the batch itself. Gives its
-- number, or no row when there is nothing to remove.
with doomed as materialized (
    select id, part
    from batch
    where deleted_at is not null and state in (3, 5)
    order by id
    limit 1
    for update skip locked
),
payloads as (
    delete from payload
    where (part, batch_id, chunk_lo, piece) in (
        select p.part, p.batch_id, p.chunk_lo, p.piece
        from payload p
        join doomed d on (p.part, p.batch_id) = (d.part, d.id)
        limit $1
    )
    returning 1
),
pieces as (
    delete from result_piece
    where (part, batch_id, result_lo, piece) in (
        select p.part, p.batch_id, p.result_lo, p.piece
        from result_piece p
        join doomed d on (p.part, p.batch_id) = (d.part, d.id)
        limit $1
    )
    returning 1
),
headers as (
    delete from result
    where (part, batch_id, lo) in (
        select r.part, r.batch_id, r.lo
        from result r
        join doomed d on (r.part, r.batch_id) = (d.part, d.id)
        limit $1
    )
    returning 1
),
ended as (
    delete from batch b
    using doomed d
    where b.id = d.id
        and greatest((select count(*) from payloads), (select count(*) from pieces), (select count(*) from headers)) < $1
    returning b.id
)
select d.id, exists (select from ended) as "is_gone!" from doomed d
