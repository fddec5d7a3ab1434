//! Many who submit one puzzle at a time: whether they are one tenant or many, they wait for a backlog as long.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use common::{LEASE, append, batch_of, completion, store};
use e2e::Database;
use store::{Store, WorkerId};

mod common;

/// Who each submit one puzzle, and the next when it is solved.
const SUBMITTERS: usize = 32;
/// Of their puzzles, so many are solved.
const PUZZLES: usize = 20 * SUBMITTERS;

/// What it took to solve them beside a backlog.
#[derive(Debug)]
struct Served {
    /// Jobs of the backlog that came before the last of them.
    backlog: u32,
    /// Claims from a puzzle's submit to its own, of all of them together.
    waits: u32,
    /// What went by on the clock of the queue, in nanoseconds.
    clock: i64,
}

/// Submits the next puzzle of a submitter of this tenant; gives its batch.
async fn submit(store: &Store, tenant: &str, name: &str) -> i64 {
    let batch = batch_of(store, tenant, name, 0).await;
    append(store, &batch, 0, 1, 1).await;
    batch.key.id()
}

/// Serves the submitters, who are so many tenants, beside the backlog of another one.
async fn served(tenants: usize) -> Served {
    let database = Database::fresh();
    let store = store(&database).await;
    let backlog = batch_of(&store, "backlog", "backlog", 0).await;
    append(&store, &backlog, 0, 1_000, 4_096).await;
    let clock = || database.value("select last_value from virtual_clock").parse::<i64>().unwrap();
    let begun = clock();
    // Whose puzzle it is, and after how many claims it was submitted.
    let mut waiting = BTreeMap::new();
    for submitter in 0..SUBMITTERS {
        let tenant = format!("tenant-{}", submitter % tenants);
        waiting.insert(submit(&store, &tenant, &format!("first-{submitter}")).await, (tenant, 0));
    }
    let worker = WorkerId::fresh();
    let mut served = Served { backlog: 0, waits: 0, clock: 0 };
    let (mut claims, mut solved) = (0, 0);
    while solved < PUZZLES {
        let key = store.claim(worker, 1, LEASE).await.unwrap().pop().unwrap().key;
        claims += 1;
        let puzzles = i32::try_from(key.hi - key.lo).unwrap();
        store.complete(worker, key, completion(key.hi, puzzles)).await.unwrap();
        if let Some((tenant, submitted)) = waiting.remove(&key.batch_id) {
            served.waits += claims - submitted;
            solved += 1;
            let next = submit(&store, &tenant, &format!("next-{solved}")).await;
            waiting.insert(next, (tenant, claims));
        } else {
            served.backlog += 1;
        }
    }
    served.clock = clock() - begun;
    served
}

fn within_a_fifth(one: f64, many: f64) -> bool {
    (one - many).abs() <= many / 5.0
}

#[tokio::test]
async fn thirty_two_submitters_of_one_puzzle_are_served_alike_as_one_tenant_and_as_thirty_two() {
    let (one, many) = (served(1).await, served(SUBMITTERS).await);
    let told = format!("as one tenant {one:?}, as many {many:?}");
    assert!(many.backlog > 0, "the backlog has its turns too: {told}");
    assert!(within_a_fifth(one.backlog.into(), many.backlog.into()), "{told}");
    assert!(within_a_fifth(one.waits.into(), many.waits.into()), "{told}");
    #[expect(clippy::cast_precision_loss, reason = "about so much")]
    let clocks = (one.clock as f64, many.clock as f64);
    assert!(within_a_fifth(clocks.0, clocks.1), "{told}");
}
