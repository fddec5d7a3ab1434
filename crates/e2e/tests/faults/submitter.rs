//! Clients that submit one batch after the other, and leave, cancel and delete at random.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use client::{Client, Error, NewBatch, Position, PuzzleResult, Start, v1};
use e2e::{Numbers, PATIENCE};

use crate::{Fault, PUZZLES, Scene};

/// Puzzles of one batch, at the most.
const BATCH_PUZZLES_MAX: u64 = 600;
/// A client whose call failed tries again after this.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// What a client has done to a batch at last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Sealed,
    Cancelled,
    Deleted,
}

/// One client, which submits one batch after the other.
pub(crate) struct Submitter {
    scene: Arc<Scene>,
    client: Client,
    numbers: Numbers,
    name: String,
}

impl Submitter {
    pub(crate) async fn start(scene: Arc<Scene>, number: u64) -> Self {
        let client = Client::connect(scene.proxy.url()).await.unwrap();
        Self { scene, client, numbers: Numbers::of(number), name: format!("client-{number}") }
    }

    /// Submits until the faults are over; gives what became of the batches, by their ids.
    pub(crate) async fn run(mut self) -> BTreeMap<String, End> {
        let mut ends = BTreeMap::new();
        while !self.scene.is_over() {
            let id = format!("{}-{}", self.name, ends.len());
            let end = self.batch(&id).await;
            ends.insert(id, end);
        }
        ends
    }

    async fn batch(&mut self, id: &str) -> End {
        let count = 1 + self.numbers.below(BATCH_PUZZLES_MAX);
        let from = self.numbers.below(PUZZLES - count);
        let new =
            NewBatch { id: id.to_owned(), placement_limit: Some(self.scene.limit), ..NewBatch::default() };
        let name = again(|| {
            let (client, new) = (self.client.clone(), new.clone());
            async move { client.create_batch(new).await }
        })
        .await
        .unwrap()
        .name;
        let end = match self.numbers.below(4) {
            0 => End::Cancelled,
            1 => End::Deleted,
            _ => End::Sealed,
        };
        let stays_open = end != End::Sealed && self.numbers.below(2) == 0;
        let mut held = 0;
        while held < count && !(stays_open && held > count / 2) {
            held = self.append(&name, from, held, count).await;
        }
        if !stays_open {
            again(|| {
                let (client, name) = (self.client.clone(), name.clone());
                async move { client.seal(&name, Some(held)).await }
            })
            .await
            .unwrap();
        }
        if self.ended(&name, end).await != End::Deleted {
            self.follow(&name, from, held, end).await;
        }
        end
    }

    /// Appends the next message; gives what the batch holds then.
    async fn append(&mut self, name: &str, from: u64, held: u64, count: u64) -> u64 {
        let next = count.min(held + 1 + self.numbers.below(400));
        let places = usize::try_from(from + held).unwrap()..usize::try_from(from + next).unwrap();
        let append = || {
            let (client, name) = (self.client.clone(), name.to_owned());
            let puzzles = self.scene.puzzles[places.clone()].to_vec();
            async move { client.append(&name, Some(held), puzzles).await }
        };
        let patience = Duration::from_millis(self.numbers.below(6));
        if self.numbers.below(3) == 0 && tokio::time::timeout(patience, append()).await.is_err() {
            self.scene.happened(Fault::Append);
        }
        assert_eq!(again(append).await.unwrap(), next);
        self.scene.went_well();
        next
    }

    /// Does to a batch what it is to end with.
    async fn ended(&self, name: &str, end: End) -> End {
        let call = || {
            let (client, name) = (self.client.clone(), name.to_owned());
            async move {
                match end {
                    End::Sealed => Ok(()),
                    End::Cancelled => client.cancel_batch(&name).await.map(|_| ()),
                    End::Deleted => client.delete_batch(&name, true).await,
                }
            }
        };
        match again(call).await {
            // Its answer to the first call was lost.
            Err(error) if end == End::Deleted && error.reason().as_deref() == Some("BATCH_NOT_FOUND") => {}
            done => done.unwrap(),
        }
        match end {
            End::Sealed => {}
            End::Cancelled => self.scene.happened(Fault::Cancel),
            End::Deleted => self.scene.happened(Fault::Delete),
        }
        end
    }

    /// Reads all results of a batch: each index comes once, with the right answer.
    async fn follow(&mut self, name: &str, from: u64, count: u64, end: End) {
        let mut came = vec![false; usize::try_from(count).unwrap()];
        let mut position = Position::Index(0);
        loop {
            let start = if self.numbers.below(2) == 0 { Start::ordered(0) } else { Start::as_finished() };
            let start = start.at(position.clone());
            let mut results = again(|| {
                let (client, name, start) = (self.client.clone(), name.to_owned(), start.clone());
                async move { client.results(&name, start).await }
            })
            .await
            .unwrap();
            let mut runs = 1 + self.numbers.below(20);
            while runs > 0 || self.scene.is_over() {
                match results.next().await {
                    Ok(None) => {
                        assert!(came.iter().all(|came| *came), "{name}: a result is missing");
                        return;
                    }
                    Ok(Some(run)) => {
                        self.scene.went_well();
                        for result in run {
                            let place = usize::try_from(result.index).unwrap();
                            assert!(!std::mem::replace(&mut came[place], true), "{name}: {place} came twice");
                            self.assert_right(&result, from, end);
                        }
                        position = Position::Token(results.token().unwrap().to_owned());
                    }
                    Err(error) => {
                        assert!(error.is_transient(), "{name}: {error:?}");
                        break;
                    }
                }
                runs = runs.saturating_sub(1);
            }
            if runs == 0 {
                self.scene.happened(Fault::Stream);
            }
        }
    }

    fn assert_right(&self, result: &PuzzleResult, from: u64, end: End) {
        let solution = &self.scene.solutions[usize::try_from(from + result.index).unwrap()];
        match result.outcome {
            // A puzzle may have been alone in the hands of three workers that were killed.
            v1::Outcome::Failed => {}
            v1::Outcome::Cancelled => assert_eq!(end, End::Cancelled),
            v1::Outcome::Unique => assert_eq!(&result.solution, solution),
            v1::Outcome::NoSolution => assert_eq!(*solution, None),
            other => panic!("{other:?}"),
        }
    }
}

/// Calls until there is an answer that will not be another by itself.
async fn again<T, F>(call: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let begun = Instant::now();
    loop {
        match call().await {
            Err(error) if error.is_transient() => {
                assert!(begun.elapsed() < PATIENCE, "{error:?}");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            done => return done,
        }
    }
}
