//! How far running searches are, as batches show it: from heartbeat to heartbeat, and no longer than the lease.
#![allow(clippy::unwrap_used, reason = "tests")]

use common::{FORMAT, LEASE, NO_LEASE, batch, chunk, claim_one, completion, expire, store};
use e2e::Database;
use store::{BatchKey, Beat, JobKey, Rest, Store, WorkerId};

mod common;

/// A worker says how far a search is; returns whether it still holds the lease.
async fn beat(store: &Store, worker: WorkerId, key: JobKey, running_placements: u64) -> bool {
    let beats = [Beat { key, running_placements }];
    store.heartbeat(worker, &beats, LEASE).await.unwrap() == [key]
}

/// What the batch shows, alone and in the list.
async fn shown(store: &Store, batch: BatchKey) -> u64 {
    let tenant = store.tenant("default").await.unwrap();
    let (_, alone) = store.batch_progress(batch).await.unwrap();
    let listed = store.list(tenant, None, &[], 10).await.unwrap();
    let (_, listed) = listed.iter().find(|(listed, _)| listed.key == batch).unwrap();
    assert_eq!(*listed, alone);
    alone.running_placements
}

#[tokio::test]
async fn a_batch_shows_the_sum_of_what_its_searches_have_counted_so_far() {
    let database = Database::fresh();
    let store = store(&database).await;
    let (batch, other) = (batch(&store, "watched").await, batch(&store, "other").await);
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 8), chunk(8, 16), chunk(16, 24)]).await.unwrap();
    let (one, two) = (WorkerId::fresh(), WorkerId::fresh());
    let (first, second) = (claim_one(&store, one, LEASE).await, claim_one(&store, two, LEASE).await);
    assert_eq!(shown(&store, batch.key).await, 0);
    assert!(beat(&store, one, first, 1_000).await && beat(&store, two, second, 200).await);
    assert_eq!((shown(&store, batch.key).await, shown(&store, other.key).await), (1_200, 0));
    assert!(beat(&store, one, first, 3_000).await);
    assert_eq!(shown(&store, batch.key).await, 3_200);
    // Who does not hold the lease says nothing.
    assert!(!beat(&store, two, first, 77).await);
    assert!(!beat(&store, one, JobKey { attempt: 2, ..first }, 77).await);
    assert_eq!(shown(&store, batch.key).await, 3_200);
    // The search has ended, and its job goes on.
    assert!(beat(&store, one, first, 0).await);
    assert_eq!(shown(&store, batch.key).await, 200);
    assert_eq!(
        database.query("select running_placement_count from job order by lo"),
        ["", "200", ""],
        "the row is no longer than it was"
    );
}

/// The ways in which a lease ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Completed,
    PutBack,
    Released,
    HeldBack,
    Expired,
    Cancelled,
}

#[tokio::test]
async fn what_a_search_has_counted_is_not_kept_when_its_lease_ends_by_whatever_way() {
    let database = Database::fresh();
    let store = store(&database).await;
    let kept = "select count(*) from job where running_placement_count is not null";
    for end in [End::Completed, End::PutBack, End::Released, End::HeldBack, End::Expired, End::Cancelled] {
        database.execute("delete from job");
        let batch = batch(&store, &format!("{end:?}").to_lowercase()).await;
        store.append(batch.key, 0, FORMAT, vec![chunk(0, 8)]).await.unwrap();
        let worker = WorkerId::fresh();
        let key = claim_one(&store, worker, LEASE).await;
        assert!(beat(&store, worker, key, 1_000).await);
        assert_eq!((shown(&store, batch.key).await, &*database.value(kept)), (1_000, "1"), "{end:?}");
        match end {
            End::Completed => store.complete(worker, key, completion(8, 8)).await.unwrap(),
            End::PutBack => store.complete(worker, key, completion(3, 3)).await.unwrap(),
            End::Released => assert_eq!(store.release(worker, &[key]).await.unwrap(), 1),
            End::HeldBack => assert!(store.hold_back(worker, key, LEASE).await.unwrap()),
            End::Expired => {
                let beats = [Beat { key, running_placements: 2_000 }];
                store.heartbeat(worker, &beats, NO_LEASE).await.unwrap();
                assert_eq!(expire(&store).await, [key]);
            }
            End::Cancelled => {
                store.cancel(batch.key).await.unwrap().unwrap();
                assert_eq!(shown(&store, batch.key).await, 1_000, "its search is still running");
                assert!(store.drop_held(worker, key).await.unwrap());
            }
        }
        assert_eq!((shown(&store, batch.key).await, &*database.value(kept)), (0, "0"), "{end:?}");
        assert!(!beat(&store, worker, key, 3_000).await, "a heartbeat that was under way");
        assert_eq!(shown(&store, batch.key).await, 0, "{end:?}");
    }
}

#[tokio::test]
async fn a_search_that_goes_on_alone_is_shown_on() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "shed").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 8)]).await.unwrap();
    let worker = WorkerId::fresh();
    let key = claim_one(&store, worker, LEASE).await;
    assert!(beat(&store, worker, key, 1_000).await);
    let rest = Rest { ends: vec![4, 8], ..Rest::default() };
    assert!(store.shed(worker, key, &rest).await.unwrap());
    assert_eq!(shown(&store, batch.key).await, 1_000);
    assert!(beat(&store, worker, JobKey { hi: 1, ..key }, 2_000).await);
    assert_eq!(shown(&store, batch.key).await, 2_000);
}

#[tokio::test]
async fn what_an_older_program_left_in_a_job_that_it_has_put_back_is_not_shown() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "older").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 8)]).await.unwrap();
    let worker = WorkerId::fresh();
    let key = claim_one(&store, worker, LEASE).await;
    assert!(beat(&store, worker, key, 1_000).await);
    database.execute("update job set owner = null, lease_until = null, started = false");
    assert_eq!(shown(&store, batch.key).await, 0);
}
