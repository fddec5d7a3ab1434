-- Begins to cancel the open batches to which nothing was appended for $2 seconds, at most $1 of them. Found by their creation, which was earlier still: an index
-- over appended_at would have to be written at each append.
with idle as materialized (
    select id
    from batch
    where state = 1
        and created_at < now() - make_interval(secs => $2)
        and appended_at < now() - make_interval(secs => $2)
    order by created_at
    limit $1
    for update skip locked
)
update batch b
set state = 4, expires_at = now() + b.keep_cancelled
-- This limit is for the planner, which cannot know the other one: they are few.
from (select id from idle limit 1000) i
where b.id = i.id
returning b.id, b.name, pg_notify('sudoku_cancel', '')::text as notified, pg_notify('sudoku_result', b.id::text)::text as told
