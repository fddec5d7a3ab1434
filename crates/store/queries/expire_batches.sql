-- Hides the batches that have ended and expired, as a delete does, at most $1 of them. Their rows wait for their day to be dropped whole, but not longer than
-- $2 seconds: then purge.sql removes them one by one, for a batch that lives long must not hold the rows of its whole day.
with expired as materialized (
    select id
    from batch
    where state in (3, 5) and deleted_at is null and expires_at <= now()
    order by expires_at
    limit $1
    for update skip locked
)
update batch b
set deleted_at = now(), name = gen_random_uuid()::text, request_id = null, purge_at = now() + make_interval(secs => $2)
-- This limit is for the planner, which cannot know the other one: they are few.
from (select id from expired limit 1000) e
where b.id = e.id
returning b.id, pg_notify('sudoku_result', b.id::text)::text as told
