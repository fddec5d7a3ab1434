//! Reaching a server, for every command that talks to one.

use std::sync::Once;

use crate::{args::Server, output};

/// Connects for a command.
pub(crate) async fn connect(server: &Server) -> anyhow::Result<client::Client> {
    let client = client::Client::connect(&server.server).await.map_err(|error| match error {
        client::Error::Unreachable { .. } => {
            anyhow::anyhow!("{error}; start one with `sudoku-batch up`, or name another with --server")
        }
        other => other.into(),
    })?;
    // Once: it may take hours, and each wait looks like the one before.
    let told = Once::new();
    let client = client.telling_waits(move |why| {
        told.call_once(|| {
            output::complain(&format!("waiting: {why}; what is left is sent when there is room"));
        });
    });
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
