//! Sending results: from the database to one stream, each index once, at the pace of its reader.

use std::time::{Duration, Instant};

use proto::v1;
use store::{Batch, ResultRange, Store, Wakes};
use tokio::sync::mpsc;
use tonic::Status;

use crate::{
    drain::Drain,
    intervals::Delivered,
    limits::{HEARTBEAT, POLL_FLOWING, POLL_MAX, POLL_MIN, RANGES_READ_MAX, RESUME_RANGES_MAX},
    status::Refusal,
    tokens,
    verdicts::{ReadAhead, bare},
    wire::{self, ResultColumns, ResultForm},
};

/// What a stream of results carries, whatever its message type.
#[derive(Debug)]
pub(crate) enum Event {
    /// A run of results, and the token that goes on after it.
    Results(v1::ResultChunk, String),
    /// Nothing new, but alive.
    Quiet,
    /// The batch, first or last, and the token that goes on from here.
    Batch(v1::Batch, String),
}

/// The sending half of one stream.
pub(crate) struct Outlet<M> {
    pub(crate) sender: mpsc::Sender<Result<M, Status>>,
    pub(crate) drain: Drain,
}

/// Why a stream ends before its end.
#[derive(Debug)]
pub(crate) enum Cut {
    /// Nobody reads any more.
    Gone,
    /// It is told to the reader.
    Refused(Refusal),
    /// The transport's own word on what the client sent (too large, not decodable, cut): passed on as it is.
    Transport(Status),
}

impl<E: Into<Refusal>> From<E> for Cut {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

impl<M> Outlet<M> {
    /// Sends one message; waits while the reader is behind.
    pub(crate) async fn send(&self, message: M) -> Result<(), Cut> {
        tokio::select! {
            sent = self.sender.send(Ok(message)) => sent.map_err(|_| Cut::Gone),
            () = self.drain.started() => Err(Cut::Refused(Refusal::Stopping)),
        }
    }

    /// Waits for a wake, at most `poll` and a jitter; returns whether there was one.
    pub(crate) async fn wait(&self, wakes: &mut Wakes, poll: Duration) -> Result<bool, Cut> {
        tokio::select! {
            woken = wakes.wait(poll) => Ok(woken),
            () = self.sender.closed() => Err(Cut::Gone),
            () = self.drain.started() => Err(Cut::Refused(Refusal::Stopping)),
        }
    }

    /// Waits until then.
    pub(crate) async fn pause_until(&self, then: tokio::time::Instant) -> Result<(), Cut> {
        self.hold(tokio::time::sleep_until(then)).await
    }

    /// Waits for something, as long as there is a reader and a server.
    pub(crate) async fn hold(&self, something: impl Future<Output = ()>) -> Result<(), Cut> {
        tokio::select! {
            () = something => Ok(()),
            () = self.sender.closed() => Err(Cut::Gone),
            () = self.drain.started() => Err(Cut::Refused(Refusal::Stopping)),
        }
    }

    /// Tells the reader why the stream ends here.
    pub(crate) async fn end(&self, cut: Cut) {
        let status = match cut {
            Cut::Gone => return,
            Cut::Refused(refusal) => refusal.into(),
            Cut::Transport(status) => status,
        };
        // An error means that the reader has gone: there is nobody left to tell.
        self.sender.send(Err(status)).await.ok();
    }
}

/// What is asked of a stream of results.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// What the reader has already.
    pub(crate) delivered: Delivered,
    /// By index, or as ranges finish.
    pub(crate) ordered: bool,
    /// Stay until the batch has ended.
    pub(crate) follow: bool,
    /// Solutions as bytes.
    pub(crate) packed: bool,
}

/// What one pass over the finished ranges did.
#[derive(Clone, Copy, Default, Debug)]
struct Sent {
    /// Something was sent.
    any: bool,
    /// What was read of the ranges is no longer true: look again.
    is_stale: bool,
}

/// One stream of results of one batch.
pub(crate) struct Delivery<'a, M> {
    pub(crate) store: &'a Store,
    /// As it was last found. It stays this one, whoever has its name meanwhile.
    pub(crate) batch: Batch,
    pub(crate) wanted: Wanted,
    pub(crate) outlet: &'a Outlet<M>,
    pub(crate) message: fn(Event) -> M,
    pub(crate) wakes: Wakes,
}

impl<M> Delivery<'_, M> {
    /// Sends what is there and, when following, what comes, until the batch has ended; last of all the batch.
    pub(crate) async fn run(mut self) -> Result<(), Cut> {
        let owner = tokens::owner(&self.batch);
        let mut last_sent = Instant::now();
        let mut poll = POLL_MIN;
        loop {
            self.wakes.arm();
            // The state is read before the results: ended means that all of them are there to be read.
            self.batch = self.store.current(self.batch.key).await.map_err(|error| self.refusal(error))?;
            let sent = self.send_new(&owner).await?;
            if sent.any {
                last_sent = Instant::now();
                poll = POLL_FLOWING;
            }
            if !sent.is_stale && (self.batch.state.is_final() || !self.wanted.follow) {
                let found = self.store.batch_progress(self.batch.key).await;
                let (batch, progress) = found.map_err(|error| self.refusal(error))?;
                let token = tokens::resume(&owner, &self.wanted.delivered);
                return self.send(Event::Batch(wire::batch(batch, progress), token)).await;
            }
            if last_sent.elapsed() >= HEARTBEAT {
                self.send(Event::Quiet).await?;
                last_sent = Instant::now();
            }
            if !self.outlet.wait(&mut self.wakes, poll).await? {
                poll = (poll * 2).min(POLL_MAX);
            }
        }
    }

    async fn send(&self, event: Event) -> Result<(), Cut> {
        self.outlet.send((self.message)(event)).await
    }

    fn refusal(&self, error: store::Error) -> Refusal {
        Refusal::of_batch(error, &self.batch.name)
    }

    /// Sends every finished range that was not sent yet; ordered: up to the first gap.
    async fn send_new(&mut self, owner: &str) -> Result<Sent, Cut> {
        let mut from = self.wanted.delivered.watermark();
        let mut sent = Sent::default();
        let mut ahead = ReadAhead::default();
        loop {
            // One slow puzzle may hold the watermark for long: what was delivered beyond it is not read again.
            from = self.wanted.delivered.first_missing(from);
            let ranges = self.store.finished(self.batch.key, from, RANGES_READ_MAX).await?;
            let is_last_page = ranges.len() < RANGES_READ_MAX;
            for (place, range) in ranges.iter().enumerate() {
                for (lo, hi) in self.wanted.delivered.missing(range.lo, range.hi) {
                    let delivered = &self.wanted.delivered;
                    if self.wanted.ordered && lo > delivered.watermark() {
                        return Ok(sent);
                    }
                    // With as many holes as a token can name, the lowest are filled first.
                    if !delivered.has_room(lo, hi, RESUME_RANGES_MAX) {
                        return Ok(sent);
                    }
                    let Some(results) = self.results(&ranges[place..], lo, hi, &mut ahead).await? else {
                        return Ok(Sent { is_stale: true, ..sent });
                    };
                    self.wanted.delivered.insert(lo, hi);
                    let token = tokens::resume(owner, &self.wanted.delivered);
                    self.send(Event::Results(results, token)).await?;
                    sent.any = true;
                }
                from = range.hi;
            }
            if is_last_page {
                return Ok(sent);
            }
        }
    }

    /// The results of `[lo, hi)`, which is part of the first of some finished ranges. `None`: the range is not there any more. Its batch was deleted, or
    /// the database has crashed, lost it, and it is solved again.
    async fn results(
        &self,
        ranges: &[ResultRange],
        lo: u64,
        hi: u64,
        ahead: &mut ReadAhead,
    ) -> Result<Option<v1::ResultChunk>, Refusal> {
        let range = ranges[0];
        let form = ResultForm { packed: self.wanted.packed, counted: self.batch.placement_limit > 0 };
        let mut columns = ResultColumns::new(lo, hi - lo, form);
        if let Some(outcome) = bare(range) {
            columns.push_bare(outcome, hi - lo);
        } else {
            let is_wanted =
                |range: &ResultRange| !self.wanted.delivered.missing(range.lo, range.hi).is_empty();
            ahead.read(self.store, self.batch.key, ranges, is_wanted).await?;
            ahead.fill(&mut columns, lo, hi)?;
        }
        if columns.len() as u64 == hi - lo {
            return Ok(Some(columns.finish()));
        }
        let now = self.store.finished(self.batch.key, range.lo, 1).await?;
        if now.first() == Some(&range) { Err(packing::Damaged::Short.into()) } else { Ok(None) }
    }
}
