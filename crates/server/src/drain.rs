//! Stopping: one signal that every stream watches.

use tokio::sync::watch;

/// Says when to stop; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Drain(watch::Receiver<bool>);

/// Raises the signal.
#[derive(Debug)]
pub(crate) struct DrainStart(watch::Sender<bool>);

impl Drain {
    pub(crate) fn new() -> (DrainStart, Self) {
        let (sender, receiver) = watch::channel(false);
        (DrainStart(sender), Self(receiver))
    }

    /// Resolves once the server is stopping.
    pub(crate) async fn started(&self) {
        let mut receiver = self.0.clone();
        // An error means that the server is gone altogether: stop as well.
        receiver.wait_for(|stopping| *stopping).await.ok();
    }

    pub(crate) fn is_started(&self) -> bool {
        *self.0.borrow()
    }
}

impl DrainStart {
    pub(crate) fn raise(&self) {
        self.0.send_replace(true);
    }
}
