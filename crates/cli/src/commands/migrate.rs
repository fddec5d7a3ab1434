//! `migrate`: bring a database's schema up to date.

use store::{Config, Durability, Store};

use crate::{args::Migrate, exit::Exit, output};

pub(crate) async fn run(args: Migrate) -> anyhow::Result<Exit> {
    let store = Store::connect(&Config {
        url: args.database.database_url,
        connections_max: 1,
        durability: Durability::Synchronous,
        application_name: "sudoku-batch migrate".to_owned(),
        is_pooled: args.database.pgbouncer,
    })
    .await?;
    store.migrate().await?;
    output::complain(&format!("the schema of {} is up to date", store.database()));
    store.close().await;
    Ok(Exit::Done)
}
