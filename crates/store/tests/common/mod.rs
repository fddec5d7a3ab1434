//! What the tests of the queue share.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test program uses some of it")]

use std::{collections::BTreeMap, time::Duration};

use e2e::Database;
use store::{
    Batch, Beat, Chunk, Completion, Config, Created, Durability, Error, JobKey, NewBatch, OutcomeCounts,
    Piece, Store, WorkerId,
};

pub const LEASE: Duration = Duration::from_secs(30);
pub const NO_LEASE: Duration = Duration::ZERO;
pub const FORMAT: i16 = 7;

pub async fn store(database: &Database) -> Store {
    let store = Store::connect(&Config {
        url: database.url(),
        connections_max: 12,
        durability: Durability::Synchronous,
        application_name: "test".to_owned(),
        is_pooled: false,
    })
    .await
    .unwrap();
    store.migrate().await.unwrap();
    store
}

pub async fn batch(store: &Store, name: &str) -> Batch {
    batch_of(store, "default", name, 0).await
}

/// A batch of a tenant of that name.
pub async fn batch_of(store: &Store, tenant: &str, name: &str, priority: i16) -> Batch {
    let tenant = store.tenant(tenant).await.unwrap();
    let new = NewBatch {
        name: name.to_owned(),
        name_is_chosen: true,
        request_id: None,
        placement_limit: 10,
        priority,
        display_name: String::new(),
        labels: BTreeMap::new(),
    };
    match store.create_batch(tenant, &new).await.unwrap() {
        Created::New(batch) => batch,
        other => panic!("{other:?}"),
    }
}

/// Appends so many chunks of so many puzzles.
pub async fn append(store: &Store, batch: &Batch, from: u64, chunks: u64, puzzles: u64) {
    let chunks = (0..chunks).map(|place| {
        let lo = from + place * puzzles;
        chunk(lo, lo + puzzles)
    });
    store.append(batch.key, from, FORMAT, chunks.collect()).await.unwrap();
}

/// A chunk of `[lo, hi)` in two pieces that hold their own bounds.
pub fn chunk(lo: u64, hi: u64) -> Chunk {
    let middle = lo.midpoint(hi);
    let piece = |lo: u64, hi: u64| Piece { lo, hi, data: format!("{lo}-{hi}").into_bytes() };
    let ranges = [(lo, middle), (middle, hi)].into_iter().filter(|(lo, hi)| lo < hi);
    Chunk { pieces: ranges.map(|(lo, hi)| piece(lo, hi)).collect() }
}

pub fn completion(mid: u64, puzzles: i32) -> Completion {
    let counts = OutcomeCounts { unique: puzzles, placements: 5, ..OutcomeCounts::default() };
    let lo = mid - u64::try_from(puzzles).unwrap();
    Completion { mid, counts, format: FORMAT, pieces: vec![Piece { lo, hi: mid, data: vec![1, 2, 3] }] }
}

pub async fn claim_one(store: &Store, worker: WorkerId, lease: Duration) -> JobKey {
    let jobs = store.claim(worker, 1, lease).await.unwrap();
    assert_eq!(jobs.len(), 1);
    jobs[0].key
}

/// Prolongs leases under which nothing is being counted.
pub async fn heartbeat(
    store: &Store,
    worker: WorkerId,
    held: &[JobKey],
    lease: Duration,
) -> Result<Vec<JobKey>, Error> {
    let beats: Vec<Beat> = held.iter().map(|key| Beat { key: *key, running_placements: 0 }).collect();
    store.heartbeat(worker, &beats, lease).await
}

/// Expires without the grace after a restart; gives the leases.
pub async fn expire(store: &Store) -> Vec<JobKey> {
    store.expire(100, Duration::ZERO).await.unwrap().into_iter().map(|expired| expired.key).collect()
}
