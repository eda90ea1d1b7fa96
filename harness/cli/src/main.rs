//! The `evictlab` command: one file per subcommand in `commands/`, and no logic here.

mod commands;
mod failure;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use evictlab_runner::report::exit_code;

use commands::{bench, cluster, doctor, gc, lint, list, run, schema};
use failure::Failure;

/// Makes the kubelet evict a pod on demand, on a cluster made for the purpose, and judges what it said about it.
#[derive(Parser)]
#[command(name = "evictlab", version, about, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<run::Args>),
    List(list::Args),
    Lint(lint::Args),
    Schema(schema::Args),
    Doctor(doctor::Args),
    Cluster(cluster::Args),
    Bench(bench::Args),
    Gc(gc::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => wait_for(run::run(&args)),
        Command::List(args) => list::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Doctor(args) => wait_for(doctor::run(&args)),
        Command::Bench(args) => wait_for(bench::run(&args)),
        Command::Cluster(args) => wait_for(cluster::run(&args)),
        Command::Gc(args) => wait_for(gc::run(&args)),
    };
    done.unwrap_or_else(|failure| failure.tell())
}

/// Only what waits for others pays for a runtime.
fn wait_for(work: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| {
        Failure::new(format!("no runtime can be started: {error}"), exit_code::INFRASTRUCTURE)
    })?;
    let done = runtime.block_on(work);
    // What still reads or waits has nobody to tell.
    runtime.shutdown_background();
    done
}
