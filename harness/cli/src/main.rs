//! The `evictlab` command: one file per subcommand in `commands/`, and no logic here.

mod commands;
mod failure;
mod output;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use mimalloc::MiMalloc;
use tokio::runtime::{Builder, Runtime};

use commands::{
    bench, bisect, cluster, completions, doctor, explain, export, gc, image, lint, list, man, report, run,
    schema, stress, verify, watch,
};
use failure::{Failure, infrastructure};

/// A run on the embedded cluster makes and drops small values all the time: with the system's allocator that is a third of its time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

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
    Stress(Box<stress::Args>),
    Verify(Box<verify::Args>),
    Bisect(Box<bisect::Args>),
    List(list::Args),
    Lint(lint::Args),
    Schema(schema::Args),
    Explain(explain::Args),
    Export(export::Args),
    Watch(watch::Args),
    Report(report::Args),
    Doctor(doctor::Args),
    Cluster(cluster::Args),
    Bench(bench::Args),
    Image(image::Args),
    Gc(gc::Args),
    Completions(completions::Args),
    Man(man::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) if args.backend.has_model_time() => in_model_time(run::run(&args)),
        Command::Run(args) => wait_for(run::run(&args)),
        Command::Stress(args) if args.backend.has_model_time() => in_model_time(stress::run(&args)),
        Command::Stress(args) => wait_for(stress::run(&args)),
        Command::Verify(args) if args.backend.has_model_time() => in_model_time(verify::run(&args)),
        Command::Verify(args) => wait_for(verify::run(&args)),
        Command::Bisect(args) if args.backend.has_model_time() => in_model_time(bisect::run(&args)),
        Command::Bisect(args) => wait_for(bisect::run(&args)),
        Command::List(args) => list::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Export(args) => wait_for(export::run(&args)),
        Command::Watch(args) => wait_for(watch::run(&args)),
        Command::Report(args) => report::run(&args),
        Command::Doctor(args) => wait_for(doctor::run(&args)),
        Command::Bench(args) => wait_for(bench::run(&args)),
        Command::Cluster(args) => wait_for(cluster::run(&args)),
        Command::Image(args) => wait_for(image::run(&args)),
        Command::Gc(args) => wait_for(gc::run(&args)),
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
    };
    done.unwrap_or_else(|failure| failure.tell())
}

/// Only what waits for others pays for a runtime.
fn wait_for(work: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    on(Runtime::new(), work)
}

/// Waits for something whose time goes by as soon as there is nothing to do.
fn in_model_time(work: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    on(Builder::new_current_thread().enable_all().start_paused(true).build(), work)
}

fn on(
    runtime: io::Result<Runtime>,
    work: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    let runtime = runtime.map_err(|error| infrastructure(format!("no runtime can be started: {error}")))?;
    let done = runtime.block_on(work);
    // What still reads or waits has nobody to tell.
    runtime.shutdown_background();
    done
}
