//! The two ends of a stream of answers: a task that makes messages, and what the transport reads.
//!
//! A stream ends early for three reasons: its reader has gone, its deadline has come, the server stops. The transport's end says so by itself, whatever the task waits for; the task
//! hears of it at its next wait.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use store::Wakes;
use tokio::sync::{Notify, mpsc};
use tokio_stream::Stream;
use tonic::Status;

use crate::{
    deadline::Deadline,
    drain::Drain,
    limits::MESSAGES_AHEAD_MAX,
    memory::{Held, Memory},
    status::{Refusal, of_transport},
};

/// What all streams of a server share; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    pub(crate) drain: Drain,
    pub(crate) memory: Memory,
    open: Arc<AtomicUsize>,
}

impl Streams {
    pub(crate) fn new(drain: Drain) -> Self {
        Self { drain, memory: Memory::default(), open: Arc::default() }
    }

    /// Opens a stream that ends with its deadline.
    pub(crate) fn open<M>(&self, deadline: Deadline) -> (Outlet<M>, Outgoing<M>) {
        let (sender, receiver) = mpsc::channel(MESSAGES_AHEAD_MAX);
        let over = Over { drain: self.drain.clone(), deadline };
        let demand = Arc::new(Notify::new());
        self.open.fetch_add(1, Ordering::Relaxed);
        let outgoing = Outgoing {
            receiver,
            over: Box::pin(over.clone().comes()),
            demand: Arc::clone(&demand),
            open: Arc::clone(&self.open),
            is_over: false,
        };
        (Outlet { sender, over, demand, memory: self.memory.clone(), brought: AtomicU64::new(0) }, outgoing)
    }
}

/// What ends streams from this side.
#[derive(Clone, Debug)]
struct Over {
    drain: Drain,
    deadline: Deadline,
}

impl Over {
    /// Resolves when the stream is to end, with what its reader is told.
    async fn comes(self) -> Refusal {
        tokio::select! {
            () = self.drain.started() => Refusal::Stopping,
            () = self.deadline.passed() => Refusal::DeadlineExceeded,
        }
    }
}

/// Why a stream ends before its end.
#[derive(Debug)]
pub(crate) enum Cut {
    /// Nobody reads any more.
    Gone,
    /// It is told to the reader.
    Refused(Refusal),
    /// The transport's own word on what the client sent: too large, not decodable, cut.
    Transport(Status),
}

impl<E: Into<Refusal>> From<E> for Cut {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// A message, and the memory that it takes until it is encoded. Boxed: a channel has room for 32 of them from its first one on.
#[derive(Debug)]
struct Parcel<M> {
    message: Box<Result<M, Status>>,
    _held: Option<Held>,
}

/// The task's end of a stream.
#[derive(Debug)]
pub(crate) struct Outlet<M> {
    sender: mpsc::Sender<Parcel<M>>,
    over: Over,
    demand: Arc<Notify>,
    memory: Memory,
    /// Bytes so far.
    brought: AtomicU64,
}

/// Leave to send one message.
pub(crate) struct Room<'a, M> {
    permit: mpsc::Permit<'a, Parcel<M>>,
    memory: &'a Memory,
    brought: &'a AtomicU64,
}

impl<M> Room<'_, M> {
    /// Sends a message that takes about so many bytes.
    pub(crate) fn send(self, message: M, bytes: usize) {
        self.brought.fetch_add(bytes as u64, Ordering::Relaxed);
        self.permit.send(Parcel { message: Box::new(Ok(message)), _held: Some(self.memory.hold(bytes)) });
    }
}

impl<M> Outlet<M> {
    /// Whether its messages are to be small.
    pub(crate) fn is_short(&self) -> bool {
        self.memory.is_short(self.brought.load(Ordering::Relaxed))
    }

    /// Waits until a message may be made: while the reader is behind, and where memory is short until the transport has nothing left of the one before.
    pub(crate) async fn room(&self) -> Result<Room<'_, M>, Cut> {
        if self.is_short() {
            self.hold(self.demand.notified()).await?;
        }
        let permit = self.hold(self.sender.reserve()).await?.map_err(|_| Cut::Gone)?;
        Ok(Room { permit, memory: &self.memory, brought: &self.brought })
    }

    /// Sends one small message; waits while the reader is behind.
    pub(crate) async fn send(&self, message: M) -> Result<(), Cut> {
        self.room().await?.send(message, 0);
        Ok(())
    }

    /// Waits for a wake, at most `poll` and a jitter; returns whether there was one.
    pub(crate) async fn wait(&self, wakes: &mut Wakes, poll: Duration) -> Result<bool, Cut> {
        self.hold(wakes.wait(poll)).await
    }

    /// Waits until then.
    pub(crate) async fn pause_until(&self, then: tokio::time::Instant) -> Result<(), Cut> {
        self.hold(tokio::time::sleep_until(then)).await
    }

    /// Waits for something, as long as the stream goes on.
    pub(crate) async fn hold<T>(&self, something: impl Future<Output = T>) -> Result<T, Cut> {
        tokio::select! {
            something = something => Ok(something),
            cut = self.cut() => Err(cut),
        }
    }

    /// Resolves when the stream is cut.
    async fn cut(&self) -> Cut {
        tokio::select! {
            () = self.sender.closed() => Cut::Gone,
            refusal = self.over.clone().comes() => Cut::Refused(refusal),
        }
    }

    /// Tells the reader why the stream ends here.
    pub(crate) async fn end(&self, cut: Cut) {
        let status = match cut {
            Cut::Gone => return,
            Cut::Refused(refusal) => refusal.into(),
            Cut::Transport(status) => of_transport(status),
        };
        // An error means that the reader has gone or has been told: there is nobody left to tell.
        self.sender.send(Parcel { message: Box::new(Err(status)), _held: None }).await.ok();
    }
}

/// The transport's end of a stream.
pub(crate) struct Outgoing<M> {
    receiver: mpsc::Receiver<Parcel<M>>,
    over: Pin<Box<dyn Future<Output = Refusal> + Send>>,
    demand: Arc<Notify>,
    open: Arc<AtomicUsize>,
    is_over: bool,
}

impl<M> Stream for Outgoing<M> {
    type Item = Result<M, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(refusal) = self.over.as_mut().poll(context) {
            self.is_over = true;
            self.receiver.close();
            return Poll::Ready(Some(Err(refusal.into())));
        }
        let next = self.receiver.poll_recv(context);
        if next.is_pending() {
            self.demand.notify_one();
        }
        next.map(|parcel| Some(*parcel?.message))
    }
}

impl<M> Drop for Outgoing<M> {
    fn drop(&mut self) {
        let open = self.open.fetch_sub(1, Ordering::Relaxed) - 1;
        tracing::debug!(streams.open = open, "stream ended");
    }
}
