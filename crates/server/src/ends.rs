//! Cancelling and deleting batches.

use proto::v1;
use store::{Batch, BatchState, Cancel};
use tonic::metadata::MetadataMap;

use crate::{batches::Shared, limits::DROPPED_MAX, status::Refusal, wire};

impl Shared {
    pub(crate) async fn cancel(
        &self,
        metadata: &MetadataMap,
        request: v1::CancelBatchRequest,
    ) -> Result<v1::CancelBatchResponse, Refusal> {
        let id = wire::batch_id(&request.name)?;
        let tenant = self.owner(metadata, &request.name).await?;
        let batch = self.batch(tenant, id).await?;
        let begun = self.store.cancel(batch.key).await?;
        if begun.is_some() {
            tracing::info!(batch.id = batch.key.id(), batch.name, "batch is being cancelled");
            self.store.notify_cancels().await?;
        }
        self.drop_jobs(&batch).await?;
        let found = self.store.batch_progress(batch.key).await;
        let (batch, progress) = found.map_err(|error| Refusal::of_batch(error, id))?;
        // What this call did; of one that came before only its end is known.
        let counts = begun.unwrap_or_else(|| Cancel {
            done: progress.done - progress.cancelled,
            stopping: match batch.state {
                BatchState::Cancelling => batch.puzzle_count - progress.done,
                _ => 0,
            },
            dropped: progress.cancelled,
        });
        Ok(v1::CancelBatchResponse {
            batch: Some(wire::batch(batch, progress)),
            done_count: wire::signed(counts.done),
            stopping_count: wire::signed(counts.stopping),
            dropped_count: wire::signed(counts.dropped),
        })
    }

    pub(crate) async fn delete(
        &self,
        metadata: &MetadataMap,
        request: v1::DeleteBatchRequest,
    ) -> Result<(), Refusal> {
        let id = wire::batch_id(&request.name)?;
        let tenant = self.owner(metadata, &request.name).await?;
        // Twice: it may end between the try and the look.
        for is_last in [false, true] {
            let batch = self.batch(tenant, id).await?;
            if self.store.delete(batch.key, request.force).await? {
                tracing::info!(batch.id = batch.key.id(), batch.name, "batch deleted");
                return self.drop_jobs(&batch).await;
            }
            let state = self.batch(tenant, id).await?.state;
            if is_last || !state.is_final() {
                return Err(Refusal::BatchNotEnded { name: wire::batch_name(id), state });
            }
        }
        Err(Refusal::Contended)
    }

    /// Drops the jobs of a batch that is being cancelled, as far as no worker holds them, and ends it if that was all. Of any other batch: nothing.
    async fn drop_jobs(&self, batch: &Batch) -> Result<(), Refusal> {
        let id = batch.key.id();
        while self.store.drop_cancelled(id, DROPPED_MAX).await? == DROPPED_MAX as u64 {}
        if let Some(ended) = self.store.finish(id).await? {
            tracing::info!(batch.id = id, batch.name = ended.name, state = ?ended.state, "batch ended");
        }
        self.store.notify_results(&[id]).await?;
        Ok(())
    }
}
