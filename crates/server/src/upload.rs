//! Telling a client that has sent its last from one that was cut.
//!
//! Below tonic a reset stream and an ended one look the same: the transport and the decoder turn a cancelled request into a quiet end. A
//! batch must be sealed by the one and not by the other, so the body itself is asked how it ended.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::{
    Status,
    body::Body,
    codegen::{BoxFuture, Bytes, Context, Pin, Poll, Service, http},
    server::NamedService,
};

/// Whether a request's body has come to its proper end. An extension of every request to a [`WatchUpload`].
#[derive(Clone, Default, Debug)]
pub(crate) struct UploadEnd(Arc<AtomicBool>);

impl UploadEnd {
    /// The client has said that there is no more.
    pub(crate) fn is_reached(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A service whose requests carry an [`UploadEnd`].
#[derive(Clone, Debug)]
pub(crate) struct WatchUpload<S>(pub(crate) S);

impl<S: NamedService> NamedService for WatchUpload<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for WatchUpload<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let end = UploadEnd::default();
        // A request without a body ends with its headers, and such a body is never polled.
        end.0.store(request.body().is_end_stream(), Ordering::Release);
        let mut request = request.map(|body| Body::new(WatchedBody { body, end: end.clone() }));
        request.extensions_mut().insert(end);
        Box::pin(self.0.call(request))
    }
}

struct WatchedBody {
    body: Body,
    end: UploadEnd,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        // True only when the end of the stream was received and all of it was read: never after a reset.
        if self.body.is_end_stream() {
            self.end.0.store(true, Ordering::Release);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
