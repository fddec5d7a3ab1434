-- Which of these batches are being cancelled. $1 batches.
select id from batch where id = any ($1::bigint[]) and state = 4
