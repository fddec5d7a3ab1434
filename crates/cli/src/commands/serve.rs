//! `serve`: one gRPC server.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, bail};
use store::{Durability, Store};
use tokio::net::{TcpListener, lookup_host};

use crate::{
    args::Serve,
    exit::{Exit, UsageError},
    output,
    signals::{Stop, stop},
};

/// Connections of one server process: its calls are short, streams hold none while they wait.
const CONNECTIONS_MAX: u32 = 16;
/// Grace when the parent is gone: the database may be going with it.
const GRACE_WITHOUT_PARENT: Duration = Duration::from_secs(1);

/// Listens on `listen`, beyond loopback only if `remote` says that it may; otherwise `remote` says what to do.
pub(crate) async fn listen(listen: &str, remote: Result<(), &str>) -> anyhow::Result<TcpListener> {
    let addresses: Vec<SocketAddr> = lookup_host(listen)
        .await
        .map_err(|error| UsageError(format!("--listen {listen:?} is no HOST:PORT: {error}")))?
        .collect();
    if let Some(open) = addresses.iter().find(|address| !address.ip().is_loopback())
        && let Err(advice) = remote
    {
        bail!(UsageError(format!(
            "--listen {listen}: {} can be reached from other machines, and there is neither TLS nor authentication; {advice}",
            open.ip()
        )));
    }
    TcpListener::bind(&addresses[..]).await.with_context(|| {
        format!("cannot listen on {listen} (is another server running there? --listen takes another port)")
    })
}

pub(crate) async fn run(args: Serve) -> anyhow::Result<Exit> {
    let stopped = stop(args.exit_with_parent)?;
    let mut stopped = Box::pin(stopped);
    let (listener, store) = tokio::select! {
        started = start(&args) => started?,
        _ = &mut stopped => return Ok(Exit::Done),
    };
    let address = listener.local_addr()?;
    tracing::info!(
        %address,
        database = store.database(),
        placement_limit_max = args.placement_limit_max,
        service = ?args.service,
        grace = ?args.grace,
        "serving"
    );
    output::announce(&format!("ready http://{address}"))?;

    let (reason, told) = tokio::sync::oneshot::channel();
    let stopped = async move {
        let why = stopped.await;
        tracing::info!(?why, "stopping");
        // An error means that serving has ended already.
        reason.send(why).ok();
    };
    let config = server::Config {
        placement_limit_max: args.placement_limit_max,
        grace: args.grace,
        keepalive: args.service.keepalive(),
        quotas: args.service.quotas(),
    };
    let serving = server::serve(listener, store.clone(), config, stopped);
    tokio::select! {
        ended = serving => ended?,
        () = parent_gone(told) => tracing::warn!("the parent process is gone; calls are cut"),
    }
    Ok(Exit::Done)
}

/// Listens, connects and brings the schema up to date.
async fn start(args: &Serve) -> anyhow::Result<(TcpListener, Store)> {
    let remote = if args.allow_insecure_remote {
        Ok(())
    } else {
        Err("listen on 127.0.0.1, or say --allow-insecure-remote if something in front of it has both")
    };
    let listener = listen(&args.listen, remote).await?;
    let store = Store::connect(&store::Config {
        url: args.database.database_url.clone(),
        connections_max: CONNECTIONS_MAX,
        durability: Durability::Synchronous,
        application_name: "sudoku-batch serve".to_owned(),
        is_pooled: args.database.pgbouncer,
    })
    .await?;
    store.migrate().await?;
    Ok((listener, store.keeping(args.service.keep())))
}

/// Resolves a little after the parent has gone; never for other reasons to stop.
async fn parent_gone(told: tokio::sync::oneshot::Receiver<Stop>) {
    match told.await {
        Ok(Stop::Parent) => tokio::time::sleep(GRACE_WITHOUT_PARENT).await,
        _ => std::future::pending().await,
    }
}
