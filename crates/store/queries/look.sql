-- What a worker's upkeep has to see to, in one look. $1 batches at the most.
select
    exists (select from job where deaths > 0 and lease_until is null) as "any_blamed!",
    (select extract(epoch from min(lease_until) - now())::float8 from job where lease_until is not null) as lease_left,
    array(select id from batch where state = 4 order by id limit $1) as "cancelling!",
    exists (select from batch where deleted_at is not null and state in (3, 5)) as "any_deleted!"
