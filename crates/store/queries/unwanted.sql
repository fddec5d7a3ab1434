-- What nobody wants any more: batches that are being cancelled, at most $1 of them, and whether deleted ones have rows left.
select
    array(select id from batch where state = 4 order by id limit $1) as "cancelling!",
    exists (select from batch where deleted_at is not null and state in (3, 5)) as "any_deleted!"
