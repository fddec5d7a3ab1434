-- Corrects what a batch's puzzles are taken to cost, and with it the turns of its jobs that wait: from where the clock is, one behind the other. Without this
-- a batch would pay for hard puzzles what easy ones cost, until each of its jobs has had a slice. At most once in a while, and only if it is still far off.
-- $1 batch, $2 nanoseconds of a puzzle, $3 seconds between two corrections.
with priced as (
    update batch
    set puzzle_cost = $2, priced_at = now()
    where id = $1
        and (puzzle_cost < $2 / 2 or puzzle_cost / 4 > $2)
        and (priced_at is null or priced_at < now() - make_interval(secs => $3))
    returning id, tenant_id
),
waiting as materialized (
    select j.batch_id, j.lo, j.hi - j.lo as puzzles, j.tag - j.place as head_start
    from job j
    join priced b on b.id = j.batch_id
    where j.lease_until is null and j.deaths = 0
    for update of j skip locked
),
turns as (
    select
        w.batch_id, w.lo, w.head_start,
        v.last_value + (sum(w.puzzles * $2::bigint / t.weight) over (order by w.lo))::bigint as tag
    from waiting w
    cross join virtual_clock v
    cross join priced b
    join tenant t on t.id = b.tenant_id
)
update job j
set tag = n.tag, place = n.tag - n.head_start
from turns n
where (j.batch_id, j.lo) = (n.batch_id, n.lo)
