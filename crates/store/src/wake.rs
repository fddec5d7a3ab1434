//! Waking: one LISTEN connection a process, fanned out to all its waiters.
//!
//! A notification is a hint: it is lost while the connection is made anew. Every waiter therefore arms itself *before* it
//! looks at the tables, and looks again after a bounded wait whatever happens. Through a pooler, which lends no server to wait with, that look is all there is.

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::{sync::broadcast, task::JoinHandle, time::Instant};

use crate::{
    Error, Store, WorkerId,
    shares::{AWAKE_JOBS, CLOCK_SLACK},
};

const JOB_CHANNEL: &str = "sudoku_job";
/// What is said there of jobs that may take long.
const LONG: &str = "long";
const RESULT_CHANNEL: &str = "sudoku_result";
const CANCEL_CHANNEL: &str = "sudoku_cancel";
const ROUND_CHANNEL: &str = "sudoku_round";
/// Wakes that a slow waiter may be behind; beyond that it is told to look anyway.
const BACKLOG_MAX: usize = 256;
/// Where nothing is heard, each waiter looks again after this at the latest; with the jitter of a quarter it is a second.
const UNHEARD_WAIT_MAX: Duration = Duration::from_millis(800);
/// Pause before a lost LISTEN connection is tried again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wake {
    /// Jobs are waiting.
    Jobs,
    /// Jobs that may take long are waiting.
    LongJobs,
    /// This batch has new results, or ended.
    Results(i64),
    /// A batch is being cancelled.
    Cancels,
    /// A worker has done a round for all.
    Round(WorkerId, Round),
    /// Something may have been missed.
    All,
}

/// Periodic work that one worker does for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    /// Leases that ended are put back, batches without jobs ended.
    Upkeep {
        /// Jobs wait over which a worker has died.
        any_blamed: bool,
    },
    /// What nobody wants is removed.
    Sweep,
}

impl Round {
    const ALL: [(&'static str, Self); 3] = [
        ("upkeep", Self::Upkeep { any_blamed: false }),
        ("upkeep-blamed", Self::Upkeep { any_blamed: true }),
        ("sweep", Self::Sweep),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, round)| *round == self).map_or("", |(name, _)| name)
    }

    /// Reads what [`Store::notify_round`] has written; a newer worker may tell of what is not known here.
    fn told(payload: &str) -> Option<(WorkerId, Self)> {
        let (name, worker) = payload.split_once(' ')?;
        let (_, round) = Self::ALL.iter().find(|(known, _)| *known == name)?;
        Some((WorkerId(worker.parse().ok()?), *round))
    }
}

/// What a process waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listens {
    /// Jobs, batches that are being cancelled, and what other workers tell: a worker.
    Work,
    /// Results, and ends of batches: a server.
    Results,
}

/// Listens for one process.
#[derive(Debug)]
pub struct Waker {
    sender: broadcast::Sender<Wake>,
    task: JoinHandle<()>,
    /// How long its waiters wait at the most, whatever they want.
    wait_max: Duration,
}

impl Drop for Waker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Waker {
    /// Begins to listen. Never fails: without a connection the waiters live by their bounded waits.
    #[must_use]
    pub fn start(store: Store, listens: Listens) -> Self {
        let (sender, _) = broadcast::channel(BACKLOG_MAX);
        let wait_max = if store.pool.has_sessions() { Duration::MAX } else { UNHEARD_WAIT_MAX };
        let task = tokio::spawn(listen(store, sender.clone(), listens));
        Self { sender, task, wait_max }
    }

    fn wakes(&self, wanted: Wake) -> Wakes {
        Wakes { receiver: self.sender.subscribe(), wanted, wait_max: self.wait_max }
    }

    /// Arms a waiter for new jobs.
    #[must_use]
    pub fn jobs(&self) -> Wakes {
        self.wakes(Wake::Jobs)
    }

    /// Arms a waiter for new jobs that may take long.
    #[must_use]
    pub fn long_jobs(&self) -> Wakes {
        self.wakes(Wake::LongJobs)
    }

    /// Arms a waiter for batches that are being cancelled.
    #[must_use]
    pub fn cancels(&self) -> Wakes {
        self.wakes(Wake::Cancels)
    }

    /// Hears what other processes, and this one, tell of.
    #[must_use]
    pub fn overhear(&self) -> Overheard {
        Overheard { receiver: self.sender.subscribe() }
    }

    /// Arms a waiter for a batch's results and its end.
    #[must_use]
    pub fn results(&self, batch_id: i64) -> Wakes {
        self.wakes(Wake::Results(batch_id))
    }
}

/// One waiter. What comes between two waits is kept, so nothing is missed between a look and the next wait.
#[derive(Debug)]
pub struct Wakes {
    receiver: broadcast::Receiver<Wake>,
    wanted: Wake,
    wait_max: Duration,
}

impl Wakes {
    /// Forgets what has come so far: call it right before looking at the tables.
    pub fn arm(&mut self) {
        self.receiver = self.receiver.resubscribe();
    }

    /// Waits for a random part of `up_to`, so that many who were woken at once do not look at once. What comes meanwhile is kept.
    pub async fn pause(&self, up_to: Duration) {
        if !up_to.is_zero() {
            tokio::time::sleep(jitter(up_to)).await;
        }
    }

    /// Waits for a wake, at most `wait` and a jitter of up to a quarter more, so that many waiters do not look in step. Returns whether there
    /// was one.
    pub async fn wait(&mut self, wait: Duration) -> bool {
        let wait = wait.min(self.wait_max);
        let deadline = Instant::now() + wait + jitter(wait / 4);
        loop {
            match tokio::time::timeout_at(deadline, self.receiver.recv()).await {
                Ok(Ok(wake)) if wake == self.wanted || wake == Wake::All => return true,
                Ok(Ok(_)) => {}
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => return true,
                Err(_) => return false,
                Ok(Err(broadcast::error::RecvError::Closed)) => {
                    tokio::time::sleep_until(deadline).await;
                    return false;
                }
            }
        }
    }
}

/// What is told by whomever, this process too.
#[derive(Debug)]
pub struct Overheard {
    receiver: broadcast::Receiver<Wake>,
}

impl Overheard {
    /// Waits until a batch is told of. Some may be missed.
    pub async fn batch(&mut self) -> i64 {
        loop {
            match self.receiver.recv().await {
                Ok(Wake::Results(batch_id)) => return batch_id,
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// Waits until a worker tells that it has done a round. Some may be missed.
    pub async fn round(&mut self) -> (WorkerId, Round) {
        loop {
            match self.receiver.recv().await {
                Ok(Wake::Round(worker, round)) => return (worker, round),
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

/// A random part of `up_to`, for those that must not act in step.
#[must_use]
pub fn jitter(up_to: Duration) -> Duration {
    let random = uuid::Uuid::new_v4().as_u128();
    let thousandths = u32::try_from(random % 1_000).unwrap_or(0);
    up_to * thousandths / 1_000
}

async fn listen(store: Store, sender: broadcast::Sender<Wake>, listens: Listens) {
    if !store.pool.has_sessions() {
        tracing::info!("nothing is heard through a pooler: what waits is found by looking");
        return;
    }
    loop {
        match listen_once(&store, &sender, listens).await {
            Ok(()) => tracing::warn!("the listening connection was lost; listening again"),
            Err(error) => tracing::warn!(%error, "cannot listen for notifications; trying again"),
        }
        wake_all(&sender);
        tokio::time::sleep(RECONNECT_PAUSE).await;
    }
}

/// Listens until the connection breaks.
async fn listen_once(store: &Store, sender: &broadcast::Sender<Wake>, listens: Listens) -> Result<(), Error> {
    let mut listener = PgListener::connect_with(store.pool.connections()).await?;
    // Off: a broken connection must be seen here, since what was sent meanwhile is lost.
    listener.eager_reconnect(false);
    match listens {
        // A notice wakes whoever listens to anything: hearing what others tell costs little more.
        Listens::Work => {
            listener.listen_all([JOB_CHANNEL, CANCEL_CHANNEL, RESULT_CHANNEL, ROUND_CHANNEL]).await?;
        }
        Listens::Results => listener.listen(RESULT_CHANNEL).await?,
    }
    wake_all(sender);
    while let Some(notification) = listener.try_recv().await? {
        let wake = match notification.channel() {
            JOB_CHANNEL if notification.payload() == LONG => Wake::LongJobs,
            JOB_CHANNEL => Wake::Jobs,
            CANCEL_CHANNEL => Wake::Cancels,
            ROUND_CHANNEL => match Round::told(notification.payload()) {
                Some((worker, round)) => Wake::Round(worker, round),
                None => continue,
            },
            _ => notification.payload().parse().map_or(Wake::All, Wake::Results),
        };
        // No receiver is no error: nobody waits just now.
        sender.send(wake).ok();
    }
    Ok(())
}

fn wake_all(sender: &broadcast::Sender<Wake>) {
    sender.send(Wake::All).ok();
}

impl Store {
    /// Tells every process that these batches have new results or ended. Costs a commit lock of the whole database: debounce it.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn notify_results(&self, batches: &[i64]) -> Result<(), Error> {
        sqlx::query!(
            r#"select count(pg_notify('sudoku_result', id::text)) as "sent!" from unnest($1::bigint[]) as id"#,
            batches
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(())
    }

    /// Tells every worker that this one has done a round for all.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn notify_round(&self, worker: WorkerId, round: Round) -> Result<(), Error> {
        let payload = format!("{} {worker}", round.name());
        sqlx::query!("select pg_notify('sudoku_round', $1)::text as sent", payload)
            .fetch_one(&self.pool)
            .await?;
        Ok(())
    }

    /// Tells every process to look for batches that are being cancelled.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn notify_cancels(&self) -> Result<(), Error> {
        sqlx::query!("select pg_notify('sudoku_cancel', '')::text as sent").fetch_one(&self.pool).await?;
        Ok(())
    }

    /// Tells every process that jobs are waiting, if some are that do not take long, and so few that a worker may be idle.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn notify_waiting(&self) -> Result<(), Error> {
        sqlx::query_file!("queries/notify_waiting.sql", AWAKE_JOBS, CLOCK_SLACK)
            .fetch_optional(&self.pool)
            .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_is_read_as_it_was_told_and_an_unknown_one_is_none() {
        let worker = WorkerId::fresh();
        for (name, round) in Round::ALL {
            assert_eq!(round.name(), name);
            assert_eq!(Round::told(&format!("{name} {worker}")), Some((worker, round)));
        }
        assert_eq!(Round::told(&format!("dusting {worker}")), None);
        assert_eq!(Round::told("sweep"), None);
    }
}
