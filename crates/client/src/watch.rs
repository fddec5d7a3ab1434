//! Watching a batch.

use proto::v1;
use tonic::Streaming;

use crate::Error;

/// A batch as it goes on.
#[derive(Debug)]
pub struct Watch {
    stream: Streaming<v1::WatchBatchResponse>,
    is_over: bool,
}

impl Watch {
    pub(crate) fn new(stream: Streaming<v1::WatchBatchResponse>) -> Self {
        Self { stream, is_over: false }
    }

    /// The batch at its next change. `None`: it has ended, as the value before said.
    ///
    /// # Errors
    /// [`Error::Cut`] when the stream ends before the batch has; [`Error::Status`]; [`Error::Contract`].
    pub async fn next(&mut self) -> Result<Option<v1::Batch>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let message = self.stream.message().await?.ok_or(Error::Cut)?;
        let batch = message.batch.ok_or(Error::Contract("a message of a watch holds no batch"))?;
        self.is_over = matches!(batch.state(), v1::batch::State::Succeeded | v1::batch::State::Cancelled);
        Ok(Some(batch))
    }
}
