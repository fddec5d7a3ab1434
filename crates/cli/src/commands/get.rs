//! `get`: one batch and how far it is.

use std::io::{self, Write};

use anyhow::Context as _;
use client::v1::{self, batch::State};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};

use crate::{
    args::{BatchFormat, Get},
    connection::{connect, resource_name},
    exit::Exit,
    lines::grouped,
    output,
};

pub(crate) async fn run(args: Get) -> anyhow::Result<Exit> {
    let mut client = connect(&args.server).await?;
    let batch = client
        .get_batch(&resource_name(&args.batch))
        .await
        .with_context(|| format!("the server at {}", args.server.server))?;
    let mut out = output::results();
    match args.output {
        BatchFormat::Json => writeln!(out, "{}", json(&batch)?)?,
        BatchFormat::Text => text(&mut out, &batch)?,
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// The canonical JSON of the proto.
fn json(batch: &v1::Batch) -> anyhow::Result<String> {
    let pool =
        DescriptorPool::decode(proto::DESCRIPTOR_SET).context("the built-in descriptors are damaged")?;
    let descriptor =
        pool.get_message_by_name("sudoku.v1.Batch").context("the built-in descriptors lack Batch")?;
    let message = DynamicMessage::decode(descriptor, &*batch.encode_to_vec())?;
    Ok(serde_json::to_string(&message)?)
}

fn text(out: &mut impl Write, batch: &v1::Batch) -> io::Result<()> {
    let state = match batch.state() {
        State::Unspecified => "unknown",
        State::Open => "open: takes more puzzles",
        State::Sealed => "sealed: being solved",
        State::Succeeded => "succeeded: every puzzle has an outcome",
        State::Cancelling => "cancelling",
        State::Cancelled => "cancelled",
    };
    let progress = batch.progress.unwrap_or_default();
    writeln!(out, "{}", batch.name)?;
    writeln!(out, "{:<12} {state}", "state")?;
    if !batch.display_name.is_empty() {
        writeln!(out, "{:<12} {}", "name", batch.display_name)?;
    }
    writeln!(out, "{:<12} {} of {}", "done", show(progress.done_count), show(batch.puzzle_count))?;
    for (name, count) in [
        ("unique", progress.unique_count),
        ("multiple", progress.multiple_count),
        ("no_solution", progress.no_solution_count),
        ("invalid", progress.invalid_count),
        ("undecided", progress.undecided_count),
        ("failed", progress.failed_count),
        ("cancelled", progress.cancelled_count),
        ("over limit", progress.over_limit_count),
        ("placements", progress.placement_count),
    ] {
        if count != 0 {
            writeln!(out, "{name:<12} {}", show(count))?;
        }
    }
    Ok(())
}

fn show(count: i64) -> String {
    grouped(u64::try_from(count).unwrap_or(0))
}
