//! `delete`: remove a batch with its results.

use anyhow::Context as _;

use crate::{
    args::Delete,
    connection::{at, connect, resource_name},
    exit::Exit,
    output,
};

pub(crate) async fn run(args: Delete) -> anyhow::Result<Exit> {
    let client = connect(&args.batch.server).await?;
    let name = resource_name(&args.batch.name);
    client.delete_batch(&name, args.force).await.map_err(|error| match error.reason().as_deref() {
        Some("BATCH_NOT_ENDED") => anyhow::anyhow!(
            "{name} has not ended: let it end, `sudoku-batch cancel` it first, or say --force to stop and remove it"
        ),
        _ => error.into(),
    })
    .with_context(|| at(&args.batch.server))?;
    output::complain(&format!("{name} is deleted"));
    Ok(Exit::Done)
}
