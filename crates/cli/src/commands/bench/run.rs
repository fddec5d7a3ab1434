//! One batch through the service: sent and received side by side, every answer checked.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ::solver::{Outcome, PlacementLimit};
use anyhow::{Context as _, bail};
use client::Client;
use tokio::task::JoinSet;

use super::{
    Tally,
    check::solves,
    exchange::{self, Answer, SENT},
    puzzles::{Outcomes, Text, Texts},
};
use crate::{lines::grouped, progress::Progress};

/// How a batch went.
pub(crate) struct Ran {
    /// Its name.
    pub(crate) name: String,
    pub(crate) tally: Tally,
    /// From the call that opens the batch to the last message of the answers.
    pub(crate) took: Duration,
    /// From the first puzzles sent to the first answers received.
    pub(crate) first_result: Duration,
}

/// Sends all puzzles as one batch and receives all answers, which agree with the outcomes that are known of them.
pub(crate) async fn exchange_all(
    client: &Client,
    texts: &Arc<Texts>,
    limit: PlacementLimit,
    outcomes: &mut Outcomes,
    progress: &Progress,
) -> anyhow::Result<Ran> {
    let client = client.clone();
    let mut answers = Answers::new(texts, limit, outcomes);
    let began = Instant::now();
    let name = exchange::open(&client, limit).await?;
    // A task of its own, on another thread than the checks; it ends with this one.
    let mut feeding = JoinSet::new();
    feeding.spawn(feed(client.clone(), name.clone(), Arc::clone(texts)));
    let fed = async { feeding.join_next().await.context("the sending has ended already")?? };
    let received = async {
        let mut results = exchange::answers(&client, &name).await?;
        let mut first = None;
        while exchange::receive(&mut results, |answer| {
            first.get_or_insert_with(Instant::now);
            answers.take(answer)
        })
        .await?
        {
            progress.set_done(answers.tally.puzzles());
        }
        anyhow::Ok((first.context("there was no answer")?, began.elapsed()))
    };
    let (first_sent, (first_received, took)) = tokio::try_join!(fed, received)?;
    let tally = answers.finish()?;
    Ok(Ran { name, tally, took, first_result: first_received.duration_since(first_sent) })
}

/// Sends all puzzles and seals the batch; gives the moment when the first went.
async fn feed(client: Client, name: String, texts: Arc<Texts>) -> anyhow::Result<Instant> {
    let first = Instant::now();
    let mut appender = client.appender(&name, 0);
    for some in texts.chunks(SENT) {
        exchange::send(&mut appender, some).await?;
    }
    let count = appender.finish().await?;
    exchange::seal(&client, &name, count).await?;
    Ok(first)
}

/// What has been answered.
struct Answers<'a> {
    texts: &'a [Text],
    limit: PlacementLimit,
    outcomes: &'a mut Outcomes,
    /// A bit for each index that has come.
    seen: Vec<u64>,
    tally: Tally,
}

impl<'a> Answers<'a> {
    fn new(texts: &'a [Text], limit: PlacementLimit, outcomes: &'a mut Outcomes) -> Self {
        let seen = vec![0; texts.len().div_ceil(64)];
        Self { texts, limit, outcomes, seen, tally: Tally::default() }
    }

    fn take(&mut self, answer: &Answer<'_>) -> anyhow::Result<()> {
        let index = answer.index;
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(puzzle) = self.texts.get(place) else { bail!("puzzle {index} was answered and not sent") };
        let bit = 1 << (place % 64);
        if self.seen[place / 64] & bit != 0 {
            bail!("puzzle {index} was answered twice");
        }
        self.seen[place / 64] |= bit;
        let is_right = match (answer.outcome, answer.solution) {
            (Outcome::Unique | Outcome::Multiple, Some(solution)) => {
                solution.try_into().is_ok_and(|solution| solves(solution, puzzle))
            }
            (Outcome::NoSolution | Outcome::Invalid, None) => true,
            (Outcome::Undecided | Outcome::Failed | Outcome::Cancelled, _) => {
                let puzzle = String::from_utf8_lossy(puzzle);
                bail!("no answer: puzzle {puzzle} is {}; a bench measures answers only", answer.outcome);
            }
            _ => false,
        };
        if !is_right {
            let puzzle = String::from_utf8_lossy(puzzle);
            bail!(
                "a wrong answer: puzzle {puzzle} is {}, its solution {:?}",
                answer.outcome,
                answer.solution.map(String::from_utf8_lossy)
            );
        }
        if let Err(known) = self.outcomes.take(place, answer.outcome) {
            let puzzle = String::from_utf8_lossy(puzzle);
            bail!(
                "a wrong answer: puzzle {puzzle} is {}, and by its digits' other names {known}",
                answer.outcome
            );
        }
        self.tally.add(answer.outcome, answer.placements, self.limit);
        Ok(())
    }

    /// The sums, if every puzzle was answered.
    fn finish(self) -> anyhow::Result<Tally> {
        let (answered, sent) = (self.tally.puzzles(), self.texts.len() as u64);
        if answered != sent {
            bail!("{} of {} puzzles were answered", grouped(answered), grouped(sent));
        }
        Ok(self.tally)
    }
}

#[cfg(test)]
mod tests {
    use ::solver::Placements;

    use super::{super::puzzles::Source, *};

    const PUZZLE: &str = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";
    const SOLVED: &str = "534678912672195348198342567859761423426853791713924856961537284287419635345286179";

    #[test]
    fn every_puzzle_is_answered_once_and_rightly() {
        let texts = [PUZZLE.as_bytes().try_into().expect("81 characters"); 2];
        let unique = |index, solution: Option<&'static str>| Answer {
            index,
            outcome: Outcome::Unique,
            solution: solution.map(str::as_bytes),
            placements: Some(Placements::Exact(4_208)),
        };
        let source = Source::open(&[], 1).expect("generated");
        let (limit, mut known) = (PlacementLimit::DEFAULT, source.outcomes());
        let mut answers = Answers::new(&texts, limit, &mut known);
        answers.take(&unique(1, Some(SOLVED))).expect("right");
        assert!(answers.take(&unique(1, Some(SOLVED))).is_err(), "twice");
        assert!(answers.take(&unique(2, Some(SOLVED))).is_err(), "not sent");
        answers.take(&unique(0, Some(SOLVED))).expect("right");
        assert_eq!(answers.finish().expect("all").placements, 8_416);
        assert!(Answers::new(&texts, limit, &mut known).finish().is_err(), "none came");
        for wrong in [None, Some(PUZZLE), Some("")] {
            let mut answers = Answers::new(&texts, limit, &mut known);
            assert!(answers.take(&unique(0, wrong)).is_err(), "{wrong:?}");
        }
        for outcome in Outcome::ALL.into_iter().filter(|outcome| *outcome != Outcome::Unique) {
            let mut answers = Answers::new(&texts, limit, &mut known);
            assert!(
                answers.take(&Answer { outcome, ..unique(0, None) }).is_err(),
                "made to be unique: {outcome}"
            );
        }
        for outcome in [Outcome::Undecided, Outcome::Failed, Outcome::Cancelled] {
            let mut answers = Answers::new(&texts, limit, &mut known);
            let refusal = answers.take(&Answer { outcome, ..unique(0, None) }).expect_err("none");
            assert!(refusal.to_string().starts_with("no answer: "), "{refusal}");
        }
    }
}
