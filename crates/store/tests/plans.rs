//! The statements that run all the time use their indexes, also when PostgreSQL plans them once for all parameters and has never counted the rows.
#![allow(clippy::unwrap_used, reason = "tests")]

use common::{FORMAT, batch, chunk, store};
use e2e::Database;

mod common;

/// The generic plan of a statement of `queries/`, whose parameters have these types.
fn plan(database: &Database, sql: &str, types: &str) -> String {
    let values = vec!["null"; types.split(", ").count()].join(", ");
    let (types, values) = if types.is_empty() {
        (String::new(), String::new())
    } else {
        (format!("({types})"), format!("({values})"))
    };
    let script = format!(
        "set plan_cache_mode = force_generic_plan; prepare statement {types} as {sql}; explain execute statement {values}"
    );
    database.query(&script).join("\n")
}

const COMPLETE_TYPES: &str = "uuid, float8, bigint[], bigint[], bigint[], integer[], integer[], integer[], integer[], integer[], integer[], integer[], \
    integer[], integer[], bigint[], bigint[], smallint[], bigint[], bigint[], smallint, bytea[], bigint, bigint, bigint";
const PUT_BACK_TYPES: &str = "uuid, bigint, bigint, bigint, integer, bigint, integer, integer, integer, integer, integer, integer, integer, integer, bigint, \
    smallint[], bigint[], bigint[], smallint, bytea[], bigint, bigint[], bigint[], bigint, bigint";
const APPEND_TYPES: &str = "bigint, bigint, bigint, bigint[], bigint[], bigint[], smallint[], bigint[], bigint[], smallint, bytea[], \
    bigint, bigint, bigint";
/// Whether a plan sorts about as many rows as there are jobs.
fn sorts_all(plan: &str) -> bool {
    plan.lines().filter(|line| line.contains("Sort ")).any(|line| {
        let rows = line
            .split("rows=")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .and_then(|rows| rows.parse::<u64>().ok());
        rows.is_some_and(|rows| rows > 50_000)
    })
}

const EXPIRE: &str = include_str!("../queries/expire.sql");
/// Each of them with the types of its parameters and the indexes that it must use.
const HOT: [(&str, &str, &[&str]); 21] = [
    (
        include_str!("../queries/claim.sql"),
        "uuid, float8, bigint, bigint, bigint",
        &["job_ready", "job_pkey"],
    ),
    (include_str!("../queries/complete.sql"), COMPLETE_TYPES, &["job_ready", "job_pkey"]),
    (include_str!("../queries/put_back.sql"), PUT_BACK_TYPES, &["job_pkey"]),
    (
        include_str!("../queries/heartbeat.sql"),
        "uuid, float8, bigint[], bigint[], integer[], bigint[]",
        &["job_pkey"],
    ),
    (include_str!("../queries/batch.sql"), "bigint", &["job_running"]),
    (include_str!("../queries/list.sql"), "integer, bigint, smallint[], bigint", &["job_running"]),
    (
        include_str!("../queries/append.sql"),
        APPEND_TYPES,
        &["job_ready", "job_tenant_first", "job_tenant_rest"],
    ),
    (include_str!("../queries/catch_up.sql"), "bigint, bigint", &["job_ready"]),
    (
        include_str!("../queries/reprice.sql"),
        "bigint, bigint, float8, bigint, bigint, bigint",
        &["job_tenant_first", "job_tenant_rest", "job_pkey"],
    ),
    (include_str!("../queries/claim_long.sql"), "bigint, uuid, float8, bigint", &["job_ready_long"]),
    (include_str!("../queries/claim_blamed.sql"), "bigint, uuid, float8", &["job_blamed"]),
    (EXPIRE, "bigint, float8, bigint, smallint", &["job_lease"]),
    (include_str!("../queries/acquit.sql"), "uuid", &["job_blamed"]),
    (include_str!("../queries/look.sql"), "", &["job_blamed", "job_lease"]),
    (include_str!("../queries/unwanted.sql"), "bigint", &["batch_cancelling", "batch_purge"]),
    (include_str!("../queries/finish.sql"), "bigint", &["job_pkey"]),
    (include_str!("../queries/finish_any.sql"), "bigint", &["batch_ending", "job_pkey"]),
    (include_str!("../queries/expire_batches.sql"), "bigint, float8", &["batch_expiring"]),
    (include_str!("../queries/cancel_idle.sql"), "bigint, float8", &["batch_open"]),
    (include_str!("../queries/past_days.sql"), "", &["batch_hidden", "batch_alive"]),
    (include_str!("../queries/purge_day.sql"), "integer, bigint", &["batch_hidden"]),
];

/// Whether a plan writes pieces as they come out of their array: none of them is kept before that, as the rows of a function after "from" are, and those that are
/// sorted or hashed.
fn streams_pieces(plan: &str) -> bool {
    let is_insert = |line: &&str| {
        ["payload", "result_piece"].iter().any(|into| line.contains(&format!("Insert on {into} ")))
    };
    let lines = plan.lines().map(str::trim_start).skip_while(|line| !is_insert(line)).skip(1);
    // Its nodes, each below what takes its rows.
    let nodes: Vec<&str> = lines
        .take_while(|line| !line.starts_with("CTE "))
        .filter_map(|line| line.strip_prefix("->  "))
        .filter(|node| !node.starts_with("Subquery Scan"))
        .collect();
    let keeps =
        |node: &str| ["Hash ", "Sort ", "Materialize ", "Memoize "].iter().any(|kind| node.starts_with(kind));
    let is_kept =
        |two: &[&str]| keeps(two[0]) && !two[0].starts_with("Hash Join") && two[1].starts_with("ProjectSet");
    nodes.iter().any(|node| node.starts_with("ProjectSet"))
        && !nodes.iter().any(|node| node.starts_with("Function Scan"))
        && !nodes.windows(2).any(is_kept)
}

#[test]
fn plans_that_keep_pieces_are_told_from_one_that_does_not() {
    let plan = |nodes: &str| {
        format!(
            "  CTE pieces\n    ->  Insert on result_piece  (rows=0)\n{nodes}\n  CTE next\n    ->  Function Scan on d"
        )
    };
    let streamed = "->  Hash Join  (rows=1)\n  Hash Cond: (a = b)\n  ->  ProjectSet  (rows=10)\n    ->  Result  (rows=1)\n  ->  Hash  (rows=1)\n    ->  CTE Scan on gone g";
    assert!(streams_pieces(&plan(streamed)));
    for kept in [
        "->  Nested Loop  (rows=1)\n  ->  CTE Scan on g\n  ->  Function Scan on p  (rows=10)",
        "->  Hash Join  (rows=1)\n  ->  CTE Scan on g\n  ->  Hash  (rows=10)\n    ->  Subquery Scan on p  (rows=10)\n      ->  ProjectSet  (rows=10)",
        "->  Merge Join  (rows=1)\n  ->  Sort  (rows=10)\n    Sort Key: p.job\n    ->  ProjectSet  (rows=10)",
        "->  Nested Loop  (rows=1)\n  ->  CTE Scan on g\n  ->  Materialize  (rows=10)\n    ->  ProjectSet  (rows=10)",
    ] {
        assert!(!streams_pieces(&plan(kept)), "{kept}");
    }
}

#[tokio::test]
async fn pieces_are_written_as_they_come_and_not_kept_before() {
    let database = Database::fresh();
    store(&database).await;
    for (sql, types) in [
        (include_str!("../queries/append.sql"), APPEND_TYPES),
        (include_str!("../queries/complete.sql"), COMPLETE_TYPES),
        (include_str!("../queries/put_back.sql"), PUT_BACK_TYPES),
    ] {
        let plan = plan(&database, sql, types);
        assert!(streams_pieces(&plan), "{plan}");
    }
}

#[tokio::test]
async fn hot_statements_use_their_indexes_whatever_the_planner_knows() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "many-jobs").await;
    // As in a queue that has just begun: the catalogue still knows it empty.
    database.execute("analyze job; analyze batch");
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 2)]).await.unwrap();
    database.execute(
        "insert into job (batch_id, lo, hi, chunk_lo, part, tenant_id, tag)
         select batch_id, n * 2, n * 2 + 2, n * 2, part, tenant_id, tag + n from job, generate_series(1, 1000000) as n",
    );
    database.execute(
        "insert into batch (part, tenant_id, name, placement_limit) select 1, 1, 'other-' || n, 0 from generate_series(1, 3000) as n",
    );
    for knowledge in ["before it is analysed", "analysed"] {
        for (sql, types, indexes) in HOT {
            let plan = plan(&database, sql, types);
            for index in indexes {
                assert!(plan.contains(index), "{knowledge}: {index} is not used: {plan}");
            }
            assert!(!sorts_all(&plan), "{knowledge}: {plan}");
            // What has expired is joined with all jobs if the planner fears much of it; with nothing expired nothing is read for that.
            assert!(sql == EXPIRE || !plan.contains("Seq Scan on job"), "{knowledge}: {plan}");
        }
        database.execute("analyze job; analyze batch");
    }
}
