//! What the tables must hold when all is over.

use std::collections::BTreeMap;

use e2e::Database;

/// Remembers each time that a fencing token has fallen.
pub(crate) const REMEMBER_FALLS: &str = "
    create table fallen (batch_id bigint, lo bigint);
    create function remember_falls() returns trigger language plpgsql as $$
    begin
        if tg_op = 'INSERT' then
            -- A part that was cut off later than its chunk was appended has been claimed.
            if new.lo > new.chunk_lo and new.attempt = 0 then insert into fallen values (new.batch_id, new.lo); end if;
        elsif new.attempt < old.attempt then
            insert into fallen values (new.batch_id, new.lo);
        end if;
        return new;
    end $$;
    create trigger remember_falls before insert or update on job for each row execute function remember_falls()";

/// Rows that must not be there when all is over.
pub(crate) const WRONG: [(&str, &str); 11] = [
    ("jobs", "select from job"),
    ("batches that have not ended or should be gone", "select from batch where state not in (3, 5) or deleted_at is not null"),
    ("fallen attempts", "select from fallen"),
    (
        "batches whose results do not cover them",
        "select from batch b left join result r on (r.part, r.batch_id) = (b.part, b.id) group by b.id
        having (coalesce(min(r.lo), 0), coalesce(max(r.hi), 0), coalesce(sum(r.hi - r.lo), 0)) is distinct from (0, b.puzzle_count, b.puzzle_count)",
    ),
    (
        "results with a gap or another before them",
        "select from (select lo, lag(hi, 1, 0::bigint) over (partition by part, batch_id order by lo) as before from result) r where lo <> before",
    ),
    (
        "batches whose puzzles are not stored once",
        "select from batch b left join payload p on (p.part, p.batch_id) = (b.part, b.id) group by b.id
        having (coalesce(min(p.lo), 0), coalesce(max(p.hi), 0), coalesce(sum(p.hi - p.lo), 0)) is distinct from (0, b.puzzle_count, b.puzzle_count)",
    ),
    (
        "payloads with a gap or another before them",
        "select from (select lo, lag(hi, 1, 0::bigint) over (partition by part, batch_id order by lo) as before from payload) p where lo <> before",
    ),
    (
        "results whose pieces are not theirs",
        "select from result r left join result_piece p on (p.part, p.batch_id, p.result_lo) = (r.part, r.batch_id, r.lo)
        group by r.part, r.batch_id, r.lo
        having (min(p.lo), max(p.hi), sum(p.hi - p.lo), max(p.piece) + 1) is distinct from (r.lo, r.hi, r.hi - r.lo, count(p))
            and (r.cancelled_count + r.failed_count < r.hi - r.lo or count(p) > 0)",
    ),
    (
        "pieces of no result",
        "select from result_piece p where not exists (select from result r where (r.part, r.batch_id, r.lo) = (p.part, p.batch_id, p.result_lo))",
    ),
    (
        "rows of batches that are gone",
        "select from (select batch_id from payload union all select batch_id from result union all select batch_id from result_piece) r
        where not exists (select from batch b where b.id = r.batch_id)",
    ),
    (
        "results that were cancelled in a batch that was not, or never claimed",
        "select from result r join batch b on b.id = r.batch_id
        where (r.cancelled_count > 0 and b.state <> 5) or (r.attempt < 1 and r.cancelled_count < r.hi - r.lo)",
    ),
];

pub(crate) fn count(database: &Database, rows: &str) -> u64 {
    database.value(&format!("select count(*) from ({rows}) as rows")).parse().unwrap()
}

/// The batches that are there, by their ids.
pub(crate) fn states(database: &Database) -> BTreeMap<String, bool> {
    let rows = database.query("select name, state = 3 from batch");
    let state = |row: &String| row.split_once('|').map(|(name, state)| (name.to_owned(), state == "t"));
    rows.iter().filter_map(state).collect()
}
