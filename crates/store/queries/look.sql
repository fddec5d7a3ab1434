-- What a worker's upkeep has to know: whether blamed jobs wait, and how long until the first lease ends.
select
    exists (select from job where deaths > 0 and lease_until is null) as "any_blamed!",
    (select extract(epoch from min(lease_until) - now())::float8 from job where lease_until is not null) as lease_left
