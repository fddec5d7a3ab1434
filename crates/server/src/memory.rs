//! Memory for answers that are not read: bounded over all streams, measured to the byte.
//!
//! A stream whose reader is slow keeps what was made for it: messages that wait to be encoded, frames that wait for the reader's window or for the socket. A thousand such
//! streams would keep a thousand times as much. So what is under way is counted, from the moment that a message is made until the transport has written its last byte and drops it. While
//! that is much over all, each stream makes small messages, one at a time, and only when the one before has left: enough for it to go on, and little to keep.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst},
    },
};

use futures_util::task::AtomicWaker;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::{
    Status,
    body::Body,
    codegen::{BoxFuture, Bytes, Context, Pin, Poll, Service, http},
    server::NamedService,
};

use crate::{
    limits::{READ_BYTES_MIN, UNREAD_BYTES_MAX, UNREAD_BYTES_SOFT_MAX},
    status::of_transport,
};

/// Bytes under way over all streams; cheap to clone.
#[derive(Clone, Default, Debug)]
pub(crate) struct Memory(Arc<AtomicUsize>);

impl Memory {
    /// So many bytes are under way from now on, until the guard goes.
    pub(crate) fn hold(&self, bytes: usize) -> Held {
        self.0.fetch_add(bytes, Relaxed);
        Held { memory: self.clone(), bytes }
    }

    /// Whether the messages of a stream that has brought so many bytes are to be small, and made one at a time. Streams that nobody reads come to a stand before they have
    /// brought much; others are not slowed down by them.
    pub(crate) fn is_short(&self, brought: u64) -> bool {
        let held = self.0.load(Relaxed);
        held >= UNREAD_BYTES_MAX || (held >= UNREAD_BYTES_SOFT_MAX && brought < READ_BYTES_MIN)
    }
}

/// Bytes that are under way.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Memory,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Relaxed);
    }
}

/// What the transport has of one stream and has not written yet.
#[derive(Default, Debug)]
struct Unwritten {
    bytes: AtomicUsize,
    /// Who waits for it to become nothing.
    waker: AtomicWaker,
}

/// A frame that tells when the transport lets go of it.
struct MeteredFrame {
    frame: Bytes,
    _held: Held,
    unwritten: Arc<Unwritten>,
}

impl AsRef<[u8]> for MeteredFrame {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

impl Drop for MeteredFrame {
    fn drop(&mut self) {
        if self.unwritten.bytes.fetch_sub(self.frame.len(), SeqCst) == self.frame.len() {
            self.unwritten.waker.wake();
        }
    }
}

/// A service whose answers are counted while they are under way.
#[derive(Clone, Debug)]
pub(crate) struct MeterDownload<S> {
    pub(crate) inner: S,
    pub(crate) memory: Memory,
}

impl<S: NamedService> NamedService for MeterDownload<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<http::Request<B>> for MeterDownload<S>
where
    S: Service<http::Request<B>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let memory = self.memory.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let mut answer = answer.await?;
            // A refusal without a body has its status in its headers; what tonic itself refuses comes here without details.
            if let Some(refused) = Status::from_header_map(answer.headers()) {
                // An error means that it cannot be written better than it is.
                of_transport(refused).add_header(answer.headers_mut()).ok();
            }
            let metered =
                |body| Body::new(MeteredBody { body, memory, unwritten: Arc::default(), brought: 0 });
            Ok(answer.map(metered))
        })
    }
}

struct MeteredBody {
    body: Body,
    memory: Memory,
    unwritten: Arc<Unwritten>,
    /// Bytes so far.
    brought: u64,
}

impl MeteredBody {
    /// Whether the transport is to write what it has first. Then it is woken when it has.
    fn is_to_wait(&self, context: &Context<'_>) -> bool {
        let is_behind = || self.unwritten.bytes.load(SeqCst) > 0;
        if !is_behind() || !self.memory.is_short(self.brought) {
            return false;
        }
        self.unwritten.waker.register(context.waker());
        // It may have been written in between, and then nobody wakes it.
        is_behind()
    }
}

impl HttpBody for MeteredBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.is_to_wait(context) {
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        polled.map_ok(|frame| {
            frame.map_data(|frame| {
                self.brought += frame.len() as u64;
                let (held, unwritten) = (self.memory.hold(frame.len()), Arc::clone(&self.unwritten));
                unwritten.bytes.fetch_add(frame.len(), SeqCst);
                Bytes::from_owner(MeteredFrame { frame, _held: held, unwritten })
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicBool, task::Wake};

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }

    /// A body of frames of one byte, without an end.
    struct Endless;

    impl HttpBody for Endless {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    #[test]
    fn a_stream_goes_on_while_there_is_memory_and_otherwise_frame_by_frame() {
        let memory = Memory::default();
        let mut body = MeteredBody {
            body: Body::new(Endless),
            memory: memory.clone(),
            unwritten: Arc::default(),
            brought: 0,
        };
        let woken = Arc::new(Woken::default());
        let waker = Arc::clone(&woken).into();
        let mut context = Context::from_waker(&waker);
        let mut next = |body: &mut MeteredBody| match Pin::new(body).poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            _ => None,
        };
        let first = next(&mut body).expect("there is memory");
        let second = next(&mut body).expect("there is memory");
        assert_eq!(memory.0.load(Relaxed), 2);

        let others = memory.hold(UNREAD_BYTES_SOFT_MAX);
        assert!(memory.is_short(0) && !memory.is_short(READ_BYTES_MIN));
        assert!(next(&mut body).is_none(), "two frames are unwritten");
        drop(first);
        assert!(!woken.0.load(SeqCst) && next(&mut body).is_none(), "one frame is unwritten");
        drop(second);
        assert!(woken.0.load(SeqCst), "all is written");
        let third = next(&mut body).expect("one frame at a time");
        assert!(next(&mut body).is_none());
        drop(others);
        assert!(next(&mut body).is_some(), "there is memory again");
        drop((third, body));
        assert_eq!(memory.0.load(Relaxed), 0, "nothing is counted for ever");
    }
}
