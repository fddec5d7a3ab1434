//! Sending results: from the database to one stream, each index once, at the pace of its reader.

use std::time::Instant;

use proto::v1;
use store::{Batch, ResultRange, Wakes};

use crate::{
    batches::Shared,
    intervals::Delivered,
    limits::{
        HEARTBEAT, POLL_FLOWING, POLL_MAX, POLL_MIN, RANGES_READ_MAX, RESULT_BYTES, RESUME_RANGES_MAX,
        SMALL_MESSAGE_PUZZLES,
    },
    outlet::{Cut, Outlet, Room},
    status::Refusal,
    tokens,
    verdicts::{Extent, ReadAhead, bare},
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
    pub(crate) shared: &'a Shared,
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
            let current = async {
                self.shared.store.current(self.batch.key).await.map_err(|error| self.refusal(error))
            };
            self.batch = self.shared.in_turn(current).await?;
            let sent = self.send_new(&owner).await?;
            if sent.any {
                last_sent = Instant::now();
                poll = POLL_FLOWING;
            }
            if !sent.is_stale && (self.batch.state.is_final() || !self.wanted.follow) {
                let progress = async {
                    let found = self.shared.store.batch_progress(self.batch.key).await;
                    found.map_err(|error| self.refusal(error))
                };
                let (batch, progress) = self.shared.in_turn(progress).await?;
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
            let Shared { store, .. } = self.shared;
            let ranges = self.shared.in_turn(store.finished(self.batch.key, from, RANGES_READ_MAX)).await?;
            let is_last_page = ranges.len() < RANGES_READ_MAX;
            for (place, range) in ranges.iter().enumerate() {
                // Where memory is short, a range takes several messages.
                while let Some((lo, hi)) = self.wanted.delivered.missing(range.lo, range.hi).first().copied()
                {
                    let delivered = &self.wanted.delivered;
                    if self.wanted.ordered && lo > delivered.watermark() {
                        return Ok(sent);
                    }
                    // With as many holes as a token can name, the lowest are filled first.
                    if !delivered.has_room(lo, hi, RESUME_RANGES_MAX) {
                        return Ok(sent);
                    }
                    let room = self.outlet.room().await?;
                    if !self.send_some(room, owner, &ranges[place..], (lo, hi), &mut ahead).await? {
                        return Ok(Sent { is_stale: true, ..sent });
                    }
                    sent.any = true;
                }
                from = range.hi;
            }
            if is_last_page {
                return Ok(sent);
            }
        }
    }

    /// Sends one message with the results of `[lo, hi)`, which is part of the first of some finished ranges, or of its beginning where memory is short. `false`: the range is not there
    /// any more.
    async fn send_some(
        &mut self,
        room: Room<'_, M>,
        owner: &str,
        ranges: &[ResultRange],
        (lo, hi): (u64, u64),
        ahead: &mut ReadAhead,
    ) -> Result<bool, Refusal> {
        // The turn comes first: whoever has it sees what those before it have made.
        let turn = self.shared.turn().await?;
        let is_short = self.outlet.is_short();
        let cut = if is_short { hi.min(lo + SMALL_MESSAGE_PUZZLES) } else { hi };
        // A part may be one range more than the whole, which joins what comes after it: more than a token can name.
        let hi = if self.wanted.delivered.has_room(lo, cut, RESUME_RANGES_MAX) { cut } else { hi };
        let extent = if is_short { Extent::Within(lo, hi) } else { Extent::Ahead };
        let results = self.results(ranges, lo, hi, extent, ahead).await?;
        if is_short {
            // The next message may be long in coming.
            *ahead = ReadAhead::default();
        }
        let Some(results) = results else { return Ok(false) };
        self.wanted.delivered.insert(lo, hi);
        let token = tokens::resume(owner, &self.wanted.delivered);
        let bytes = results.outcomes.len() * RESULT_BYTES;
        room.send((self.message)(Event::Results(results, token)), bytes);
        drop(turn);
        Ok(true)
    }

    /// The results of `[lo, hi)`, which is part of the first of some finished ranges. `None`: the range is not there any more. Its batch was deleted, or
    /// the database has crashed, lost it, and it is solved again.
    async fn results(
        &self,
        ranges: &[ResultRange],
        lo: u64,
        hi: u64,
        extent: Extent,
        ahead: &mut ReadAhead,
    ) -> Result<Option<v1::ResultChunk>, Refusal> {
        let Shared { store, streams, .. } = self.shared;
        let range = ranges[0];
        let form = ResultForm { packed: self.wanted.packed, counted: self.batch.placement_limit > 0 };
        let mut columns = ResultColumns::new(lo, hi - lo, form);
        if let Some(outcome) = bare(range) {
            columns.push_bare(outcome, hi - lo);
        } else {
            let is_wanted =
                |range: &ResultRange| !self.wanted.delivered.missing(range.lo, range.hi).is_empty();
            ahead.read(store, &streams.memory, self.batch.key, ranges, extent, is_wanted).await?;
            ahead.fill(&mut columns, lo, hi)?;
        }
        if columns.len() as u64 == hi - lo {
            return Ok(Some(columns.finish()));
        }
        let now = store.finished(self.batch.key, range.lo, 1).await?;
        if now.first() == Some(&range) { Err(packing::Damaged::Short.into()) } else { Ok(None) }
    }
}
