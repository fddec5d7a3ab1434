//! Watching a batch: its state and progress at each change, at a bounded rate.

use proto::v1;
use store::{Batch, Wakes};
use tokio::time::Instant;
use tonic::metadata::MetadataMap;

use crate::{
    batches::Shared,
    deadline::Deadline,
    limits::{HEARTBEAT, POLL_MAX, POLL_MIN},
    outlet::{Cut, Outgoing, Outlet},
    status::Refusal,
    wire,
};

impl Shared {
    pub(crate) async fn watch(
        &self,
        metadata: &MetadataMap,
        request: v1::WatchBatchRequest,
    ) -> Result<Outgoing<v1::WatchBatchResponse>, Refusal> {
        let deadline = Deadline::of(metadata);
        let id = wire::batch_id(&request.name)?;
        let interval = wire::watch_interval(request.min_interval)?;
        let tenant = self.owner(metadata, &request.name).await?;
        let batch = self.batch(tenant, id).await?;
        let (outlet, outgoing) = self.streams.open(deadline);
        let shared = self.clone();
        tokio::spawn(async move {
            let wakes = shared.waker.results(batch.key.id());
            if let Err(cut) = run(&shared, batch, interval, &outlet, wakes).await {
                outlet.end(cut).await;
            }
        });
        Ok(outgoing)
    }
}

/// Sends the batch now and whenever it has changed, and again when it was quiet for long; ends with the batch.
async fn run(
    shared: &Shared,
    watched: Batch,
    interval: std::time::Duration,
    outlet: &Outlet<v1::WatchBatchResponse>,
    mut wakes: Wakes,
) -> Result<(), Cut> {
    let mut last: Option<(v1::Batch, Instant)> = None;
    let mut poll = POLL_MIN;
    loop {
        wakes.arm();
        let batch = shared.in_turn(shared.full_again(&watched)).await?;
        let is_final = matches!(batch.state(), v1::batch::State::Succeeded | v1::batch::State::Cancelled);
        let is_news = last.as_ref().is_none_or(|(sent, when)| *sent != batch || when.elapsed() >= HEARTBEAT);
        if is_news {
            outlet.send(v1::WatchBatchResponse { batch: Some(batch.clone()) }).await?;
            last = Some((batch, Instant::now()));
            poll = POLL_MIN;
        }
        if is_final {
            return Ok(());
        }
        if !outlet.wait(&mut wakes, poll).await? {
            poll = (poll * 2).min(POLL_MAX);
        }
        if let Some((_, when)) = &last {
            outlet.pause_until(*when + interval).await?;
        }
    }
}
