-- How long batches are kept, and how their rows go: by days, dropped whole, rather than one by one.

-- Nothing here locks job, so a migration under load waits, and deadlocks with nobody.
lock table batch in access exclusive mode;

alter table batch
    add column keep interval not null default interval '168 hours',
    add column keep_cancelled interval not null default interval '24 hours',
    add column purge_at timestamptz,
    add constraint batch_purge_check check (purge_at is null or deleted_at is not null),
    add constraint batch_keep_check check (keep >= interval '0' and keep_cancelled >= interval '0');
comment on column batch.keep is 'For how long it stays after it has SUCCEEDED.';
comment on column batch.keep_cancelled is 'For how long it stays after it was CANCELLED.';
comment on column batch.expires_at is 'When it is hidden like a deleted one, if it has ended by then. Unset while it is OPEN; moved when it ends.';
comment on column batch.purge_at is
    'Of a hidden batch: from then on its rows are removed one by one; until then they wait for their day to be dropped whole.';

-- As job: many small updates, and nothing may wait for a fifth of all batches to change.
alter table batch set (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 500,
    autovacuum_analyze_scale_factor = 0.05
);

-- Open batches by an instant that never changes: an index over appended_at would have to be written at each append.
create index batch_open on batch (created_at) where state = 1;
create index batch_expiring on batch (expires_at) where state in (3, 5) and deleted_at is null;
-- Batches whose rows may still be read or written, by day: one of them keeps its day.
create index batch_alive on batch (part) where deleted_at is null or state not in (3, 5);
create index batch_hidden on batch (part, id) where deleted_at is not null and state in (3, 5);
-- Told apart from the one before by its condition, not only by its columns: while there are few such rows, the planner takes either for the other.
create index batch_purge on batch (purge_at, id) where purge_at is not null;
drop index batch_deleted;

-- Replaces the one of 0001: partitions are made with settings of their own. They are only filled, read for some days and dropped. The vacuum that inserts
-- alone would set off reads and writes all of it (8 GB for 100 million puzzles) to freeze rows that are gone long before their age matters, and to mark pages for
-- index-only scans, of which there are none. Rows that are deleted one by one still set off a vacuum, and age does where rows are kept for very long.
create or replace function ensure_partitions(day integer) returns void
language plpgsql as $$
declare
    parent text;
    child text;
begin
    perform pg_advisory_xact_lock(hashtext('sudoku-batch partitions'));
    foreach parent in array array['payload', 'result', 'result_piece'] loop
        child := parent || '_' || day;
        -- By a query, whose snapshot is taken now, after the wait for the lock: a look-up in the catalogue's cache may still miss what the
        -- process before us has made.
        if not exists (
            select from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = parent::regclass and c.relname = child
        ) then
            execute format('create table %I (like %I including all) with (autovacuum_vacuum_insert_threshold = -1)', child, parent);
            execute format('alter table %I attach partition %I for values in (%s)', parent, child, day);
        end if;
    end loop;
end
$$;

do $$
declare
    child regclass;
begin
    for child in select inhrelid from pg_inherits where inhparent in ('payload'::regclass, 'result'::regclass, 'result_piece'::regclass) loop
        execute format('alter table %s set (autovacuum_vacuum_insert_threshold = -1)', child);
    end loop;
end
$$;

create function partition_days() returns setof integer
language sql stable as $$
    select distinct substring(c.relname from '_(\d+)$')::integer
    from pg_inherits i
    join pg_class p on p.oid = i.inhparent
    join pg_class c on c.oid = i.inhrelid
    where i.inhparent in ('payload'::regclass, 'result'::regclass, 'result_piece'::regclass) and c.relname ~ ('^' || p.relname || '_\d+$')
$$;
comment on function partition_days is 'The days (since 1970-01-01 UTC) that have partitions of payload, result or result_piece, by their names.';

-- Drops the partitions of a past day whose batches are all hidden and ended, all three or none. Dropping one locks its parent against everyone for a moment, and
-- whoever comes while it waits for that lock waits behind it: so it waits for a tenth of a second at the most, and not at all for what will hold its lock for
-- longer, a dump or a report. Then it says busy, has changed nothing, and is called again later.
create function drop_day(day integer) returns text
language plpgsql
set lock_timeout = '100ms'
as $$
declare
    parent text;
    alive integer;
begin
    -- An hour later than midnight: no create takes so long that its batch, of the day on which it began, is still to come.
    if day >= (extract(epoch from now())::bigint - 3600) / 86400 then
        return 'in use';
    end if;
    -- The lock of ensure_partitions: one process is at the partitions at a time. The others have nothing to wait for.
    if not pg_try_advisory_xact_lock(hashtext('sudoku-batch partitions')) then
        return 'busy';
    end if;
    -- Whose beginning is not shown is no process of this service.
    if exists (
        select
        from pg_locks l
        left join pg_stat_activity a on a.pid = l.pid
        where l.locktype = 'relation'
            and l.database = (select oid from pg_database where datname = current_database())
            and l.pid is distinct from pg_backend_pid()
            and (
                l.relation in (
                    select to_regclass(name || suffix)
                    from unnest(array['payload', 'result', 'result_piece']) as name, unnest(array['', '_' || day]) as suffix
                )
                or (l.relation = 'batch'::regclass and l.mode not in ('AccessShareLock', 'RowShareLock', 'ShareLock'))
            )
            and coalesce(a.xact_start < clock_timestamp() - interval '1 second', true)
    ) then
        return 'busy';
    end if;
    begin
        -- In the order in which appends lock them. Whoever was about to change a batch has done so now, and what they did is seen by the next statement.
        lock table batch in share mode;
        -- The first that lives from that day on: a plain comparison may be planned as a walk through all batches, and everyone waits meanwhile.
        select b.part into alive
        from batch b
        where b.part >= day and (b.deleted_at is null or b.state not in (3, 5))
        order by b.part
        limit 1;
        if alive = day then
            return 'in use';
        end if;
        foreach parent in array array['payload', 'result', 'result_piece'] loop
            execute format('drop table if exists %I', parent || '_' || day);
        end loop;
    exception when lock_not_available or deadlock_detected then
        return 'busy';
    end;
    return 'dropped';
end
$$;
comment on function drop_day is
    'Drops the partitions of a past day (days since 1970-01-01 UTC) in which no batch lives: dropped, in use or busy. Safe to repeat and to race.';

-- What has ended before now is kept as if it had ended now.
update batch set expires_at = now() + case when state in (2, 3) then keep else keep_cancelled end where state <> 1;
update batch set purge_at = now() where deleted_at is not null;

-- Programs that are older than this may still run, and know nothing of it.
create function keep_of_older_program() returns trigger
language plpgsql as $$
begin
    if new.state <> 1 and new.expires_at is null then
        new.expires_at := now() + case when new.state in (2, 3) then new.keep else new.keep_cancelled end;
    end if;
    if new.deleted_at is not null and new.purge_at is null then
        new.purge_at := now();
    end if;
    return new;
end
$$;
create trigger keep_of_older_program
    before update on batch
    for each row
    when ((new.state <> 1 and new.expires_at is null) or (new.deleted_at is not null and new.purge_at is null))
    execute function keep_of_older_program();
comment on function keep_of_older_program is 'Sets when a batch expires, and when a deleted one goes, where the program that ended or deleted it did not.';
