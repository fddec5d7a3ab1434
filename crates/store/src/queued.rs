//! How much there is: puzzles in the queue, bytes in the database.

use crate::{Error, Store, TenantId, batches::unsigned};

impl Store {
    /// The puzzles that wait or are being solved, of each tenant that has any. Walks through all jobs: ask seldom.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn queued(&self) -> Result<Vec<(TenantId, u64)>, Error> {
        let rows = sqlx::query_file!("queries/queued.sql").fetch_all(&self.pool).await?;
        rows.into_iter().map(|row| Ok((TenantId(row.tenant_id), unsigned(row.puzzles)?))).collect()
    }

    /// What the database takes on disk. Looks at every file of it: ask seldom.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn database_bytes(&self) -> Result<u64, Error> {
        let bytes = sqlx::query_scalar!(r#"select pg_database_size(current_database()) as "bytes!""#)
            .fetch_one(&self.pool)
            .await?;
        unsigned(bytes)
    }
}
