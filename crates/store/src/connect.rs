//! Connecting to PostgreSQL: the pool, its limits, and errors that say what is wrong.

use std::{
    str::FromStr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sqlx::{
    Connection as _, PgConnection, Row as _,
    pool::PoolConnectionMetadata,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{Error, Keep, pool::Pool};

/// The oldest major version of PostgreSQL that will do.
const VERSION_MIN: u32 = 14;
/// How long the first connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a caller waits for a connection of the pool.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that nobody used for longer is asked whether it lives before it is used.
const REST_MAX: Duration = Duration::from_secs(1);
/// No statement of the house takes longer; one that does is stuck.
const STATEMENT_TIMEOUT: &str = "60s";
/// No transaction of the house stays open between statements. Written as the database shows it.
const IDLE_IN_TRANSACTION_TIMEOUT: &str = "10s";
/// What helps whoever has a pooler in between.
const POOLER_ADVICE: &str = "if that is PgBouncer or another pooler, --pgbouncer is the way through it";

/// When a commit is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// After it is on disk.
    Synchronous,
    /// At once; a crash of the database may lose the last moments. For workers: their jobs are then still in place.
    Asynchronous,
}

/// How to connect.
#[derive(Clone)]
pub struct Config {
    /// `postgres://…`; may hold a password, so it is never printed.
    pub url: String,
    /// Connections at the most.
    pub connections_max: u32,
    /// When commits are reported.
    pub durability: Durability,
    /// What `pg_stat_activity` shows.
    pub application_name: String,
    /// The URL leads to a pooler that lends a server for one transaction at a time, such as PgBouncer in transaction mode: nothing is left to a session.
    pub is_pooled: bool,
}

/// The way to the database; cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) pool: Pool,
    pub(crate) database: String,
    /// For how long the batches that are created by it stay.
    pub(crate) keep: Keep,
}

impl Store {
    /// Connects and checks the server's version.
    ///
    /// # Errors
    /// [`Error::BadUrl`], [`Error::Unavailable`] with the real cause, [`Error::TooOld`].
    pub async fn connect(config: &Config) -> Result<Self, Error> {
        let options = options(config)?;
        let database = describe(&options);
        // One plain connection first: the pool would hide the cause behind its own time-out.
        let seen = tokio::time::timeout(CONNECT_TIMEOUT, first_look(&options))
            .await
            .map_err(|_| unavailable(&database, &format!("no answer within {CONNECT_TIMEOUT:?}")))?
            .map_err(|error| unavailable(&database, &reason(&error)))?;
        if seen.version < VERSION_MIN {
            return Err(Error::TooOld { database, found: seen.version, needed: VERSION_MIN });
        }
        if !config.is_pooled && seen.idle_in_transaction_timeout != IDLE_IN_TRANSACTION_TIMEOUT {
            let reason =
                format!("something in between keeps the session's settings from it; {POOLER_ADVICE}");
            return Err(unavailable(&database, &reason));
        }
        let connections = PgPoolOptions::new()
            .max_connections(config.connections_max)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            // Asked only after a rest: a question before every statement would double the round trips.
            .test_before_acquire(false)
            .before_acquire(|connection, known| Box::pin(is_fit(connection, known)))
            .connect_lazy_with(options);
        let pool = if config.is_pooled {
            Pool::lent(connections, &settings(config.durability))
        } else {
            Pool::direct(connections)
        };
        Ok(Self { pool, database, keep: Keep::default() })
    }

    /// The same with another time for which the batches that are created by it stay.
    #[must_use]
    pub fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// Which database this is, without its password: for messages and logs.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Closes all connections and waits for those in use.
    pub async fn close(&self) {
        self.pool.connections().close().await;
    }
}

/// Whether a pooled connection may be used: not one that was made before the node it leads to was found read-only, nor one that died while nobody used it.
async fn is_fit(connection: &mut PgConnection, known: PoolConnectionMetadata) -> Result<bool, sqlx::Error> {
    if read_only_for().is_some_and(|passed| known.age > passed) {
        return Ok(false);
    }
    if known.idle_for > REST_MAX {
        connection.ping().await?;
    }
    Ok(true)
}

/// When a node was last found read-only: after a fail-over the connections of a pool still lead to it, and only new ones find the node that took over.
static READ_ONLY_AT: Mutex<Option<Instant>> = Mutex::new(None);

/// A statement has failed since the node is read-only.
pub(crate) fn found_read_only() {
    *READ_ONLY_AT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// Time since then.
fn read_only_for() -> Option<Duration> {
    READ_ONLY_AT.lock().unwrap_or_else(PoisonError::into_inner).map(|at| at.elapsed())
}

fn options(config: &Config) -> Result<PgConnectOptions, Error> {
    let options = parse(&config.url)?.application_name(&config.application_name);
    Ok(if config.is_pooled {
        // A pooler refuses at the start what it cannot set on each server that it lends.
        options.extra_float_digits(None)
    } else {
        options.options(settings(config.durability))
    })
}

/// What the statements of the house are written for.
fn settings(durability: Durability) -> [(&'static str, &'static str); 6] {
    let synchronous_commit = match durability {
        Durability::Synchronous => "on",
        Durability::Asynchronous => "off",
    };
    [
        ("synchronous_commit", synchronous_commit),
        ("statement_timeout", STATEMENT_TIMEOUT),
        ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_TIMEOUT),
        // The hot statements are written for the plan that serves all parameters (tests read it); planning them anew costs more than running them.
        ("plan_cache_mode", "force_generic_plan"),
        ("TimeZone", "UTC"),
        // "already exists, skipping" is no news.
        ("client_min_messages", "warning"),
    ]
}

fn parse(url: &str) -> Result<PgConnectOptions, Error> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(Error::BadUrl("the database URL must begin with postgres://".to_owned()));
    }
    PgConnectOptions::from_str(url)
        .map_err(|error| Error::BadUrl(format!("the database URL cannot be read: {}", reason(&error))))
}

/// What a connection finds at its other end.
struct Seen {
    version: u32,
    idle_in_transaction_timeout: String,
}

async fn first_look(options: &PgConnectOptions) -> Result<Seen, sqlx::Error> {
    let mut connection = PgConnection::connect_with(options).await?;
    // In one message: a pooler may be in between, whether that was said or not.
    let look = "select current_setting('server_version_num'), current_setting('idle_in_transaction_session_timeout')";
    let row = sqlx::raw_sql(look).fetch_one(&mut connection).await?;
    connection.close().await?;
    let version: String = row.try_get(0)?;
    Ok(Seen {
        version: version.parse::<u32>().unwrap_or(0) / 10_000,
        idle_in_transaction_timeout: row.try_get(1)?,
    })
}

/// The database that options name, without its password: for messages and logs.
fn describe(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or("");
    let user = options.get_username();
    match options.get_socket() {
        Some(socket) => format!("{database:?} at {} (user {user})", socket.display()),
        None => format!("{database:?} at {}:{} (user {user})", options.get_host(), options.get_port()),
    }
}

fn unavailable(database: &str, reason: &str) -> Error {
    Error::Unavailable { database: database.to_owned(), reason: reason.to_owned() }
}

/// The cause in one line, without the wrapping that sqlx puts around it.
fn reason(error: &sqlx::Error) -> String {
    let text = match error {
        sqlx::Error::Database(database) => database.message().to_owned(),
        sqlx::Error::Io(io) => io.to_string(),
        sqlx::Error::Configuration(inner) => inner.to_string(),
        other => other.to_string(),
    };
    let line = text.lines().next().unwrap_or_default();
    if line.contains("unsupported startup parameter") {
        format!("{line}; {POOLER_ADVICE}")
    } else {
        line.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_described_url_shows_no_password() {
        let shown = describe(&parse("postgres://alice:s3cret@db.example:6000/sudoku").expect("a URL"));
        assert_eq!(shown, "\"sudoku\" at db.example:6000 (user alice)");
        let socket = describe(&parse("postgres://bob@localhost/x?host=%2Ftmp%2Fpg").expect("a URL"));
        assert_eq!(socket, "\"x\" at /tmp/pg (user bob)");
    }

    #[test]
    fn a_url_of_another_kind_is_refused_by_name() {
        assert!(
            matches!(parse("mysql://localhost/x"), Err(Error::BadUrl(text)) if text.contains("postgres://"))
        );
    }
}
