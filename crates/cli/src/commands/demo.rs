//! `demo`: the main job on this machine, from nothing to a table of outcomes, and nothing left behind.

use std::io::{self, Write};

use client::{Client, NewBatch, PuzzleResult, Start};
use local_postgres::LocalPostgres;
use solver::{PlacementLimit, Placements};

use crate::{
    args::{Demo, OutputFormat},
    exit::Exit,
    lines::{explain, grouped},
    output,
    progress::Progress,
    record::Record,
    signals::stop,
    stack::{self, Roles, Stack},
    summary::Summary,
};

const WORKERS: u32 = 2;
/// Puzzles made by `generate -n 1000 --seed 81`.
const GENERATED: &str = include_str!("../../assets/demo.txt");

/// Puzzles that each show one thing.
const TELLING: [(&str, &str); 7] = [
    ("the seed example", "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"),
    ("the empty grid", "................................................................................."),
    ("two solutions", "534678912672195348198342567859761423426853791713924856961.3728.287.1963.345286179"),
    (
        "no digit for r1c1",
        "...45678.1........2........3........9............................................",
    ),
    (
        "two ones in a row",
        "11...............................................................................",
    ),
    ("made against it", "..............3.85..1.2.......5.7.....4...1...9.......5......73..2.1........4...9"),
    ("over the limit", ".....5.8....6.1.43..........1.5........1.6...3.......553.....61........4........."),
];
/// Which of them are drawn.
const DRAWN: [usize; 2] = [0, 5];

pub(crate) async fn run(_: Demo) -> anyhow::Result<Exit> {
    let stopped = stop(false)?;
    let mut stopped = std::pin::pin!(stopped);
    output::complain(
        "demo: a private PostgreSQL in a temporary folder, one server, two workers; all of it goes at the end",
    );
    let started = stack::postgres(|| LocalPostgres::start_temporary(true), &mut stopped).await?;
    let Some(postgres) = started else { return Ok(interrupted()) };
    let roles = Roles {
        listen: "127.0.0.1:0".to_owned(),
        workers: WORKERS,
        threads: Roles::threads_each(WORKERS),
        server_options: Vec::new(),
        log: "warn".to_owned(),
    };
    let mut stack = tokio::select! {
        started = Stack::start(postgres, roles) => started?,
        _ = &mut stopped => return Ok(interrupted()),
    };
    output::complain(&format!("demo: serving at {}", stack.url()));
    let url = stack.url().to_owned();
    let shown = tokio::select! {
        shown = submit(&url) => shown.map(|()| Exit::Done),
        error = stack.watch() => Err(error),
        _ = &mut stopped => Ok(interrupted()),
    };
    stack.stop().await?;
    let shown = shown?;
    output::complain(
        "demo: everything is stopped; go on with `sudoku-batch up` and `sudoku-batch submit FILE`",
    );
    Ok(shown)
}

fn interrupted() -> Exit {
    output::complain("demo: interrupted; everything is stopped");
    Exit::NotFinished
}

async fn submit(url: &str) -> anyhow::Result<()> {
    let client = Client::connect(url).await?;
    let telling = TELLING.iter().map(|(_, puzzle)| *puzzle);
    let puzzles: Vec<String> = telling.chain(GENERATED.lines()).map(str::to_owned).collect();
    let total = puzzles.len() as u64;
    let batch =
        client.create_batch(NewBatch { display_name: "demo".to_owned(), ..NewBatch::default() }).await?;
    let progress = Progress::start(false);
    progress.set_total(total);
    client.append(&batch.name, Some(0), puzzles).await?;
    client.seal(&batch.name, Some(total)).await?;

    let mut results = client.results(&batch.name, Start::as_finished()).await?;
    let mut summary = Summary::default();
    let mut telling = Vec::new();
    while let Some(run) = results.next().await? {
        for result in run {
            take(result, &mut summary, &mut telling)?;
        }
        progress.set_done(summary.puzzles());
    }
    let done = format!("{}/{} puzzles", grouped(summary.puzzles()), grouped(total));
    progress.finish(&done, &format!(": {}", summary.outcomes()));
    telling.sort_by_key(|record: &Record| record.index);
    Ok(show(&telling, summary)?)
}

fn take(result: PuzzleResult, summary: &mut Summary, telling: &mut Vec<Record>) -> anyhow::Result<()> {
    let record = Record::of_result(result)?;
    summary.add(&record);
    if record.index < TELLING.len() as u64 {
        telling.push(record);
    }
    Ok(())
}

fn show(telling: &[Record], summary: Summary) -> io::Result<()> {
    let mut out = output::results();
    writeln!(out, "\n{:<20} {:<12} {:>17}  note", "puzzle", "outcome", "placements")?;
    for ((name, _), record) in TELLING.iter().zip(telling) {
        let placements = match record.placements {
            Some(Placements::Exact(count)) => grouped(count),
            Some(Placements::OverLimit) => format!("over {}", grouped(PlacementLimit::DEFAULT.0)),
            Some(Placements::NotCounted) | None => "-".to_owned(),
        };
        let note = record.fault.as_ref().map(explain).unwrap_or_default();
        let row = format!("{name:<20} {:<12} {placements:>17}  {note}", record.outcome.name());
        writeln!(out, "{}", row.trim_end())?;
    }
    writeln!(out, "\nall of them, {} generated ones included:", grouped(GENERATED.lines().count() as u64))?;
    summary.write(&mut out, OutputFormat::Text)?;
    for place in DRAWN {
        if let (Some((name, puzzle)), Some(solution)) =
            (TELLING.get(place), telling.get(place).and_then(|record| record.solution.as_deref()))
        {
            writeln!(out, "\n{name}:")?;
            draw(&mut out, puzzle, solution)?;
        }
    }
    writeln!(out)?;
    out.flush()
}

/// A puzzle beside its solution.
fn draw(out: &mut impl Write, puzzle: &str, solution: &str) -> io::Result<()> {
    for row in 0..9 {
        if row % 3 == 0 && row > 0 {
            let rule = "------+-------+------";
            writeln!(out, "  {rule}        {rule}")?;
        }
        let cells = row * 9..row * 9 + 9;
        let arrow = if row == 4 { "  -->   " } else { "        " };
        let sides = [puzzle, solution].map(|grid| spaced(grid.get(cells.clone()).unwrap_or_default()));
        writeln!(out, "  {}{arrow}{}", sides[0], sides[1])?;
    }
    Ok(())
}

fn spaced(row: &str) -> String {
    let mut text = String::new();
    for (column, digit) in row.chars().enumerate() {
        text.push_str(match column {
            0 => "",
            3 | 6 => " | ",
            _ => " ",
        });
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use solver::{Generator, Kind};

    use super::*;

    #[test]
    fn the_bundled_puzzles_are_those_that_the_documented_command_makes() {
        let made = Generator::new(81, Kind::Default).expect("a kind without limits");
        let lines: Vec<&str> = GENERATED.lines().collect();
        assert_eq!(lines.len(), 1_000);
        for (index, line) in (0..).zip(lines) {
            assert_eq!(made.puzzle(index).expect("no limits").grid().to_string(), line);
        }
    }
}
