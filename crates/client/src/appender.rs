//! Appending with several messages under way, so that the next is made and sent while the one before is being stored.

use std::collections::VecDeque;

use proto::{Grids, v1};
use tokio::task::JoinSet;

use crate::{Client, Error, connection::messages};

/// Messages that are under way at a time, at the most: those that wait at the server are stored together there. Measured on two cores, millions of puzzles a second:
/// 1.77 with four, 1.94 with eight.
const UNDER_WAY_MAX: usize = 8;

/// Adds puzzles to a batch, from an offset on, in order. Made by [`Client::appender`]; dropped, it stops where it is: what the server has taken stays.
///
/// One message at a time is under way, and several only beyond what was stored already: a message that goes out before the one before it was compared could be
/// stored in a batch that holds other puzzles. After an error nothing is under way, and what is sent next is sent from [`Appender::acknowledged`] on.
#[derive(Debug)]
pub struct Appender {
    client: Client,
    name: String,
    /// Where the next message begins.
    offset: u64,
    /// What the server has taken.
    acknowledged: u64,
    /// In order of their offsets.
    under_way: VecDeque<UnderWay>,
    /// The last message that was taken added to the batch, so that nothing of others is beyond it.
    is_ahead: bool,
}

/// How a call ended, and its message.
type Ended = (v1::AppendPuzzlesRequest, Result<v1::AppendPuzzlesResponse, Error>);

/// A message under way.
#[derive(Debug)]
struct UnderWay {
    /// Where it ends.
    end: u64,
    /// One call: a set, since that ends what it holds when it is dropped.
    call: JoinSet<Ended>,
    /// All before it had been taken when it was sent.
    is_alone: bool,
}

impl Appender {
    pub(crate) fn new(client: Client, name: &str, offset: u64) -> Self {
        let under_way = VecDeque::new();
        Self { client, name: name.to_owned(), offset, acknowledged: offset, under_way, is_ahead: false }
    }

    /// Sends puzzles, in messages within the limits; waits while as many of them are under way as may be.
    ///
    /// # Errors
    /// That of the first message that was refused, whatever is sent now; neither it nor anything after it counts as taken.
    pub async fn push(&mut self, puzzles: Grids) -> Result<(), Error> {
        for grids in messages(puzzles) {
            while self.under_way.len() >= self.window() {
                self.settled().await?;
            }
            let end = self.offset + grids.len() as u64;
            let message = v1::AppendPuzzlesRequest {
                name: self.name.clone(),
                offset: Some(i64::try_from(self.offset).unwrap_or(i64::MAX)),
                chunk: Some(v1::PuzzleChunk { grids, ..v1::PuzzleChunk::default() }),
            };
            let mut one = UnderWay { end, call: JoinSet::new(), is_alone: self.under_way.is_empty() };
            self.send(&mut one, message);
            self.under_way.push_back(one);
            self.offset = end;
        }
        Ok(())
    }

    /// Messages that may be under way now.
    fn window(&self) -> usize {
        if self.is_ahead { UNDER_WAY_MAX } else { 1 }
    }

    fn send(&self, one: &mut UnderWay, message: v1::AppendPuzzlesRequest) {
        let client = self.client.clone();
        one.call.spawn(async move {
            let response = client.append_message(&message).await;
            (message, response)
        });
    }

    /// Whether messages are under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Puzzles that the server has taken, from the beginning of the batch.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Waits until the first of the messages that are under way is taken; at once if there is none. May be dropped and called again.
    ///
    /// # Errors
    /// As [`Appender::push`].
    pub async fn settled(&mut self) -> Result<(), Error> {
        while let Some(first) = self.under_way.front_mut() {
            // In its place during the wait, for that may be dropped.
            let ended = first.call.join_next().await;
            let Some(mut first) = self.under_way.pop_front() else { break };
            match ended {
                Some(Ok((_, Ok(taken)))) => {
                    self.acknowledged = first.end;
                    self.is_ahead = !taken.duplicate;
                    return Ok(());
                }
                // It came there before the ones before it, all of which have been taken by now.
                Some(Ok((message, Err(error)))) if error.is_gap() && !first.is_alone => {
                    first.is_alone = true;
                    self.send(&mut first, message);
                    self.under_way.push_front(first);
                }
                Some(Ok((_, Err(error)))) => return Err(self.failed(error)),
                Some(Err(_)) | None => return Err(self.failed(Error::Cut)),
            }
        }
        Ok(())
    }

    /// Goes back to what was taken: a message that follows a refused one must not count, whatever becomes of it.
    fn failed(&mut self, error: Error) -> Error {
        self.under_way.clear();
        self.offset = self.acknowledged;
        self.is_ahead = false;
        error
    }

    /// Waits until everything is taken; gives the batch's next offset.
    ///
    /// # Errors
    /// As [`Appender::push`].
    pub async fn finish(mut self) -> Result<u64, Error> {
        while self.is_busy() {
            self.settled().await?;
        }
        Ok(self.acknowledged)
    }
}
