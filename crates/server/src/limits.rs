//! Every limit of the services, with its unit. `proto/README.md` lists those that clients meet.

use std::time::Duration;

/// Puzzles in one message, at the most.
pub(crate) const MESSAGE_PUZZLES_MAX: usize = 10_000;
/// Bytes of grids in one message, at the most.
pub(crate) const GRIDS_BYTES_MAX: usize = 5_000_000;
/// Bytes of a message that is decoded: above [`GRIDS_BYTES_MAX`], so that the limit can be named.
pub(crate) const DECODED_BYTES_MAX: usize = 8 << 20;
/// Puzzles in one batch, at the most.
pub(crate) const BATCH_PUZZLES_MAX: u64 = 1_000_000_000;
/// An append that follows another one to the same batch within this is part of a flow: workers are not told of it at once,
pub(crate) const FLOW_PAUSE: Duration = Duration::from_millis(100);
/// but after this, if its jobs still wait; while it goes on, twice as long after each time, for whoever is called then was called before and had nothing to do,
pub(crate) const RING_PAUSE_MIN: Duration = Duration::from_millis(20);
/// but not longer than this.
pub(crate) const RING_PAUSE_MAX: Duration = Duration::from_millis(160);
/// Not so an append of fewer puzzles: somebody may wait for them.
pub(crate) const FLOW_PUZZLES_MIN: usize = 1_000;
/// Batches whose last append is remembered.
pub(crate) const FLOWING_BATCHES_MAX: usize = 1_024;
/// Puzzles in the first chunks of a batch: small, so that its first results come soon and all workers get some.
pub(crate) const CHUNK_PUZZLES_MIN: u64 = 32;
/// A chunk grows to this part of what the batch already holds.
pub(crate) const CHUNK_GROWTH: u64 = 8;
/// Tries of an append against others to the same batch.
pub(crate) const APPEND_TRIES_MAX: usize = 16;
/// Packed bytes of the messages that are stored at once, unless a single one has more.
pub(crate) const APPEND_BYTES_MAX: usize = 1 << 20;
/// How long an append that has come before its turn waits, in all, for those before it at the same server.
pub(crate) const APPEND_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long it waits for those that have not even come yet: messages that are under way together arrive in any order.
pub(crate) const GAP_WAIT: Duration = Duration::from_millis(100);

/// Characters of a batch's id.
pub(crate) const BATCH_ID_CHARS: std::ops::RangeInclusive<usize> = 4..=63;
/// Characters of a display name, at the most.
pub(crate) const DISPLAY_NAME_CHARS_MAX: usize = 120;
/// Labels of a batch, at the most.
pub(crate) const LABELS_MAX: usize = 16;
/// Characters of a label's key.
pub(crate) const LABEL_KEY_CHARS: std::ops::RangeInclusive<usize> = 1..=63;
/// Characters of a label's value, at the most.
pub(crate) const LABEL_VALUE_CHARS_MAX: usize = 255;
/// Characters of a tenant's name, at the most.
pub(crate) const TENANT_CHARS_MAX: usize = 63;
/// Tenants whose numbers are remembered.
pub(crate) const TENANTS_REMEMBERED_MAX: usize = 1_024;
/// Greatest priority.
pub(crate) const PRIORITY_MAX: i32 = 9;
/// Field violations that one status names, at the most.
pub(crate) const VIOLATIONS_MAX: usize = 20;
/// Bytes of all of them, at the most: their status stays below 4 KB.
pub(crate) const VIOLATIONS_BYTES_MAX: usize = 3_000;
/// Bytes of anything that a client sent and a message repeats.
pub(crate) const ECHO_BYTES_MAX: usize = 80;

/// Finished ranges read at a time.
pub(crate) const RANGES_READ_MAX: usize = 64;
/// Puzzles whose verdicts one query reads for a stream, where that is more than one range: some 300 KB.
pub(crate) const VERDICTS_READ_MAX: u64 = 8_192;
/// Ranges above the watermark that a stream keeps apart, and so the length of its resume tokens: at most 4 KB.
pub(crate) const RESUME_RANGES_MAX: usize = 256;
/// Batches on a page of a list, where none is asked for.
pub(crate) const PAGE_BATCHES_DEFAULT: usize = 50;
/// Batches on a page of a list, at the most.
pub(crate) const PAGE_BATCHES_MAX: usize = 1_000;
/// Least time between two messages of a watch, where none is asked for.
pub(crate) const WATCH_INTERVAL_DEFAULT: Duration = Duration::from_secs(1);
/// What may be asked for.
pub(crate) const WATCH_INTERVALS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(60);
/// Jobs of a cancelled batch that one statement drops.
pub(crate) const DROPPED_MAX: usize = 10_000;
/// Messages made ahead for one slow reader.
pub(crate) const MESSAGES_AHEAD_MAX: usize = 2;
/// Bytes of answers under way over all streams from which on a stream makes small messages, one at a time, unless its reader has shown that it reads,
pub(crate) const UNREAD_BYTES_SOFT_MAX: usize = 4 << 20;
/// and from which on every stream does.
pub(crate) const UNREAD_BYTES_MAX: usize = 24 << 20;
/// Bytes after which a reader has shown that it reads: more than clients take in without.
pub(crate) const READ_BYTES_MIN: u64 = 8 << 20;
/// Puzzles in such a message: 7 KB, which fit the 8 KiB that a stream's encoder begins with.
pub(crate) const SMALL_MESSAGE_PUZZLES: u64 = 80;
/// Bytes of a puzzle in a message of results, about: its solution, outcome and placements.
pub(crate) const RESULT_BYTES: usize = 90;
/// Statements that streams run at a time to read, of the 16 connections of a server,
pub(crate) const STREAM_READS_MAX: usize = 4;
/// and that Solve calls run to write: unary calls of other clients find the rest.
pub(crate) const STREAM_WRITES_MAX: usize = 6;
/// A stream waits for its turn at the most so long: then the database is as good as away.
pub(crate) const TURN_WAIT_MAX: Duration = Duration::from_secs(10);
/// A call ends before its client's deadline by this part of it,
pub(crate) const DEADLINE_LEAD_SHARE: u32 = 20;
/// but not by more than this.
pub(crate) const DEADLINE_LEAD_MAX: Duration = Duration::from_millis(40);
/// A stream that has just found results looks again after this, for more of them are on their way; twice as long after each look that found nothing.
pub(crate) const POLL_FLOWING: Duration = Duration::from_millis(20);
/// One that begins looks again after this, whatever notifications say; likewise.
pub(crate) const POLL_MIN: Duration = Duration::from_millis(500);
/// But not longer than this.
pub(crate) const POLL_MAX: Duration = Duration::from_secs(4);
/// A quiet stream says that it lives after this.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

/// Streams on one connection, at the most.
pub(crate) const STREAMS_MAX: u32 = 32;
/// Window of one stream, in bytes.
pub(crate) const STREAM_WINDOW: u32 = 256 << 10;
/// Window of a connection, in bytes: all its streams stalled leave room for one more call.
pub(crate) const CONNECTION_WINDOW: u32 = (STREAMS_MAX + 1) * STREAM_WINDOW;
/// Bytes of an HTTP/2 frame, at the most: few frames to a message instead of one for each 16 KiB.
pub(crate) const FRAME_BYTES_MAX: u32 = 1 << 20;
/// A peer that was asked whether it lives has this part of the time for which it was silent to say so.
pub(crate) const KEEPALIVE_TIMEOUT_SHARE: u32 = 3;
/// A client is told to try again after this.
pub(crate) const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Partitions of the coming days are looked after this often.
pub(crate) const PARTITIONS_INTERVAL: Duration = Duration::from_secs(3_600);
/// What is queued is looked at this often.
pub(crate) const QUEUE_LOOK: Duration = Duration::from_secs(1);
/// Or with pauses of so many times what the look takes, so that a long queue costs the database a twentieth of a core for each server at the most,
pub(crate) const QUEUE_LOOK_SHARE: u32 = 20;
/// but not longer than this.
pub(crate) const QUEUE_LOOK_MAX: Duration = Duration::from_secs(30);
/// The size of the database is looked at this often: a client is told to try again after as long.
pub(crate) const DATABASE_LOOK: Duration = Duration::from_secs(10);
