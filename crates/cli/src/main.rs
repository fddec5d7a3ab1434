//! The one binary, `sudoku-batch`: arguments in, exit code out; the work is done by the crates beside this one.
#![forbid(unsafe_code)]

mod again;
mod args;
mod children;
mod commands;
mod connection;
mod exit;
mod input;
mod interrupt;
mod lines;
mod logging;
mod machine;
mod output;
mod printer;
mod progress;
mod proto_json;
mod record;
mod signals;
mod stack;
mod summary;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{
    args::{Args, Bench, Command},
    commands::{
        bench, cancel, delete, demo, generate, get, list, migrate, results, serve, solve, submit, up, watch,
        work,
    },
    exit::Exit,
};

/// jemalloc keeps freed memory for a while. Messages are made and dropped by the thousand, a third of a megabyte each, and the C library's allocator gives each back to
/// the system, which clears its pages anew. With easy puzzles (`bench service puzzles.txt --puzzles 4000000 --placement-limit off`, Zen 5, commit 98ce716 without it and with it, three
/// alternating runs): client 0.170 and 0.149 µs a puzzle, server 0.182 and 0.166.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    logging::start(&args.log);
    let exit = run(args.command).unwrap_or_else(|error| exit::report(&error));
    ExitCode::from(exit.code())
}

fn run(command: Command) -> anyhow::Result<Exit> {
    match command {
        // Solving in this process wants all cores for itself: no runtime.
        Command::Solve(args) => solve::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Bench(Bench::Solver(args)) => bench::solver::run(&args),
        Command::Bench(Bench::Service(args)) => on_runtime(bench::service::run(args)),
        Command::Bench(Bench::Latency(args)) => on_runtime(bench::latency::run(args)),
        Command::Demo(args) => on_runtime(demo::run(args)),
        Command::Up(args) => on_runtime(up::run(args)),
        Command::Serve(args) => on_runtime(serve::run(args)),
        Command::Work(args) => on_runtime(work::run(args)),
        Command::Migrate(args) => on_runtime(migrate::run(args)),
        Command::Submit(args) => on_runtime(submit::run(args)),
        Command::Results(args) => on_runtime(results::run(args)),
        Command::Watch(args) => on_runtime(watch::run(args)),
        Command::List(args) => on_runtime(list::run(args)),
        Command::Get(args) => on_runtime(get::run(args)),
        Command::Cancel(args) => on_runtime(cancel::run(args)),
        Command::Delete(args) => on_runtime(delete::run(args)),
    }
}

fn on_runtime(work: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let exit = runtime.block_on(work);
    // A thread that still reads standard input must not keep the process.
    runtime.shutdown_background();
    exit
}
