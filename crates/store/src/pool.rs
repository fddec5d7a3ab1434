//! Running statements: on connections of this process alone, or through a pooler that lends a server for one transaction at a time.
//!
//! Through a pooler each statement is a transaction by name: begin, with the settings that a connection of its own would have been given when it was made; the
//! statement; commit. Nothing is left on the server for whoever it is lent to next, and nothing is expected there. It costs three more round trips, and the statement is planned
//! each time.
//!
//! A cache of no statements would not do instead. sqlx parses a statement under a name all the same, which the pooler's next server does not know or knows as another
//! statement's; and it parts parse and bind by a sync, at which the pooler may lend the server to somebody else, whose unnamed statement would then be bound. Within a
//! transaction it may not.

use std::sync::Arc;

use futures_util::{
    FutureExt as _, StreamExt as _, TryFutureExt as _, TryStreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use sqlx::{
    AssertSqlSafe, Database, Describe, Either, Error, Execute, Executor, PgPool, Postgres, SqlSafeStr as _,
    SqlStr,
    error::BoxDynError,
    pool::PoolConnection,
    postgres::{PgArguments, PgQueryResult, PgRow, PgStatement, PgTypeInfo},
};

/// A row, or how many were touched.
type Step = Either<PgQueryResult, PgRow>;

/// Connections, and how a statement is run on them; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    connections: PgPool,
    /// What begins a transaction through a pooler; none: there is none in between.
    begin: Option<Arc<str>>,
}

impl Pool {
    /// Connections of this process alone.
    pub(crate) fn direct(connections: PgPool) -> Self {
        Self { connections, begin: None }
    }

    /// Connections to a pooler. Each statement is run with these settings.
    pub(crate) fn lent(connections: PgPool, settings: &[(&str, &str)]) -> Self {
        let set = settings.iter().map(|(name, value)| format!("; set local {name} = '{value}'"));
        let begin = std::iter::once("begin".to_owned()).chain(set).collect::<String>();
        Self { connections, begin: Some(begin.into()) }
    }

    /// Whether a server stays with a connection: what is set, listened to or locked on one is so for the next statement.
    pub(crate) fn has_sessions(&self) -> bool {
        self.begin.is_none()
    }

    /// The connections themselves, for those who know what is at their other end.
    pub(crate) fn connections(&self) -> &PgPool {
        &self.connections
    }

    /// What begins a transaction of more than one statement.
    pub(crate) fn begin(&self) -> SqlStr {
        self.begin
            .as_ref()
            .map_or("begin".into_sql_str(), |begin| AssertSqlSafe(Arc::clone(begin)).into_sql_str())
    }
}

impl<'p> Executor<'p> for &Pool {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Step, Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        if self.has_sessions() {
            return self.connections.fetch_many(query);
        }
        stream::once(whole(self.clone(), query))
            .map_ok(|steps| stream::iter(steps.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        if self.has_sessions() {
            return self.connections.fetch_optional(query);
        }
        whole(self.clone(), query).map_ok(|steps| steps.into_iter().find_map(Either::right)).boxed()
    }

    // What is prepared by hand belongs to a connection: the house does not.
    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'p: 'e,
    {
        self.connections.prepare_with(sql, parameters)
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'p: 'e,
    {
        self.connections.describe(sql)
    }
}

/// Runs a statement in a transaction of its own. Nothing of it is given before it is committed.
async fn whole<'q, E: Execute<'q, Postgres> + 'q>(pool: Pool, query: E) -> Result<Vec<Step>, Error> {
    let mut lent = Lent::begin(&pool).await?;
    match lent.connection.fetch_many(Unnamed(query)).try_collect().await {
        Ok(steps) => {
            lent.end("commit").await?;
            Ok(steps)
        }
        Err(error) => {
            // It is the first error that says what is wrong.
            lent.end("rollback").await.ok();
            Err(error)
        }
    }
}

/// A connection in a transaction. If it is dropped there, by a caller who has lost interest or by an error, it is closed, and the pooler and its server drop what was begun.
struct Lent {
    connection: PoolConnection<Postgres>,
    has_ended: bool,
}

impl Lent {
    async fn begin(pool: &Pool) -> Result<Self, Error> {
        let mut lent = Self { connection: pool.connections.acquire().await?, has_ended: false };
        sqlx::raw_sql(pool.begin()).execute(&mut *lent.connection).await?;
        Ok(lent)
    }

    async fn end(mut self, how: &'static str) -> Result<(), Error> {
        sqlx::raw_sql(how).execute(&mut *self.connection).await?;
        self.has_ended = true;
        Ok(())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.has_ended {
            self.connection.close_on_drop();
        }
    }
}

/// A statement that is not prepared under a name: the next server that is lent would not know it, or know another one by it.
struct Unnamed<E>(E);

impl<'q, E: Execute<'q, Postgres>> Execute<'q, Postgres> for Unnamed<E> {
    fn sql(self) -> SqlStr {
        self.0.sql()
    }

    fn statement(&self) -> Option<&<Postgres as Database>::Statement> {
        self.0.statement()
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        self.0.take_arguments()
    }

    fn persistent(&self) -> bool {
        false
    }
}
