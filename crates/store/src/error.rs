//! What can go wrong in the store, by what the caller does about it.

use sqlx::migrate::MigrateError;

use crate::connect::found_read_only;

/// SQLSTATE of a write on a node that is read-only: a fail-over has made another one the primary.
const READ_ONLY: &str = "25006";

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such batch for this tenant, or it is deleted.
    #[error("there is no such batch")]
    BatchNotFound,
    /// The lease is no longer held: throw the work away.
    #[error("the lease was lost")]
    LeaseLost,
    /// Others change the same thing faster than it can be looked at: try again.
    #[error("others change the same batch at the same time")]
    Contended,
    /// The database URL cannot be used; the text says why and holds no password.
    #[error("{0}")]
    BadUrl(String),
    /// The database cannot be reached, refuses, or went away: try again later.
    #[error("the database {database} is not available: {reason}")]
    Unavailable {
        /// Which one, without its password.
        database: String,
        /// Why, in the database's or the system's words.
        reason: String,
    },
    /// The database is older than this program can use.
    #[error("the database {database} is PostgreSQL {found}; version {needed} or newer is needed")]
    TooOld {
        /// Which one, without its password.
        database: String,
        /// Its major version.
        found: u32,
        /// The oldest that will do.
        needed: u32,
    },
    /// The schema could not be brought up to date.
    #[error("the database schema could not be brought up to date: {0}")]
    Migrate(#[from] MigrateError),
    /// A value in the database has no meaning to this program: damage, or a newer version's work.
    #[error("unknown {what} {value} in the database: was it written by a newer version?")]
    Unknown {
        /// What kind of value.
        what: &'static str,
        /// The value.
        value: i64,
    },
    /// Anything else from the database.
    #[error("database: {0}")]
    Database(sqlx::Error),
}

impl Error {
    /// Whether trying again later can help: the connection broke, the pool ran dry, or the node is read-only after a
    /// fail-over (SQLSTATE 25006).
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::Database(error) => is_transient(error),
            Self::Migrate(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => {
                is_transient(error)
            }
            _ => false,
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref() == Some(READ_ONLY)
        {
            found_read_only();
        }
        Self::Database(error)
    }
}

fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        // Classes: 08 connection, 53 out of resources, 40 serialisation and deadlock, 57P shutting or starting up (but not 57014, a
        // statement over its time: it would be over it again); 25006 read-only.
        sqlx::Error::Database(database) => database.code().is_some_and(|code| {
            code == READ_ONLY || ["08", "53", "40", "57P"].iter().any(|class| code.starts_with(class))
        }),
        _ => false,
    }
}
