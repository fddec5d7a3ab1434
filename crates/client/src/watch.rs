//! Watching a batch.

use std::fmt;

use proto::v1;
use tonic::Streaming;

use crate::{
    Client, Error,
    lasting::{Ask, Lasting},
    servers::Route,
};

/// A batch as it goes on. A stream that breaks is opened again, as the client's [`Retry`](crate::Retry) says.
pub struct Watch {
    stream: Lasting<v1::WatchBatchRequest>,
    is_over: bool,
}

impl Ask for v1::WatchBatchRequest {
    type Message = v1::WatchBatchResponse;

    async fn open(self, client: Client, route: Route) -> Result<Streaming<Self::Message>, Error> {
        client.open_watch(self, &route).await
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.stream.ask.name;
        formatter.debug_struct("Watch").field("name", name).field("is_over", &self.is_over).finish()
    }
}

impl Watch {
    pub(crate) async fn open(client: Client, ask: v1::WatchBatchRequest) -> Result<Self, Error> {
        Ok(Self { stream: Lasting::open(client, ask).await?, is_over: false })
    }

    /// The batch at its next change, or as it still is if it was quiet for long. `None`: it has ended, as the value before said. May be dropped and called again.
    ///
    /// # Errors
    /// [`Error::Cut`] when the stream ends before the batch has; [`Error::Status`]; [`Error::Contract`].
    pub async fn next(&mut self) -> Result<Option<v1::Batch>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let message = self.stream.message().await?;
        let batch = message.batch.ok_or(Error::Contract("a message of a watch holds no batch"))?;
        self.is_over = matches!(batch.state(), v1::batch::State::Succeeded | v1::batch::State::Cancelled);
        Ok(Some(batch))
    }
}
