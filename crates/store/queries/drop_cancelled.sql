-- Turns the jobs of a batch that is being cancelled into CANCELLED ranges, at most $2 of them, as far as nobody holds them. Their headers need
-- no pieces. $1 batch.
with dropped as (
    delete from job
    where (batch_id, lo) in (
        select j.batch_id, j.lo
        from job j
        join batch b on b.id = j.batch_id
        where b.id = $1 and b.state = 4 and j.lease_until is null
        order by j.lo
        limit $2
        for update of j skip locked
    )
    returning part, batch_id, lo, hi, attempt
)
insert into result (part, batch_id, lo, hi, attempt, cancelled_count)
select part, batch_id, lo, hi, attempt, hi - lo from dropped
