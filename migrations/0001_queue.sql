-- The whole queue: who submits (tenant), what (batch, payload), what is left to do (job), what came out (result, result_piece).
-- README.md beside this file draws the states. All instants are the database's own clock.

create table tenant (
    id integer generated always as identity,
    name text not null,
    weight integer not null default 1,
    created_at timestamptz not null default now(),
    constraint tenant_pkey primary key (id),
    constraint tenant_name_key unique (name),
    constraint tenant_name_check check (name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    constraint tenant_weight_check check (weight between 1 and 1000)
);
comment on table tenant is 'Whose batches: a name on the wire, a number everywhere else.';
comment on column tenant.weight is 'Share of the workers against other tenants.';

insert into tenant (name) values ('default');

create table batch (
    id bigint generated always as identity,
    part integer not null,
    tenant_id integer not null,
    name text not null,
    request_id uuid,
    state smallint not null default 1,
    placement_limit bigint not null,
    priority smallint not null default 0,
    display_name text not null default '',
    labels jsonb not null default '{}',
    puzzle_count bigint not null default 0,
    created_at timestamptz not null default now(),
    appended_at timestamptz not null default now(),
    sealed_at timestamptz,
    ended_at timestamptz,
    expires_at timestamptz,
    deleted_at timestamptz,
    constraint batch_pkey primary key (id),
    constraint batch_tenant_fkey foreign key (tenant_id) references tenant (id),
    constraint batch_name_key unique (tenant_id, name),
    constraint batch_request_key unique (tenant_id, request_id),
    constraint batch_name_check check (name ~ '^[a-z0-9-]{4,63}$'),
    constraint batch_state_check check (state between 1 and 5),
    constraint batch_sealed_check check (state not in (2, 3) or sealed_at is not null),
    constraint batch_ended_check check ((state in (3, 5)) = (ended_at is not null)),
    constraint batch_limit_check check (placement_limit between 0 and 1000000000000),
    constraint batch_priority_check check (priority between 0 and 9),
    constraint batch_puzzle_count_check check (puzzle_count between 0 and 1000000000)
)
with (fillfactor = 50);
comment on table batch is 'What a client submits. No counters of what is done: a row that every completion writes would cost half the throughput.';
comment on column batch.part is 'Retention slot: days since 1970-01-01 UTC at creation; the partition that holds the batch''s payload and results.';
comment on column batch.name is 'The client''s id for it, unique for the tenant.';
comment on column batch.request_id is 'Makes a repeated create find the same batch.';
comment on column batch.state is '1 OPEN, 2 SEALED, 3 SUCCEEDED, 4 CANCELLING, 5 CANCELLED: the numbers of sudoku.v1.';
comment on column batch.placement_limit is 'Placements counted at the most for one puzzle; 0: none are counted.';
comment on column batch.priority is 'Head start in the queue, 0 to 9.';
comment on column batch.puzzle_count is 'Puzzles appended so far: the offset that the next append must name.';
comment on column batch.expires_at is 'When its rows may go.';
comment on column batch.deleted_at is 'Hidden from then on; its rows go later.';

create index batch_sealed on batch (id) where state = 2;

create table payload (
    part integer not null,
    batch_id bigint not null,
    chunk_lo bigint not null,
    piece smallint not null,
    lo bigint not null,
    hi bigint not null,
    format smallint not null,
    data bytea not null,
    constraint payload_pkey primary key (part, batch_id, chunk_lo, piece),
    constraint payload_range_check check (chunk_lo <= lo and lo < hi),
    constraint payload_data_check check (octet_length(data) <= 8000)
)
partition by list (part);
-- PLAIN: a piece fits its page, so nothing is compressed and nothing goes through TOAST.
alter table payload alter column data set storage plain;
comment on table payload is 'The puzzles of a chunk, packed, in pieces that can each be read alone.';
comment on column payload.chunk_lo is 'Index of the chunk''s first puzzle: names the chunk.';
comment on column payload.lo is 'Index of the piece''s first puzzle.';
comment on column payload.hi is 'Index after the piece''s last puzzle.';
comment on column payload.format is 'How data is packed: the payload format of crates/packing.';

create table job (
    batch_id bigint not null,
    lo bigint not null,
    hi bigint not null,
    chunk_lo bigint not null,
    part integer not null,
    tenant_id integer not null,
    tag bigint not null,
    attempt integer not null default 0,
    deaths smallint not null default 0,
    started boolean not null default false,
    owner uuid,
    lease_until timestamptz,
    constraint job_pkey primary key (batch_id, lo),
    constraint job_batch_fkey foreign key (batch_id) references batch (id),
    constraint job_range_check check (chunk_lo <= lo and lo < hi),
    constraint job_lease_check check ((owner is null) = (lease_until is null)),
    constraint job_started_check check (not started or owner is not null),
    constraint job_attempt_check check (attempt >= 0 and deaths >= 0)
)
with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.05
);
comment on table job is 'A range of a chunk that is still to be solved. The only churning table: the row goes when the range is done.';
comment on column job.lo is 'Index of the first puzzle left to do.';
comment on column job.hi is 'Index after the last one.';
comment on column job.tag is 'Place in the queue, smallest first.';
comment on column job.attempt is 'How often it was claimed: the fencing token. Never goes down.';
comment on column job.deaths is 'How often its owner died after it had begun to solve it.';
comment on column job.started is 'Whether its owner has begun to solve it: only then is it blamed for the owner''s death.';
comment on column job.owner is 'The worker process that holds the lease, by the uuid of its start.';
comment on column job.lease_until is 'Until when; after that anyone may put it back.';

create index job_ready on job (tag, batch_id, lo) where lease_until is null;
create index job_lease on job (lease_until) where lease_until is not null;

create table result (
    part integer not null,
    batch_id bigint not null,
    lo bigint not null,
    hi bigint not null,
    attempt integer not null,
    unique_count integer not null default 0,
    multiple_count integer not null default 0,
    no_solution_count integer not null default 0,
    invalid_count integer not null default 0,
    undecided_count integer not null default 0,
    failed_count integer not null default 0,
    cancelled_count integer not null default 0,
    over_limit_count integer not null default 0,
    placement_count bigint not null default 0,
    finished_at timestamptz not null default now(),
    constraint result_pkey primary key (part, batch_id, lo),
    constraint result_range_check check (lo < hi),
    constraint result_count_check check (
        unique_count + multiple_count + no_solution_count + invalid_count + undecided_count + failed_count + cancelled_count = hi - lo
    )
)
partition by list (part);
comment on table result is 'One narrow header a finished range. Progress is the sum of these.';
comment on column result.attempt is 'The fencing token of the lease under which the range was finished.';
comment on column result.over_limit_count is 'Puzzles whose placements were over the batch''s limit.';
comment on column result.placement_count is 'Placements of all the puzzles that were counted to the end.';

create table result_piece (
    part integer not null,
    batch_id bigint not null,
    result_lo bigint not null,
    piece smallint not null,
    lo bigint not null,
    hi bigint not null,
    format smallint not null,
    data bytea not null,
    constraint result_piece_pkey primary key (part, batch_id, result_lo, piece),
    constraint result_piece_range_check check (result_lo <= lo and lo < hi),
    constraint result_piece_data_check check (octet_length(data) <= 8000)
)
partition by list (part);
alter table result_piece alter column data set storage plain;
comment on table result_piece is 'The verdicts of a finished range, packed, in pieces that can each be read alone. A range that was cancelled whole has none.';
comment on column result_piece.result_lo is 'The lo of its result.';
comment on column result_piece.format is 'How data is packed: the result format of crates/packing.';

-- Makes the partitions of one day, if they are not there. A table is made and filled with its constraints first and attached
-- then: attaching does not stop readers and writers of the other days, as "create table … partition of" would.
create function ensure_partitions(day integer) returns void
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
            execute format('create table %I (like %I including all)', child, parent);
            execute format('alter table %I attach partition %I for values in (%s)', parent, child, day);
        end if;
    end loop;
end
$$;
comment on function ensure_partitions is 'Makes the partitions of the given day (days since 1970-01-01 UTC); safe to repeat and to race.';
