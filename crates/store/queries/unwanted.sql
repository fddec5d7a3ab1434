-- What nobody wants any more: batches that are being cancelled, at most $1 of them, and whether deleted ones have rows to be removed one
-- by one.
select
    array(select id from batch where state = 4 order by id limit $1) as "cancelling!",
    (
        select id from batch where purge_at <= now() and state in (3, 5) order by purge_at, id limit 1
    ) is not null as "any_deleted!"
