//! Lists of batches, page by page.

use proto::v1;
use tonic::metadata::MetadataMap;

use crate::{batches::Shared, status::Refusal, tokens, wire};

impl Shared {
    pub(crate) async fn list(
        &self,
        metadata: &MetadataMap,
        request: v1::ListBatchesRequest,
    ) -> Result<v1::ListBatchesResponse, Refusal> {
        let (size, states) = wire::list(&request)?;
        // A token goes on with the list that it is of: its filter is part of its check.
        let filter = format!("{states:?}");
        let before = match &*request.page_token {
            "" => None,
            token => Some(tokens::read_page(token, &filter)?),
        };
        let Some(tenant) = self.tenants.existing(&self.store, metadata).await? else {
            return Ok(v1::ListBatchesResponse::default());
        };
        // One more than asked says whether there is another page.
        let mut found = self.store.list(tenant, before, &states, size + 1).await?;
        let is_last = found.len() <= size;
        found.truncate(size);
        let next_page_token = match found.last() {
            Some((last, _)) if !is_last => tokens::page(last.key.id(), &filter),
            _ => String::new(),
        };
        let batches = found.into_iter().map(|(batch, progress)| wire::batch(batch, progress)).collect();
        Ok(v1::ListBatchesResponse { batches, next_page_token })
    }
}
