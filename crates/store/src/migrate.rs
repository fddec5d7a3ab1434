//! Bringing the schema up to date, from any number of processes at once.

use sqlx::{Connection as _, migrate::Migrator};

use crate::{Error, Store};

static MIGRATOR: Migrator = sqlx::migrate!("../../migrations");

/// Tries of a migration against others who are at work.
const MIGRATE_TRIES_MAX: u32 = 5;
/// Days for which partitions are made ahead: today, and enough that a weekend without a server is no accident.
const PARTITION_DAYS_AHEAD: i32 = 7;

impl Store {
    /// Brings the schema up to date and makes the partitions of the coming days. Safe to run at once from many processes: one
    /// does the work under an advisory lock, the others wait. Does nothing (and needs no rights to change the schema) when
    /// all is there. Migrations of a newer version are left alone, so an older program still starts after a roll-back.
    ///
    /// # Errors
    /// [`Error::Migrate`] or [`Error::Database`].
    pub async fn migrate(&self) -> Result<(), Error> {
        if !self.is_current().await? {
            let mut migrator = Migrator::with_migrations(MIGRATOR.iter().cloned().collect());
            migrator.set_ignore_missing(true).set_locking(false);
            self.run(&migrator).await?;
        }
        self.ensure_partitions().await
    }

    /// Runs the migrations; again if others who were at work came in between: each is all or nothing.
    async fn run(&self, migrator: &Migrator) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.run_once(migrator).await {
                Err(error) if error.is_transient() && tries < MIGRATE_TRIES_MAX => {
                    tracing::warn!(%error, "the schema could not be changed just now; trying again");
                }
                done => return done,
            }
        }
    }

    /// Runs the migrations in one transaction, which has the lock until its end: a lock of the session could stay with a server that a pooler lends to others next.
    async fn run_once(&self, migrator: &Migrator) -> Result<(), Error> {
        // Out of the pool: it is cut if this fails or is dropped, with all that it has prepared.
        let mut connection = self.pool.connections().acquire().await?.detach();
        let mut transaction = connection.begin_with(self.pool.begin()).await?;
        sqlx::raw_sql("select pg_advisory_xact_lock(hashtext('sudoku-batch migrations'))")
            .execute(&mut *transaction)
            .await?;
        migrator.run_direct(None, &mut *transaction, false).await?;
        // A pooler's server outlives this connection, and the names of its statements come again.
        transaction.clear_cached_statements().await?;
        transaction.commit().await?;
        connection.close().await?;
        Ok(())
    }

    /// Makes the partitions from today on, as far as they are missing.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn ensure_partitions(&self) -> Result<(), Error> {
        let missing = sqlx::query_scalar!(
            r#"
            select day as "day!"
            from generate_series(
                (extract(epoch from now())::bigint / 86400)::int,
                (extract(epoch from now())::bigint / 86400)::int + $1::int
            ) as day
            where to_regclass('payload_' || day) is null
                or to_regclass('result_' || day) is null
                or to_regclass('result_piece_' || day) is null
            "#,
            PARTITION_DAYS_AHEAD
        )
        .fetch_all(&self.pool)
        .await?;
        for day in missing {
            sqlx::query!("select ensure_partitions($1)::text as done", day).fetch_one(&self.pool).await?;
        }
        Ok(())
    }

    async fn is_current(&self) -> Result<bool, Error> {
        // Not by macro: this table belongs to sqlx and may not be there yet.
        let present: bool = sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
            .fetch_one(&self.pool)
            .await?;
        if !present {
            return Ok(false);
        }
        let applied: Vec<(i64, Vec<u8>)> =
            sqlx::query_as("select version, checksum from _sqlx_migrations where success")
                .fetch_all(&self.pool)
                .await?;
        Ok(MIGRATOR.iter().all(|migration| {
            applied.iter().any(|(version, checksum)| {
                *version == migration.version && checksum[..] == migration.checksum[..]
            })
        }))
    }
}
