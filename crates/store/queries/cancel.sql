-- Begins to cancel a batch and tells the workers. $1 batch.
with begun as (
    update batch
    set state = 4
    where id = $1 and state in (1, 2)
    returning id
)
select id, pg_notify('sudoku_cancel', '')::text as notified from begun
