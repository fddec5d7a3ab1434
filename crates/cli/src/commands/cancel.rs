//! `cancel`: stop what has not run yet of a batch.

use std::io::Write as _;

use anyhow::Context as _;
use client::v1::{self, batch::State};

use crate::{
    args::{BatchFormat, Cancel},
    commands::get::{show, word},
    connection::{at, connect, resource_name},
    exit::Exit,
    output, proto_json,
};

pub(crate) async fn run(args: Cancel) -> anyhow::Result<Exit> {
    let client = connect(&args.batch.server).await?;
    let answer = client
        .cancel_batch(&resource_name(&args.batch.name))
        .await
        .with_context(|| at(&args.batch.server))?;
    let mut out = output::results();
    match args.output {
        BatchFormat::Json => writeln!(out, "{}", proto_json::line("CancelBatchResponse", &answer)?)?,
        BatchFormat::Text => writeln!(out, "{}", text(&answer))?,
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn text(answer: &v1::CancelBatchResponse) -> String {
    let batch = answer.batch.clone().unwrap_or_default();
    let name = &batch.name;
    if batch.state() == State::Succeeded {
        return format!("{name} had succeeded before: nothing was left to cancel");
    }
    format!(
        "{name} is {}: {} done, {} being stopped, {} dropped",
        word(batch.state()),
        show(answer.done_count),
        show(answer.stopping_count),
        show(answer.dropped_count)
    )
}
