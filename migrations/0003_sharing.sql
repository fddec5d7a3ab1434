-- Sharing: whose turn it is, by virtual time; and counts that take long, which have lanes of their own.

-- In the order in which appends lock them: a migration under load waits, and deadlocks with nobody.
lock table batch, job in access exclusive mode;

-- A sequence, for it is one number that everybody reads and many raise: no row, so nobody waits for another's commit and nothing is left to be
-- vacuumed. It begins where the tags of jobs stood so far, in microseconds of the epoch.
create sequence virtual_clock as bigint minvalue 0;
select setval('virtual_clock', (extract(epoch from now()) * 1000000)::bigint);
comment on sequence virtual_clock is 'The greatest tag that was ever claimed, in nanoseconds of solver time. Never falls; raised by advance_virtual_clock alone.';

create function advance_virtual_clock(claimed bigint) returns void
language plpgsql as $$
begin
    -- Whoever finds another at it leaves it to the next claim: the clock may be a job behind for a moment, but it never waits and never falls.
    if claimed > (select last_value from virtual_clock) and pg_try_advisory_xact_lock(hashtext('sudoku-batch virtual clock')) then
        perform setval('virtual_clock', greatest(claimed, last_value)) from virtual_clock;
    end if;
end
$$;
comment on function advance_virtual_clock is 'Raises virtual_clock to the tag of a job that was claimed.';

alter table batch
    add column puzzle_cost integer not null default 1000,
    add column priced_at timestamptz,
    add constraint batch_puzzle_cost_check check (puzzle_cost >= 1000);
comment on column batch.puzzle_cost is 'Nanoseconds of solver time that one of its puzzles is taken to cost; workers correct it when they find it far off.';
comment on column batch.priced_at is 'When puzzle_cost was last corrected, if it was.';

alter table job
    add column place bigint not null default 0,
    add column is_long boolean not null default false;
update job set place = tag;
update job j set is_long = true from batch b where b.id = j.batch_id and b.placement_limit > 100000000;
comment on column job.tag is 'When its turn is over in virtual time, in nanoseconds of solver time: what its tenant has used by then, by weight.';
comment on column job.place is 'Place in the queue, smallest first: the tag less the head start of its priority.';
comment on column job.is_long is 'It may count more than 100,000,000 placements for one puzzle: never run by all threads of a process.';
comment on column job.started is 'Whether its owner is at it, or holds it to begin in a moment; not while it is only held back. Only then is it blamed for the owner''s death.';

drop index job_ready;
drop index job_blamed;
create index job_ready on job (place, batch_id, lo) where lease_until is null and deaths = 0 and not is_long;
create index job_ready_long on job (place, batch_id, lo) where lease_until is null and deaths = 0 and is_long;
create index job_blamed on job (place, batch_id, lo) where deaths > 0;
-- Where a tenant's queue ends: that of the first chunks of its batches, and that of all others.
create index job_tenant_first on job (tenant_id, tag) where lease_until is null and lo = 0;
create index job_tenant_rest on job (tenant_id, tag) where lease_until is null and lo > 0;
