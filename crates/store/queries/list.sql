-- A page of a tenant's batches, newest first, each with what is done of it.
-- $1 tenant, $2 only those older than this batch, $3 only these states (none: all), $4 batches at the most.
select
    b.id, b.part, b.name, b.state, b.placement_limit, b.priority, b.display_name, b.labels as "labels: Json<BTreeMap<String, String>>",
    b.puzzle_count, b.created_at, b.sealed_at, b.ended_at, b.expires_at,
    (
        select array[
            coalesce(sum(r.hi - r.lo), 0), coalesce(sum(r.unique_count), 0), coalesce(sum(r.multiple_count), 0),
            coalesce(sum(r.no_solution_count), 0), coalesce(sum(r.invalid_count), 0), coalesce(sum(r.undecided_count), 0),
            coalesce(sum(r.failed_count), 0), coalesce(sum(r.cancelled_count), 0), coalesce(sum(r.over_limit_count), 0),
            least(coalesce(sum(r.placement_count), 0), 9223372036854775807),
            -- An older program may have put a job back with its number.
            (
                select least(coalesce(sum(j.running_placement_count), 0), 9223372036854775807)
                from job j
                where j.batch_id = b.id and j.running_placement_count is not null and j.lease_until is not null
            )
        ]::bigint[]
        from result r
        where r.part = b.part and r.batch_id = b.id
    ) as sums
from batch b
where b.tenant_id = $1
    and b.deleted_at is null
    and b.id < $2
    and (cardinality($3::smallint[]) = 0 or b.state = any ($3))
order by b.id desc
limit $4
