-- Removes the rows of hidden batches whose day was dropped, at most $2 of them: nothing else is left of them. $1 day, as two bounds:
-- by one value the planner may walk through all batches in the order of their numbers.
delete from batch
where id in (
    select id
    from batch
    where part >= $1 and part <= $1 and deleted_at is not null and state in (3, 5) and $1 not in (select partition_days())
    order by part, id
    limit $2
    for update skip locked
)
