//! Sending results: from the database to one stream, each index once, at the pace of its reader.

use std::time::Instant;

use packing::VerdictReader;
use proto::v1;
use solver::Verdict;
use store::{Batch, ResultRange, Store, TenantId, Wakes};
use tokio::sync::mpsc;
use tonic::Status;

use crate::{
    drain::Drain,
    intervals::Delivered,
    limits::{HEARTBEAT, POLL_MAX, POLL_MIN, RANGES_READ_MAX},
    status::Refusal,
    wire::{self, ResultColumns, ResultForm},
};

/// What a stream of results carries, whatever its message type.
#[derive(Debug)]
pub(crate) enum Event {
    /// A run of results.
    Results(v1::ResultChunk),
    /// Nothing new, but alive.
    Quiet,
    /// The last one: the batch.
    End(v1::Batch),
}

/// The sending half of one stream.
pub(crate) struct Outlet<M> {
    pub(crate) sender: mpsc::Sender<Result<M, Status>>,
    pub(crate) message: fn(Event) -> M,
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
    /// Sends one event; waits while the reader is behind.
    pub(crate) async fn send(&self, event: Event) -> Result<(), Cut> {
        tokio::select! {
            sent = self.sender.send(Ok((self.message)(event))) => sent.map_err(|_| Cut::Gone),
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// First index.
    pub(crate) from: u64,
    /// By index, or as ranges finish.
    pub(crate) ordered: bool,
    /// Stay until the batch has ended.
    pub(crate) follow: bool,
    /// Solutions as bytes.
    pub(crate) packed: bool,
}

/// One stream of results of one batch.
pub(crate) struct Delivery<'a, M> {
    pub(crate) store: &'a Store,
    pub(crate) tenant: TenantId,
    pub(crate) id: &'a str,
    pub(crate) wanted: Wanted,
    pub(crate) outlet: &'a Outlet<M>,
    pub(crate) wakes: Wakes,
}

impl<M> Delivery<'_, M> {
    /// Sends what is there and, when following, what comes, until the batch has ended; last of all the batch.
    pub(crate) async fn run(mut self) -> Result<(), Cut> {
        let mut delivered = Delivered::up_to(self.wanted.from);
        let mut last_sent = Instant::now();
        let mut poll = POLL_MIN;
        loop {
            self.wakes.arm();
            // The state is read before the results: ended means that all of them are there to be read.
            let batch = self
                .store
                .batch(self.tenant, self.id)
                .await
                .map_err(|error| Refusal::of_batch(error, self.id))?;
            if self.send_new(&batch, &mut delivered).await? {
                last_sent = Instant::now();
                poll = POLL_MIN;
            }
            if batch.state.is_final() || !self.wanted.follow {
                let progress = self.store.progress(batch.key).await?;
                return self.outlet.send(Event::End(wire::batch(batch, progress))).await;
            }
            if last_sent.elapsed() >= HEARTBEAT {
                self.outlet.send(Event::Quiet).await?;
                last_sent = Instant::now();
            }
            let woken = tokio::select! {
                woken = self.wakes.wait(poll) => woken,
                () = self.outlet.sender.closed() => return Err(Cut::Gone),
                () = self.outlet.drain.started() => return Err(Cut::Refused(Refusal::Stopping)),
            };
            if !woken {
                poll = (poll * 2).min(POLL_MAX);
            }
        }
    }

    /// Sends every finished range that was not sent yet (ordered: up to the first gap). Returns whether there was any.
    async fn send_new(&self, batch: &Batch, delivered: &mut Delivered) -> Result<bool, Cut> {
        let mut from = delivered.watermark();
        let mut any = false;
        loop {
            // One slow puzzle may hold the watermark for long: what was delivered beyond it is not read again.
            from = delivered.first_missing(from);
            let ranges = self.store.finished(batch.key, from, RANGES_READ_MAX).await?;
            let is_last_page = ranges.len() < RANGES_READ_MAX;
            for range in ranges {
                if self.wanted.ordered && range.lo > delivered.watermark() {
                    return Ok(any);
                }
                if let Some((lo, hi)) = delivered.missing(range.lo, range.hi) {
                    let results = self.results(batch, range, lo).await?;
                    self.outlet.send(Event::Results(results)).await?;
                    delivered.insert(lo, hi);
                    any = true;
                }
                from = range.hi;
            }
            if is_last_page {
                return Ok(any);
            }
        }
    }

    /// The results of one range from index `lo` on.
    async fn results(&self, batch: &Batch, range: ResultRange, lo: u64) -> Result<v1::ResultChunk, Refusal> {
        let form = ResultForm { packed: self.wanted.packed, counted: batch.placement_limit > 0 };
        let mut columns = ResultColumns::new(lo, form);
        if range.cancelled == range.hi - range.lo {
            for _ in lo..range.hi {
                columns.push(&Verdict::Cancelled);
            }
        } else {
            for piece in self.store.verdicts(batch.key, range).await? {
                for (index, verdict) in (piece.lo..).zip(VerdictReader::new(piece.format, &piece.data)?) {
                    let verdict = verdict?;
                    if index >= lo {
                        columns.push(&verdict);
                    }
                }
            }
        }
        if columns.len() as u64 == range.hi - lo {
            Ok(columns.finish())
        } else {
            Err(packing::Damaged::Short.into())
        }
    }
}
