-- The ends of jobs and batches: puzzles that end their workers, batches that are cancelled or deleted, and the list of batches.

-- In the order in which appends lock them: a migration under load waits, and deadlocks with nobody.
lock table batch, job in access exclusive mode;

alter table job add column dead_owners uuid[];
comment on column job.dead_owners is 'The owners whose deaths are counted in deaths: one that turns out to be alive takes its own back.';
comment on column job.deaths is 'How many of its owners fell silent while they were at it. Above 0 it runs alone in its process.';
comment on column job.started is 'Whether its owner is at it; not while it is only held back. Only then is it blamed for the owner''s death.';

drop index job_ready;
create index job_ready on job (tag, batch_id, lo) where lease_until is null and deaths = 0;
create index job_blamed on job (tag, batch_id, lo) where deaths > 0;

comment on column batch.deleted_at is 'Hidden from then on, its name given back; its rows go in the background.';

-- Batches that end when they have no job left.
create index batch_ending on batch (id) where state in (2, 4);
drop index batch_sealed;
create index batch_cancelling on batch (id) where state = 4;
create index batch_deleted on batch (id) where deleted_at is not null;
create index batch_newest on batch (tenant_id, id desc) where deleted_at is null;
