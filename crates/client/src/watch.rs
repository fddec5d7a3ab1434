//! Watching a batch.

use proto::v1;

use crate::{Client, Error, patience::Patience, results::Opened};

/// A batch as it goes on. A stream that breaks is opened again, as the client's [`Retry`](crate::Retry) says.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    request: v1::WatchBatchRequest,
    stream: Option<Opened<v1::WatchBatchResponse>>,
    patience: Patience,
    is_over: bool,
}

impl Watch {
    pub(crate) async fn open(client: Client, request: v1::WatchBatchRequest) -> Result<Self, Error> {
        let mut watch = Self { client, request, stream: None, patience: Patience::default(), is_over: false };
        while watch.stream.is_none() {
            watch.reopen().await?;
        }
        Ok(watch)
    }

    /// The batch at its next change, or as it still is if it was quiet for long. `None`: it has ended, as the value before said. May be dropped and called again.
    ///
    /// # Errors
    /// [`Error::Cut`] when the stream ends before the batch has; [`Error::Status`]; [`Error::Contract`].
    pub async fn next(&mut self) -> Result<Option<v1::Batch>, Error> {
        loop {
            if self.is_over {
                return Ok(None);
            }
            let Some(opened) = &mut self.stream else {
                self.reopen().await?;
                continue;
            };
            let message = match opened.message().await {
                Ok(message) => message.ok_or(Error::Cut)?,
                Err(error) => {
                    let route = opened.route.clone();
                    self.stream = None;
                    self.client.failed(&mut self.patience, error, &route).await?;
                    continue;
                }
            };
            self.patience.succeeded();
            let batch = message.batch.ok_or(Error::Contract("a message of a watch holds no batch"))?;
            self.is_over = matches!(batch.state(), v1::batch::State::Succeeded | v1::batch::State::Cancelled);
            return Ok(Some(batch));
        }
    }

    /// Opens the stream; waits if that fails in a way that may pass.
    async fn reopen(&mut self) -> Result<(), Error> {
        let (route, place) = self.client.stream_route();
        match self.client.open_watch(self.request.clone(), &route).await {
            Ok(stream) => self.stream = Some(Opened { stream, route, _place: place }),
            Err(error) => self.client.failed(&mut self.patience, error, &route).await?,
        }
        Ok(())
    }
}
