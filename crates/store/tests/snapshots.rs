//! What an old snapshot elsewhere, a report or a dump, costs the queue: it keeps every entry of a job that is gone, and claims must not walk through all of them. In
//! blocks, which are the same on every machine.
#![allow(clippy::unwrap_used, reason = "tests")]

use common::{LEASE, append, batch, completion, store};
use e2e::Database;
use store::{Batch, Done, JobKey, Rest, Store, Turn, WorkerId};

mod common;

/// Jobs of one append.
const APPENDED: u64 = 2_000;
/// Of each job, as many as a chunk holds.
const PUZZLES: u64 = 4_096;
/// Blocks of a claim, at the most: it looks 39 s of the clock back, where the entries of 9,500 such jobs stand, some forty to a block.
const BLOCKS_MAX: u64 = 450;

/// Blocks that a claim of one job reads; it is taken back.
fn blocks_of_a_claim(database: &Database) -> u64 {
    let script = format!(
        "set plan_cache_mode = force_generic_plan;
        prepare claim (uuid, float8, bigint, bigint, bigint) as {};
        begin;
        explain (analyze, buffers, costs off, timing off) execute claim (gen_random_uuid(), 30, 1, 39000000000, 250000000);
        rollback",
        include_str!("../queries/claim.sql")
    );
    let plan = database.query(&script);
    // The first is the whole statement's.
    let blocks = plan.iter().find_map(|line| line.trim().strip_prefix("Buffers: shared ")).unwrap();
    let of = |kind: &str| {
        let told = blocks.split_whitespace().find_map(|word| word.strip_prefix(kind));
        told.map_or(0, |count| count.trim_end_matches(',').parse::<u64>().unwrap())
    };
    of("hit=") + of("read=")
}

/// Appends so many jobs and one more, and solves all but that one; `from` jobs are there.
async fn churn(store: &Store, batch: &Batch, from: u64, jobs: u64) {
    let appends = jobs / APPENDED;
    for place in 0..appends {
        append(store, batch, (from + place * APPENDED) * PUZZLES, APPENDED, PUZZLES).await;
    }
    let worker = WorkerId::fresh();
    let mut held = store.claim(worker, 32, LEASE).await.unwrap();
    let mut solved = 0;
    while !held.is_empty() {
        let all = i32::try_from(PUZZLES).unwrap();
        let whole = |key: JobKey| Done { key, completion: completion(key.hi, all), rest: Rest::default() };
        let done: Vec<Done> = held.iter().map(|job| whole(job.key)).collect();
        solved += done.len() as u64;
        held = store.turn(worker, LEASE, &Turn { done: &done, claim: 32 }).await.unwrap().jobs;
    }
    assert!(solved >= jobs);
    append(store, batch, (from + jobs) * PUZZLES, 1, PUZZLES).await;
}

#[tokio::test]
async fn a_claim_beside_an_old_snapshot_reads_no_more_blocks_however_much_was_solved_meanwhile() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "churned").await;
    let _snapshot = database.snapshot();
    let mut read = Vec::new();
    for round in 0..3 {
        churn(&store, &batch, round * 12_001, 12_000).await;
        read.push(blocks_of_a_claim(&database));
    }
    assert!(read.iter().all(|blocks| *blocks <= BLOCKS_MAX), "{read:?}");
}
