-- Puts back the jobs whose lease has ended, at most $1 of them. The attempt stays: the next claim raises it, so the late owner's completion
-- finds no row. It waits from where the clock is. Where the owner had begun, its death is counted, and the job is cut so that the next death says more about who is to blame: into
-- $3 parts after the first, into single puzzles after that. A single puzzle that was leased alone at death number $4 is FAILED: its header needs no pieces.
-- $2 seconds that the database must have been up: after its restart the living prolong their leases first.
with ended as materialized (
    select batch_id, lo, hi, owner, started, (deaths + case when started then 1 else 0 end)::smallint as deaths
    from job
    where lease_until < now() and pg_postmaster_start_time() < now() - make_interval(secs => $2)
    order by lease_until
    limit $1
    for update skip locked
),
judged as (
    select
        batch_id, lo, hi, owner, started, deaths,
        started and deaths >= $4 and hi - lo = 1 as failed,
        case when not started then hi - lo when deaths = 1 then (hi - lo + $3 - 1) / $3 else 1 end as step
    from ended
    -- This limit is for the planner, which cannot know the other one: they are few.
    limit 1000
),
failed as (
    delete from job j
    using judged e
    where e.failed and (j.batch_id, j.lo) = (e.batch_id, e.lo)
    returning j.part, j.batch_id, j.lo, j.hi, j.attempt, e.deaths
),
header as (
    insert into result (part, batch_id, lo, hi, attempt, failed_count)
    select part, batch_id, lo, hi, attempt, hi - lo from failed
),
put_back as (
    update job j
    set owner = null, lease_until = null, started = false, running_placement_count = null, hi = e.lo + least(e.step, e.hi - e.lo),
        deaths = e.deaths, tag = greatest(j.tag, virtual_now(j.is_long)),
        dead_owners = case when e.started then array_append(j.dead_owners, e.owner) else j.dead_owners end
    from judged e
    where not e.failed and (j.batch_id, j.lo) = (e.batch_id, e.lo)
    returning j.batch_id, j.lo, e.hi, e.step, e.started, j.chunk_lo, j.part, j.tenant_id, j.tag, j.cost, j.head_start, j.is_long,
        j.attempt, j.deaths, j.dead_owners
),
cut as (
    insert into job (batch_id, lo, hi, chunk_lo, part, tenant_id, tag, cost, head_start, is_long, attempt, deaths, dead_owners)
    select
        p.batch_id, part.lo, least(part.lo + p.step, p.hi), p.chunk_lo, p.part, p.tenant_id, p.tag, p.cost, p.head_start, p.is_long, p.attempt,
        p.deaths, p.dead_owners
    from put_back p, generate_series(p.lo + p.step, p.hi - 1, p.step) as part (lo)
)
select
    batch_id as "batch_id!", lo as "lo!", hi as "hi!", attempt as "attempt!", deaths as "deaths!", started as "started!", false as "failed!",
    pg_notify('sudoku_job', case when is_long then 'long' else '' end)::text as notified
from put_back
union all
select batch_id, lo, hi, attempt, deaths, true, true, null from failed
