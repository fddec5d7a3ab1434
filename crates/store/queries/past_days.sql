-- The days that are over and in which no batch lives: those that have partitions, and those that have only rows of hidden batches left. drop_day looks again,
-- under its locks. The days of hidden batches are found by a look at the index for each, however many batches a day has; whether one lives in a day is asked as the
-- first that lives from that day on, for a plain comparison may be planned as a walk through all batches.
with recursive hidden as (
    (select part from batch where deleted_at is not null and state in (3, 5) order by part limit 1)
    union all
    select (
        select b.part
        from batch b
        where b.deleted_at is not null and b.state in (3, 5) and b.part > h.part
        order by b.part
        limit 1
    )
    from hidden h
    where h.part is not null
),
past as (
    select coalesce(p.day, h.part) as day, p.day is not null as has_partitions
    from partition_days() as p (day)
    full join (select part from hidden where part is not null) h on h.part = p.day
)
select day as "day!", has_partitions as "has_partitions!"
from past
where day < (extract(epoch from now())::bigint - 3600) / 86400
    and (
        select b.part
        from batch b
        where b.part >= past.day and (b.deleted_at is null or b.state not in (3, 5))
        order by b.part
        limit 1
    ) is distinct from past.day
order by day
