-- Sharing: whose turn it is, by virtual time; and counts that take long, which have lanes of their own.

-- In the order in which appends lock them. A claim may lock them the other way round: then one of the two is refused, and tries again.
lock table batch, job in access exclusive mode;

-- Sequences, for each is one number that everybody reads and many raise: no row, so nobody waits for another's commit and nothing is left to be
-- vacuumed. They begin where the tags of jobs stood so far, in microseconds of the epoch; so jobs of older programs stand near them too.
create sequence virtual_clock as bigint minvalue 0;
create sequence virtual_clock_long as bigint minvalue 0;
select setval(clock, (extract(epoch from now()) * 1000000)::bigint) from unnest(array['virtual_clock', 'virtual_clock_long']::regclass[]) as clock;
comment on sequence virtual_clock is 'Where the turns stand that were claimed so far, in nanoseconds of solver time. Never falls; raised by advance_virtual_clock alone.';
comment on sequence virtual_clock_long is 'The same of the jobs that may take long: they have threads of their own, and so a time of their own.';

create function virtual_now(of_long boolean) returns bigint
language sql stable as $$
    select case when of_long then (select last_value from virtual_clock_long) else (select last_value from virtual_clock) end
$$;
comment on function virtual_now is 'Where the clock of these jobs stands.';

create function advance_virtual_clock(clock regclass, claimed bigint) returns void
language plpgsql as $$
begin
    -- Whoever finds another at it leaves it to the next claim: the clock may be a job behind for a moment, but it never waits and never falls.
    if claimed > pg_sequence_last_value(clock) and pg_try_advisory_xact_lock(hashtext('sudoku-batch virtual clock'), clock::oid::integer) then
        perform setval(clock, greatest(claimed, pg_sequence_last_value(clock)));
    end if;
end
$$;
comment on function advance_virtual_clock is 'Raises a clock to the end of a turn that was claimed.';

alter table tenant
    add column puzzle_cost integer not null default 1000,
    add constraint tenant_puzzle_cost_check check (puzzle_cost >= 1000);
comment on column tenant.puzzle_cost is 'What the puzzles of its next batch are taken to cost: as much as those that were corrected last.';

alter table batch
    add column puzzle_cost integer not null default 1000,
    add column priced_at timestamptz,
    add constraint batch_puzzle_cost_check check (puzzle_cost >= 1000);
comment on column batch.puzzle_cost is 'Nanoseconds of solver time that one of its puzzles is taken to cost; workers correct it when they find it far off.';
comment on column batch.priced_at is 'When puzzle_cost was last corrected, if it was.';

alter table job
    add column cost bigint not null default 0,
    add column head_start bigint not null default 0,
    add column is_long boolean not null default false,
    add constraint job_cost_check check (cost >= 0 and head_start >= 0);
alter table job
    add column place bigint not null generated always as (tag - head_start) stored,
    add column tag_end bigint not null generated always as (tag + cost) stored;
update job j set is_long = true from batch b where b.id = j.batch_id and b.placement_limit > 100000000;
comment on column job.tag is 'When its turn begins in virtual time, in nanoseconds of solver time.';
comment on column job.cost is 'What it is taken to cost, by its tenant''s weight.';
comment on column job.tag_end is 'When its turn is over: where its tenant''s queue ends, as far as this job.';
comment on column job.head_start is 'How much earlier it stands for its priority.';
comment on column job.place is 'Place in the queue, smallest first.';
comment on column job.is_long is 'It may count more than 100,000,000 placements for one puzzle: never run by all threads of a process.';
comment on column job.started is 'Whether its owner is at it, or holds it to begin in a moment; not while it is only held back. Only then is it blamed for the owner''s death.';

drop index job_ready;
drop index job_blamed;
create index job_ready on job (place, batch_id, lo) where lease_until is null and deaths = 0 and not is_long;
create index job_ready_long on job (place, batch_id, lo) where lease_until is null and deaths = 0 and is_long;
create index job_blamed on job (place, batch_id, lo) where deaths > 0;
-- Where a tenant's queues end: that of the first chunks of its batches, and that of all others.
create index job_tenant_first on job (tenant_id, is_long, tag_end) where lease_until is null and lo = 0;
create index job_tenant_rest on job (tenant_id, is_long, tag_end) where lease_until is null and lo > 0;
