//! A client that may die at any moment: it keeps the batch and its place in a file, and started again it goes on there.
//!
//! ```sh
//! sudoku-batch generate -n 100000 > puzzles.txt
//! cargo run -p client --example keep_place -- http://127.0.0.1:50051 puzzles.txt place.txt >> results.txt
//! ```
//!
//! End it with Ctrl-C or `kill -9` and start it again, as often as you like: `results.txt` has every index, and those of one message at the most twice (it was killed after they were
//! written and before the file said so).
#![allow(clippy::print_stdout, reason = "an example")]

use std::{
    error::Error,
    fs,
    io::{ErrorKind, Write as _},
};

use client::{Client, NewBatch, Position, Start};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, servers, puzzles, place] = &args[..] else {
        return Err("usage: keep_place SERVERS PUZZLES PLACE".into());
    };
    let client = Client::connect(servers).await?;
    let (name, token) = match fs::read_to_string(place) {
        Ok(text) => {
            let (name, token) = text.split_once('\n').unwrap_or((&text, ""));
            (name.to_owned(), token.to_owned())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let name = client.create_batch(NewBatch::default()).await?.name;
            keep(place, &name, "")?;
            (name, String::new())
        }
        Err(error) => return Err(error.into()),
    };

    // What was sent before is compared and not stored twice, so all of it is simply sent.
    let lines: Vec<String> = fs::read_to_string(puzzles)?.lines().map(str::to_owned).collect();
    let count = client.append(&name, Some(0), lines).await?;
    client.seal(&name, Some(count)).await?;

    let mut start = Start::as_finished();
    if !token.is_empty() {
        start = start.at(Position::Token(token));
    }
    let mut results = client.results(&name, start).await?;
    while let Some(run) = results.next().await? {
        let mut out = std::io::stdout().lock();
        for result in run {
            writeln!(out, "{} {:?}", result.index, result.outcome)?;
        }
        // The results first, then the place: killed in between, it writes them again, and never loses them.
        out.flush()?;
        keep(place, &name, results.token().unwrap_or_default())?;
    }
    Ok(())
}

/// A reader finds the old place or the new one, and nothing in between.
fn keep(place: &str, name: &str, token: &str) -> std::io::Result<()> {
    let fresh = format!("{place}.new");
    fs::write(&fresh, format!("{name}\n{token}"))?;
    fs::rename(fresh, place)
}
