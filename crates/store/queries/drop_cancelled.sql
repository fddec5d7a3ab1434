-- Turns the jobs of a batch that is being cancelled into CANCELLED ranges, at most $2 of them, as far as nobody is at them: those that are held back
-- go too. Their headers need no pieces. The state is looked at once and before the jobs: of any other batch this costs nothing. $1 batch.
with dropped as (
    delete from job
    where (batch_id, lo) in (
        select j.batch_id, j.lo
        from job j
        where j.batch_id = $1
            and (j.lease_until is null or not j.started)
            and exists (select from batch where id = $1 and state = 4)
        order by j.lo
        limit $2
        for update of j skip locked
    )
    returning part, batch_id, lo, hi, attempt
)
insert into result (part, batch_id, lo, hi, attempt, cancelled_count)
select part, batch_id, lo, hi, attempt, hi - lo from dropped
