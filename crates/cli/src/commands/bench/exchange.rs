//! Puzzles to the service and answers back: the one place of the benches that knows the form in which the client takes and gives them.

use ::solver::{Outcome, PlacementLimit, Placements};
use client::{Appender, Client, Grids, NewBatch, Results, Start};

use super::puzzles::Text;
use crate::record;

/// Puzzles that are sent at a time.
pub(crate) const SENT: usize = client::MESSAGE_PUZZLES;

/// One answer, as it lies in the message that brought it.
pub(crate) struct Answer<'a> {
    pub(crate) index: u64,
    pub(crate) outcome: Outcome,
    pub(crate) solution: Option<&'a [u8]>,
    pub(crate) placements: Option<Placements>,
}

/// Opens a batch; gives its name.
pub(crate) async fn open(client: &Client, limit: PlacementLimit) -> anyhow::Result<String> {
    let new =
        NewBatch { placement_limit: Some(limit.0), display_name: "bench".to_owned(), ..NewBatch::default() };
    Ok(client.create_batch(new).await?.name)
}

/// Sends puzzles, at most [`SENT`].
pub(crate) async fn send(appender: &mut Appender, puzzles: &[Text]) -> anyhow::Result<()> {
    let mut grids = Grids::with_capacity(puzzles.len());
    for text in puzzles {
        grids.push_ascii(text);
    }
    appender.push(grids).await?;
    Ok(())
}

/// Says that so many puzzles were all.
pub(crate) async fn seal(client: &Client, name: &str, count: u64) -> anyhow::Result<()> {
    client.seal(name, Some(count)).await?;
    Ok(())
}

/// Asks for the answers, as they are found.
pub(crate) async fn answers(client: &Client, name: &str) -> anyhow::Result<Results> {
    Ok(client.results(name, Start::as_finished()).await?)
}

/// Receives one run of answers; `false`: there are no more.
pub(crate) async fn receive(
    results: &mut Results,
    mut take: impl FnMut(&Answer<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<bool> {
    let Some(run) = results.next_columns().await? else { return Ok(false) };
    for (index, place) in (run.start_index()..).zip(0..run.len()) {
        take(&Answer {
            index,
            outcome: record::outcome(run.outcome(place))?,
            solution: run.solution_bytes(place),
            placements: record::placements(run.placements(place)),
        })?;
    }
    Ok(true)
}
