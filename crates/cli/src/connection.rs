//! Reaching a server, for every command that talks to one.

use std::{sync::Once, time::Duration};

use client::Retry;

use crate::{args::Server, output};

/// How long a command waits for a server that has said that it stops, or that its database is away.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects for a command.
pub(crate) async fn connect(server: &Server) -> anyhow::Result<client::Client> {
    let client = client::Client::connect(&server.server).await.map_err(|error| match error {
        client::Error::Unreachable { .. } => {
            anyhow::anyhow!("{error}; start one with `sudoku-batch up`, or name another with --server")
        }
        other => other.into(),
    })?;
    // Once each: it may take hours, and each wait looks like the one before.
    let (full, away) = (Once::new(), Once::new());
    let client = client.telling_waits(move |why| {
        if why.room_after().is_some() {
            full.call_once(|| {
                output::complain(&format!("waiting: {why}; what is left is sent when there is room"));
            });
        } else {
            away.call_once(|| output::complain(&format!("{why}; trying again")));
        }
    });
    // A connection that just breaks is told, with the command that goes on, unless there is another server to go on at.
    let client = client.with_retry(Retry::patient(PATIENCE).unless_broken());
    Ok(match &server.tenant {
        Some(tenant) => client.with_tenant(tenant)?,
        None => client,
    })
}

/// Where a call went, for its error.
pub(crate) fn at(server: &Server) -> String {
    format!("the server at {}", server.server)
}

/// The resource name of what a user may also give as a bare id.
pub(crate) fn resource_name(batch: &str) -> String {
    if batch.starts_with("batches/") { batch.to_owned() } else { format!("batches/{batch}") }
}
