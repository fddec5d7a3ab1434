-- The ends of jobs and batches: puzzles that end their workers, batches that are cancelled or deleted, and the list of batches.

alter table job add column dead_owners uuid[];
comment on column job.dead_owners is 'The owners whose deaths are counted in deaths: one that turns out to be alive takes its own back.';
comment on column job.deaths is 'How many of its owners fell silent after they had begun to solve it. Above 0 it runs alone in its process.';

create index job_blamed on job (tag, batch_id, lo) where lease_until is null and deaths > 0;

comment on column batch.deleted_at is 'Hidden from then on, its name given back; its rows go in the background.';

-- Batches that end when they have no job left. Also serves the look for sealed ones alone.
create index batch_ending on batch (id) where state in (2, 4);
drop index batch_sealed;
create index batch_cancelling on batch (id) where state = 4;
create index batch_deleted on batch (id) where deleted_at is not null;
create index batch_newest on batch (tenant_id, id desc) where deleted_at is null;
