-- Begins to cancel a batch. $1 batch.
update batch
set state = 4
where id = $1 and state in (1, 2)
