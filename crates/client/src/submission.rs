//! Puzzles in, results out: a whole batch as one stream.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use futures_util::StreamExt as _;
use proto::v1;
use tokio::task::JoinSet;
use tokio_stream::Stream;

use crate::{Client, Error, Grids, MESSAGE_PUZZLES, NewBatch, PuzzleResult, Results, Run, Start};

/// How a batch is submitted.
#[derive(Clone, Default, Debug)]
pub struct Submit {
    /// What is made. With an id, puzzles that were sent before are not stored twice: a submit that was interrupted can be repeated as a whole.
    pub batch: NewBatch,
    /// Results by index; otherwise as they finish.
    pub ordered: bool,
    /// How long all of it may take. After that the results end with [`Error::Deadline`]; the batch stays.
    pub deadline: Option<Duration>,
}

/// A batch that is being sent, and its results. Dropped, it stops sending; what was sent stays, and an open batch is cancelled by the server after a day.
#[derive(Debug)]
pub struct Submission {
    name: String,
    results: Results,
    /// Sends the puzzles and seals the batch: one task, which ends with this value.
    sending: JoinSet<Result<u64, Error>>,
}

impl Client {
    /// Sends the puzzles of an iterator as one batch and gives their results as they come, while it still sends: however many there are, and however slow the caller reads, for what is not
    /// read waits in the service. The iterator must not wait for anything; for one that does there is [`Client::submit_stream`].
    ///
    /// Whatever breaks on the way is tried again as the client's [`Retry`](crate::Retry) says, at the next server if there are several: each result comes once.
    ///
    /// # Errors
    /// [`Error::Status`] when the batch cannot be made; what goes wrong later is told by [`Submission::next`].
    pub async fn submit<I>(&self, puzzles: I, options: Submit) -> Result<Submission, Error>
    where
        I: IntoIterator<Item: AsRef<str> + Send, IntoIter: Send + 'static>,
    {
        // Not that of tokio, which pauses after every 32 items.
        self.submit_stream(futures_util::stream::iter(puzzles), options).await
    }

    /// The same for puzzles that come from elsewhere, in their own time: those that are there are sent at once.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub async fn submit_stream<S>(&self, puzzles: S, options: Submit) -> Result<Submission, Error>
    where
        S: Stream<Item: AsRef<str> + Send> + Send + 'static,
    {
        let Submit { batch, ordered, deadline } = options;
        let deadline = deadline.and_then(|deadline| Instant::now().checked_add(deadline));
        let opening = async {
            let name = self.create_batch(batch).await?.name;
            let results = self.results(&name, Start { ordered, ..Start::ordered(0) }).await?;
            Ok::<_, Error>((name, results))
        };
        let (name, results) = match deadline {
            None => opening.await?,
            Some(then) => {
                let opened = tokio::time::timeout_at(then.into(), opening).await;
                let (name, results) = opened.map_err(|_| Error::Deadline)??;
                (name, results.until(then))
            }
        };
        let mut sending = JoinSet::new();
        sending.spawn(send(self.clone(), name.clone(), puzzles));
        Ok(Submission { name, results, sending })
    }
}

/// Sends everything and seals the batch; gives how many puzzles it holds.
async fn send<S: Stream<Item: AsRef<str> + Send>>(
    client: Client,
    name: String,
    puzzles: S,
) -> Result<u64, Error> {
    let mut appender = client.appender(&name, 0);
    // As many as are there, without waiting for more.
    let mut runs = pin!(puzzles.ready_chunks(MESSAGE_PUZZLES));
    let mut is_read = false;
    while !is_read || appender.is_busy() {
        tokio::select! {
            // What is refused is told at once, also while nothing more comes.
            settled = appender.settled(), if appender.is_busy() => settled?,
            // Tokio's channels pretend that nothing is there after 128 items, for others to have their turn: messages would be no longer than that.
            run = tokio::task::unconstrained(runs.next()), if !is_read => match run {
                Some(run) => {
                    let mut grids = Grids::with_capacity(run.len());
                    for puzzle in &run {
                        grids.push(puzzle.as_ref());
                    }
                    drop(run);
                    appender.push(grids).await?;
                }
                None => is_read = true,
            },
        }
    }
    let count = appender.finish().await?;
    client.seal(&name, Some(count)).await?;
    Ok(count)
}

impl Submission {
    /// The batch, `batches/…`: everything of it can be had again by [`Client::results`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next run of results, one value a puzzle. `None`: every puzzle has its result.
    ///
    /// # Errors
    /// As [`Results::next`], and what kept the puzzles from being sent.
    pub async fn next(&mut self) -> Result<Option<Vec<PuzzleResult>>, Error> {
        Ok(self.next_columns().await?.map(|run| run.results()))
    }

    /// The same in columns: nothing is allocated for a puzzle. May be dropped and called again.
    ///
    /// # Errors
    /// As [`Submission::next`].
    pub async fn next_columns(&mut self) -> Result<Option<Run>, Error> {
        loop {
            tokio::select! {
                run = self.results.next_columns() => return run,
                Some(sent) = self.sending.join_next() => {
                    match sent {
                        Ok(sent) => sent?,
                        // In the caller's iterator.
                        Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
                        Err(_) => return Err(Error::Cut),
                    };
                }
            }
        }
    }

    /// As [`Results::token`].
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.results.token()
    }

    /// The batch as it ended; `None` before [`Submission::next`] has given `None`.
    #[must_use]
    pub fn batch(&self) -> Option<&v1::Batch> {
        self.results.batch()
    }

    /// The results one by one, as a stream; an error is its last item.
    pub fn into_stream(self) -> impl Stream<Item = Result<PuzzleResult, Error>> + Send {
        let runs = futures_util::stream::try_unfold(self, |mut submission| async {
            Ok(submission.next().await?.map(|run| (run, submission)))
        });
        runs.flat_map(|run| match run {
            Ok(results) => futures_util::stream::iter(results.into_iter().map(Ok).collect::<Vec<_>>()),
            Err(error) => futures_util::stream::iter(vec![Err(error)]),
        })
    }
}
