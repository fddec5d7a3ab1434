-- Hides a batch and frees its name and request id; one that has not ended is cancelled with it, if $2 says that it may be. $1 batch.
with hidden as (
    update batch
    set deleted_at = now(), purge_at = now(), name = gen_random_uuid()::text, request_id = null,
        state = case when state in (1, 2) then 4 else state end
    where id = $1 and deleted_at is null and ($2 or state in (3, 5))
    returning id
)
select id, pg_notify('sudoku_cancel', '')::text as notified, pg_notify('sudoku_result', id::text)::text as told from hidden
