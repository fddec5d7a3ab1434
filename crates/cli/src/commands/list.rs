//! `list`: a tenant's batches, newest first.

use std::io::{self, Write};

use anyhow::Context as _;
use client::v1;

use crate::{
    args::{BatchFormat, List, State},
    commands::get::{expires, show, word},
    connection::{at, connect},
    exit::Exit,
    output, proto_json,
};

pub(crate) async fn run(args: List) -> anyhow::Result<Exit> {
    let client = connect(&args.server).await?;
    let states: Vec<v1::batch::State> = args.state.iter().copied().map(state).collect();
    let (batches, next) =
        client.list_batches(&states, args.limit as usize).await.with_context(|| at(&args.server))?;
    let is_empty = batches.is_empty();
    let mut out = output::results();
    match args.output {
        BatchFormat::Json => {
            let message =
                v1::ListBatchesResponse { batches, next_page_token: next.clone().unwrap_or_default() };
            writeln!(out, "{}", proto_json::line("ListBatchesResponse", &message)?)?;
        }
        BatchFormat::Text => table(&mut out, &batches)?,
    }
    out.flush()?;
    if is_empty {
        output::complain("there is no such batch");
    }
    if next.is_some() {
        output::complain(&format!("there are more than {}; see them with --limit", args.limit));
    }
    Ok(Exit::Done)
}

fn state(state: State) -> v1::batch::State {
    match state {
        State::Open => v1::batch::State::Open,
        State::Sealed => v1::batch::State::Sealed,
        State::Succeeded => v1::batch::State::Succeeded,
        State::Cancelling => v1::batch::State::Cancelling,
        State::Cancelled => v1::batch::State::Cancelled,
    }
}

fn table(out: &mut impl Write, batches: &[v1::Batch]) -> io::Result<()> {
    for batch in batches {
        let done = batch.progress.unwrap_or_default().done_count;
        let puzzles = format!("{}/{}", show(done), show(batch.puzzle_count));
        let expires = expires(batch).unwrap_or_default();
        let state = word(batch.state());
        let row =
            format!("{:<44} {state:<10} {puzzles:>23}  {expires:<20}  {}", batch.name, batch.display_name);
        writeln!(out, "{}", row.trim_end())?;
    }
    Ok(())
}
