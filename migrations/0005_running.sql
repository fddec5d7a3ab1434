-- How far the searches are that are running: shown to whoever reads the batch, and kept no longer than the lease.

-- Only job: a migration under load waits, and deadlocks with nobody. A column without a default is no rewrite.
alter table job
    add column running_placement_count bigint,
    add constraint job_running_check check (running_placement_count > 0);
comment on column job.running_placement_count is
    'Placements so far in the search of its owner, as the last heartbeat said; null if it has no long one. Whatever ends the lease unsets it. Not tied to the owner by a constraint: older programs put jobs back and do not know it.';

-- Of the few jobs whose searches take longer than a heartbeat: progress is read often, and a batch may have a million jobs. It costs heartbeats nothing: what
-- they prolong is in an index too.
create index job_running on job (batch_id) where running_placement_count is not null;
