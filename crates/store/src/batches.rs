//! Batches and tenants: create, find, list, seal, and how far they are.

use std::collections::BTreeMap;

use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Error, Store};

/// Tries of a create against deletes of the same name.
const CREATE_TRIES_MAX: usize = 8;

/// A tenant, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TenantId(pub(crate) i32);

/// Names a batch in the database: its partition and its number. The default names none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct BatchKey {
    pub(crate) part: i32,
    pub(crate) id: i64,
}

impl BatchKey {
    /// The batch's number, as in logs and notifications.
    #[must_use]
    pub fn id(self) -> i64 {
        self.id
    }
}

/// Where a batch is in its life; `migrations/README.md` draws it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BatchState {
    /// Takes appends; workers already solve.
    Open,
    /// Complete input, being solved.
    Sealed,
    /// Every puzzle has an outcome.
    Succeeded,
    /// Being cancelled.
    Cancelling,
    /// Cancelled.
    Cancelled,
}

impl BatchState {
    /// Whether nothing will change any more.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Cancelled)
    }

    /// Its number in the database, the same as on the wire.
    fn number(self) -> i16 {
        match self {
            Self::Open => 1,
            Self::Sealed => 2,
            Self::Succeeded => 3,
            Self::Cancelling => 4,
            Self::Cancelled => 5,
        }
    }
}

impl TryFrom<i16> for BatchState {
    type Error = Error;

    fn try_from(number: i16) -> Result<Self, Error> {
        Ok(match number {
            1 => Self::Open,
            2 => Self::Sealed,
            3 => Self::Succeeded,
            4 => Self::Cancelling,
            5 => Self::Cancelled,
            other => return Err(Error::Unknown { what: "batch state", value: other.into() }),
        })
    }
}

/// What a client asks for when it creates a batch. Limits are checked by the caller and held by constraints.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewBatch {
    /// Its name, unique for the tenant: 4 to 63 of `[a-z0-9-]`.
    pub name: String,
    /// Whether the client chose the name: a name made by the server says nothing when a request is repeated.
    pub name_is_chosen: bool,
    /// Finds the same batch again when the request is repeated.
    pub request_id: Option<Uuid>,
    /// Placements counted at the most for one puzzle; 0: none.
    pub placement_limit: u64,
    /// 0 to 9.
    pub priority: i16,
    /// For people.
    pub display_name: String,
    /// For programs.
    pub labels: BTreeMap<String, String>,
}

/// A batch as it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Names it in the database.
    pub key: BatchKey,
    /// Names it for its tenant.
    pub name: String,
    /// Where it is in its life.
    pub state: BatchState,
    /// Placements counted at the most for one puzzle; 0: none.
    pub placement_limit: u64,
    /// 0 to 9.
    pub priority: i16,
    /// For people.
    pub display_name: String,
    /// For programs.
    pub labels: BTreeMap<String, String>,
    /// Puzzles appended so far.
    pub puzzle_count: u64,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// When it was sealed.
    pub sealed_at: Option<OffsetDateTime>,
    /// When it ended.
    pub ended_at: Option<OffsetDateTime>,
    /// When it is hidden like a deleted one, if it has ended by then; `None` while it is open.
    pub expires_at: Option<OffsetDateTime>,
}

/// How a create ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Created {
    /// It was made now.
    New(Batch),
    /// It was there with the same options.
    Existing(Batch),
    /// The name or the request id is taken by a batch with other options.
    Taken(Batch),
}

impl Created {
    fn of_twin(twin: Batch, new: &NewBatch) -> Self {
        let same_options = twin.placement_limit == new.placement_limit
            && twin.priority == new.priority
            && twin.display_name == new.display_name
            && twin.labels == new.labels
            && (!new.name_is_chosen || twin.name == new.name);
        if same_options { Self::Existing(twin) } else { Self::Taken(twin) }
    }
}

/// Sums over the finished ranges of a batch, in puzzles (placements in placements); and how far the searches are that are running.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[allow(missing_docs, reason = "the fields are the outcomes, by their names")]
pub struct Progress {
    /// Puzzles with an outcome.
    pub done: u64,
    pub unique: u64,
    pub multiple: u64,
    pub no_solution: u64,
    pub invalid: u64,
    pub undecided: u64,
    pub failed: u64,
    pub cancelled: u64,
    /// Puzzles whose placements were over the limit.
    pub over_limit: u64,
    /// Placements of all the puzzles that were counted to the end.
    pub placements: u64,
    /// Placements so far in the searches that are running, as their workers last said.
    pub running_placements: u64,
}

struct BatchRow {
    id: i64,
    part: i32,
    name: String,
    state: i16,
    placement_limit: i64,
    priority: i16,
    display_name: String,
    labels: Json<BTreeMap<String, String>>,
    puzzle_count: i64,
    created_at: OffsetDateTime,
    sealed_at: Option<OffsetDateTime>,
    ended_at: Option<OffsetDateTime>,
    expires_at: Option<OffsetDateTime>,
    /// What [`Progress`] holds, in its order, where it was asked for.
    sums: Option<Vec<i64>>,
}

impl BatchRow {
    fn with_progress(mut self) -> Result<(Batch, Progress), Error> {
        let sums = self.sums.take().unwrap_or_default();
        let progress = Progress::of_sums(&sums)?;
        Ok((self.try_into()?, progress))
    }
}

impl Progress {
    /// Of the sums that `batch.sql` and `list.sql` give.
    fn of_sums(sums: &[i64]) -> Result<Self, Error> {
        let &[
            done,
            unique,
            multiple,
            no_solution,
            invalid,
            undecided,
            failed,
            cancelled,
            over_limit,
            placements,
            running_placements,
        ] = sums
        else {
            return Err(Error::Unknown {
                what: "number of sums",
                value: sums.len().try_into().unwrap_or(i64::MAX),
            });
        };
        Ok(Self {
            done: unsigned(done)?,
            unique: unsigned(unique)?,
            multiple: unsigned(multiple)?,
            no_solution: unsigned(no_solution)?,
            invalid: unsigned(invalid)?,
            undecided: unsigned(undecided)?,
            failed: unsigned(failed)?,
            cancelled: unsigned(cancelled)?,
            over_limit: unsigned(over_limit)?,
            placements: unsigned(placements)?,
            running_placements: unsigned(running_placements)?,
        })
    }
}

impl TryFrom<BatchRow> for Batch {
    type Error = Error;

    fn try_from(row: BatchRow) -> Result<Self, Error> {
        Ok(Self {
            key: BatchKey { part: row.part, id: row.id },
            name: row.name,
            state: row.state.try_into()?,
            placement_limit: unsigned(row.placement_limit)?,
            priority: row.priority,
            display_name: row.display_name,
            labels: row.labels.0,
            puzzle_count: unsigned(row.puzzle_count)?,
            created_at: row.created_at,
            sealed_at: row.sealed_at,
            ended_at: row.ended_at,
            expires_at: row.expires_at,
        })
    }
}

/// A count of the database, which has no unsigned numbers.
pub(crate) fn unsigned(value: i64) -> Result<u64, Error> {
    u64::try_from(value).map_err(|_| Error::Unknown { what: "count", value })
}

/// A count for the database. Beyond its range only by a fault of the caller, and then no row matches.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Store {
    /// The tenant of that name, if it has ever been named.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn find_tenant(&self, name: &str) -> Result<Option<TenantId>, Error> {
        let found = sqlx::query_scalar!("select id from tenant where name = $1", name)
            .fetch_optional(&self.pool)
            .await?;
        Ok(found.map(TenantId))
    }

    /// The tenant of that name; made when it is named for the first time.
    ///
    /// # Errors
    /// [`Error::Database`], also for a name against the rules.
    pub async fn tenant(&self, name: &str) -> Result<TenantId, Error> {
        if let Some(tenant) = self.find_tenant(name).await? {
            return Ok(tenant);
        }
        // A racing insert of the same name wins quietly: both then read the same row.
        let id = sqlx::query_scalar!(
            "insert into tenant (name) values ($1) on conflict (name) do update set name = excluded.name returning id",
            name
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(TenantId(id))
    }

    /// Makes a batch, or finds the one that an earlier try of the same request made.
    ///
    /// # Errors
    /// [`Error::Contended`] when others make and delete batches of that name all the while; [`Error::Database`].
    pub async fn create_batch(&self, tenant: TenantId, new: &NewBatch) -> Result<Created, Error> {
        for _ in 0..CREATE_TRIES_MAX {
            if let Some(batch) = self.insert(tenant, new).await? {
                return Ok(Created::New(batch));
            }
            // None: what stood in the way was deleted meanwhile.
            if let Some(twin) = self.twin(tenant, new).await? {
                return Ok(Created::of_twin(twin.try_into()?, new));
            }
        }
        Err(Error::Contended)
    }

    /// Makes a batch, unless its name or request id is taken.
    async fn insert(&self, tenant: TenantId, new: &NewBatch) -> Result<Option<Batch>, Error> {
        let row = sqlx::query_as!(
            BatchRow,
            r#"
            insert into batch (
                part, tenant_id, name, request_id, placement_limit, priority, display_name, labels, keep, keep_cancelled,
                puzzle_cost
            )
            values (
                (extract(epoch from now())::bigint / 86400)::int, $1, $2, $3, $4, $5, $6, $7,
                make_interval(secs => $8), make_interval(secs => $9), (select puzzle_cost from tenant where id = $1)
            )
            on conflict do nothing
            returning id, part, name, state, placement_limit, priority, display_name,
                labels as "labels: Json<BTreeMap<String, String>>", puzzle_count, created_at, sealed_at, ended_at, expires_at,
                null::bigint[] as sums
            "#,
            tenant.0,
            new.name,
            new.request_id,
            signed(new.placement_limit),
            new.priority,
            new.display_name,
            Json(&new.labels) as _,
            self.keep.succeeded.as_secs_f64(),
            self.keep.cancelled.as_secs_f64(),
        )
        .fetch_optional(&self.pool)
        .await?;
        row.map(Batch::try_from).transpose()
    }

    /// The batch that stands in the way of a create: by request id first, for that is what a repeat carries.
    async fn twin(&self, tenant: TenantId, new: &NewBatch) -> Result<Option<BatchRow>, Error> {
        Ok(sqlx::query_as!(
            BatchRow,
            r#"
            select id, part, name, state, placement_limit, priority, display_name,
                labels as "labels: Json<BTreeMap<String, String>>", puzzle_count, created_at, sealed_at, ended_at, expires_at,
                null::bigint[] as sums
            from batch
            where tenant_id = $1 and (name = $2 or request_id = $3) and deleted_at is null
            order by request_id is not distinct from $3 desc
            limit 1
            "#,
            tenant.0,
            new.name,
            new.request_id,
        )
        .fetch_optional(&self.pool)
        .await?)
    }

    /// Finds a tenant's batch by its name.
    ///
    /// # Errors
    /// [`Error::BatchNotFound`], [`Error::Database`].
    pub async fn batch(&self, tenant: TenantId, name: &str) -> Result<Batch, Error> {
        sqlx::query_as!(
            BatchRow,
            r#"
            select id, part, name, state, placement_limit, priority, display_name,
                labels as "labels: Json<BTreeMap<String, String>>", puzzle_count, created_at, sealed_at, ended_at, expires_at,
                null::bigint[] as sums
            from batch
            where tenant_id = $1 and name = $2 and deleted_at is null
            "#,
            tenant.0,
            name,
        )
        .fetch_optional(&self.pool)
        .await?
        .ok_or(Error::BatchNotFound)?
        .try_into()
    }

    /// A batch that was found before, as it is now. Not by its name: that may be another's since it was deleted.
    ///
    /// # Errors
    /// [`Error::BatchNotFound`], [`Error::Database`].
    pub async fn current(&self, key: BatchKey) -> Result<Batch, Error> {
        sqlx::query_as!(
            BatchRow,
            r#"
            select id, part, name, state, placement_limit, priority, display_name,
                labels as "labels: Json<BTreeMap<String, String>>", puzzle_count, created_at, sealed_at, ended_at, expires_at,
                null::bigint[] as sums
            from batch
            where id = $1 and deleted_at is null
            "#,
            key.id,
        )
        .fetch_optional(&self.pool)
        .await?
        .ok_or(Error::BatchNotFound)?
        .try_into()
    }

    /// A batch that was found before, as it is now, with how far it is, both as of one moment.
    ///
    /// # Errors
    /// [`Error::BatchNotFound`], [`Error::Database`].
    pub async fn batch_progress(&self, key: BatchKey) -> Result<(Batch, Progress), Error> {
        sqlx::query_file_as!(BatchRow, "queries/batch.sql", key.id)
            .fetch_optional(&self.pool)
            .await?
            .ok_or(Error::BatchNotFound)?
            .with_progress()
    }

    /// A page of a tenant's batches, newest first, each with how far it is: those older than the batch of number `before`, in one of `states`
    /// (none: in any), at most `batches_max`.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn list(
        &self,
        tenant: TenantId,
        before: Option<i64>,
        states: &[BatchState],
        batches_max: usize,
    ) -> Result<Vec<(Batch, Progress)>, Error> {
        let states: Vec<i16> = states.iter().map(|state| state.number()).collect();
        let limit = i64::try_from(batches_max).unwrap_or(i64::MAX);
        // Always a bound: one that might be missing would be no condition for the index.
        let before = before.unwrap_or(i64::MAX);
        let rows = sqlx::query_file_as!(BatchRow, "queries/list.sql", tenant.0, before, &states, limit)
            .fetch_all(&self.pool)
            .await?;
        rows.into_iter().map(BatchRow::with_progress).collect()
    }

    /// Closes an open batch at exactly `puzzle_count` puzzles. Returns whether it did; `false`: it is not open, or not at that
    /// count, and the caller reads which.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn seal(&self, key: BatchKey, puzzle_count: u64) -> Result<bool, Error> {
        let done = sqlx::query!(
            "update batch set state = 2, sealed_at = now(), expires_at = now() + keep
             where id = $1 and state = 1 and puzzle_count = $2 and deleted_at is null",
            key.id,
            signed(puzzle_count)
        )
        .execute(&self.pool)
        .await?;
        Ok(done.rows_affected() == 1)
    }
}
