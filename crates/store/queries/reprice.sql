-- Corrects what a batch's puzzles are taken to cost, by a factor of $4 at the most, since a single puzzle may tell; its tenant's next batch begins with that. The turns
-- of the tenant's waiting jobs follow: one behind the other, in their order, from where the first of them stands. Without this a batch would pay for
-- hard puzzles what easy ones cost, until each of its jobs has had a slice. Only if it is still far off, and the less often the more jobs there may be.
-- $1 batch, $2 nanoseconds of a puzzle, $3 seconds between two corrections, at the least and for each ten million puzzles, $4 factor, $5 the least cost,
-- $6 the greatest placement limit that is not long.
with priced as (
    update batch
    set puzzle_cost = greatest($5, least($2::bigint, puzzle_cost::bigint * $4, 2000000000), puzzle_cost / $4)::integer, priced_at = now()
    where id = $1
        and (puzzle_cost < $2::bigint / 2 or puzzle_cost / 4 > $2::bigint)
        and (priced_at is null or priced_at < now() - make_interval(secs => $3::float8 * (1 + puzzle_count / 10000000)))
    returning id, tenant_id, puzzle_cost, placement_limit > $6::bigint as is_long
),
tenant_priced as (
    update tenant t
    set puzzle_cost = p.puzzle_cost
    from priced p
    where t.id = p.tenant_id
),
-- By the tenant's two indexes, one half each. The tenant is asked for as a range: the planner takes one that equals something for a share by the number of
-- tenants, with two of them half of all jobs, and walks through all of them.
first_waiting as materialized (
    select batch_id, lo, hi - lo as puzzles, tag, is_long, tenant_id
    from job
    where tenant_id between (select tenant_id from priced) and (select tenant_id from priced) and is_long = (select is_long from priced)
        and lease_until is null and deaths = 0 and lo = 0
    order by batch_id, lo
    for update skip locked
),
rest_waiting as materialized (
    select batch_id, lo, hi - lo as puzzles, tag, is_long, tenant_id
    from job
    where tenant_id between (select tenant_id from priced) and (select tenant_id from priced) and is_long = (select is_long from priced)
        and lease_until is null and deaths = 0 and lo > 0
    order by batch_id, lo
    for update skip locked
),
waiting as (
    select * from first_waiting union all select * from rest_waiting
),
costs as (
    select
        w.batch_id, w.lo, w.tag, w.is_long,
        w.puzzles * case when w.batch_id = p.id then p.puzzle_cost else b.puzzle_cost end::bigint / t.weight as cost
    from waiting w
    join batch b on b.id = w.batch_id
    join tenant t on t.id = w.tenant_id
    cross join priced p
),
turns as (
    select
        batch_id, lo, cost,
        greatest(min(tag) over (partition by lo = 0), virtual_now(is_long))
            + (sum(cost) over (partition by lo = 0 order by tag, batch_id, lo))::bigint - cost as tag
    from costs
)
update job j
set tag = n.tag, cost = n.cost
from turns n
where (j.batch_id, j.lo) = (n.batch_id, n.lo)
