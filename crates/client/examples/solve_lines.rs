//! Puzzles from standard input, one a line, answered to standard output as they come: however many there are, nothing is collected.
//!
//! ```sh
//! sudoku-batch generate -n 1000 | cargo run -p client --example solve_lines -- http://127.0.0.1:50051
//! ```
//!
//! Several addresses with commas in between are servers of one service: end one of them meanwhile, and nothing is to be seen of it here.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use std::{error::Error, io::BufRead as _};

use client::{Client, Count, Submit};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let servers = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:50051".to_owned());
    let client = Client::connect(&servers).await?.telling_waits(|why| eprintln!("{why}; trying again"));

    // Reading blocks, so it has a thread of its own; the channel hands over what it has read.
    let (sender, lines) = mpsc::channel(1_000);
    let reading = std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let line = line?;
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
        Ok::<_, std::io::Error>(())
    });

    let options = Submit { ordered: true, ..Submit::default() };
    let mut submission = client.submit_stream(ReceiverStream::new(lines), options).await?;
    while let Some(run) = submission.next().await? {
        for result in run {
            let placements = match result.placements {
                Count::Exact(count) => count.to_string(),
                Count::OverLimit => "over the limit".to_owned(),
                Count::None => "none".to_owned(),
            };
            let solution = result.solution.as_deref().unwrap_or("-");
            println!("{} {:?} {solution} {placements}", result.index, result.outcome);
        }
    }
    reading.join().map_err(|_| "reading has panicked")??;
    Ok(())
}
