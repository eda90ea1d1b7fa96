//! The `evictlab` command: subcommands in `commands`, shared arguments in `args`.
//!
//! A subcommand is a file with `Args`, which clap parses, and `run`, which passes them to the
//! crates `runner` and `tools` and prints the result. Its error is a [`Failure`]: a message, and
//! the exit status. `profile` applies the defaults of `evictlab.toml` before the arguments are
//! parsed.
//!
//! ```sh
//! evictlab run message --kubelet v1.36
//! ```

#![deny(unreachable_pub)]

mod args;
mod commands;
mod execute;
mod failure;
mod kind_context;
mod messages;
mod output;
mod profile;

#[cfg(test)]
mod error_texts;

use std::env;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::CompleteEnv;
use clap_complete::engine::ArgValueCandidates;
use evictlab_report::BackendName;
use mimalloc::MiMalloc;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};

use args::bisect::BisectArgs;
use args::output::ColorArgs;
use commands::{
    bench, bisect, book, cluster, completions, doctor, explain, export, gc, history, image, job, lint, list,
    man, mutants, new, parity, report, run, schema, stress, verify, watch,
};
use failure::Failure;
use messages::choose_colors;

/// A run on the embedded cluster allocates and frees many small values: the system's allocator
/// would take a third of its time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Number of files beyond which no command opens any.
const ENOUGH_FILES: u64 = 16_384;

/// Test how kubelets evict pods under node pressure, on modelled or real clusters
#[derive(Parser)]
#[command(name = "evictlab", version, about, max_term_width = 110)]
struct Cli {
    #[command(flatten)]
    color: ColorArgs,
    /// Use the options of this profile of evictlab.toml as defaults [default: default]
    #[arg(
        long = "profile",
        id = "profile",
        value_name = "NAME",
        global = true,
        env = "EVICTLAB_PROFILE",
        add = ArgValueCandidates::new(profile::candidates),
        help_heading = "Output"
    )]
    _profile: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Stress(Box<stress::Args>),
    Verify(Box<verify::Args>),
    Bisect(Box<BisectArgs>),
    Mutants(mutants::Args),
    Parity(parity::Args),
    List(list::Args),
    New(new::Args),
    Lint(lint::Args),
    Schema(schema::Args),
    Explain(explain::Args),
    Export(export::Args),
    Watch(watch::Args),
    Report(report::Args),
    History(history::Args),
    Doctor(doctor::Args),
    Job(job::Args),
    Cluster(cluster::Args),
    Bench(bench::Args),
    #[command(alias = "images")]
    Image(image::Args),
    Gc(gc::Args),
    Completions(completions::Args),
    Man(man::Args),
    Book(book::Args),
}

fn main() -> ExitCode {
    // Answers the completion script of a shell, which sets COMPLETE, and exits.
    CompleteEnv::with_factory(Cli::command).complete();
    raise_file_limit();
    let cli = match parse() {
        Ok(cli) => cli,
        Err(failure) => return failure.report(),
    };
    choose_colors(cli.color.choice());
    let result = match cli.command {
        Command::Run(args) => block_on(args.backend.into(), run::run(*args)),
        Command::Stress(args) => block_on(args.backend.into(), stress::run(&args)),
        Command::Verify(args) => block_on(args.backend.into(), verify::run(&args)),
        Command::Bisect(args) => block_on(args.backend().into(), bisect::run(&args)),
        Command::Mutants(args) => mutants::run(&args),
        Command::Parity(args) => block_on(BackendName::Embedded, parity::run(&args)),
        Command::List(args) => list::run(&args),
        Command::New(args) => new::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Schema(args) => schema::run(&args, &Cli::command()),
        Command::Explain(args) => explain::run(&args),
        Command::Export(args) => block_on_wall_clock(export::run(&args)),
        Command::Watch(args) => block_on_wall_clock(watch::run(&args)),
        Command::Report(args) => report::run(&args),
        Command::History(args) => history::run(&args),
        Command::Job(args) => block_on_wall_clock(job::run(args)),
        Command::Doctor(args) => block_on_wall_clock(doctor::run(&args)),
        Command::Bench(args) => block_on_wall_clock(bench::run(&args)),
        Command::Cluster(args) => block_on_wall_clock(cluster::run(&args)),
        Command::Image(args) => block_on_wall_clock(image::run(&args)),
        Command::Gc(args) => block_on_wall_clock(gc::run(&args)),
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::Book(args) => book::run(&args, Cli::command()),
    };
    result.unwrap_or_else(|failure| failure.with_profile_place().report())
}

/// Raises the number of files that this process may open as far as permitted, as programs in Go do:
/// the default of 1,024 is too low for the connections of a cluster with 1,000 nodes.
fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(ENOUGH_FILES, |maximum| maximum.min(ENOUGH_FILES));
    if current.is_some_and(|current| current < wanted) {
        // Without it, large clusters are slower or fail with an error of the operating system.
        let _ignored = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// Parses the command line, with the defaults of a profile.
fn parse() -> Result<Cli, Failure> {
    let arguments: Vec<OsString> = env::args_os().collect();
    let profile = env::var("EVICTLAB_PROFILE").ok();
    let command = profile::with_profile(Cli::command(), &arguments, profile).or_else(|error| {
        // Help does not depend on a profile.
        match Cli::command().try_get_matches_from(&arguments) {
            Err(help) if !help.use_stderr() => help.exit(),
            _ => Err(Failure::bad_input(error)),
        }
    })?;
    let matches =
        command.try_get_matches_from(arguments).unwrap_or_else(|error| with_other_tip(error).exit());
    Ok(Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()))
}

/// Returns an error about a subcommand that does not exist, with a tip: two runs are compared by an
/// option of `report`.
fn with_other_tip(mut error: clap::Error) -> clap::Error {
    if matches!(error.get(ContextKind::InvalidSubcommand), Some(ContextValue::String(name)) if name == "compare")
    {
        error.remove(ContextKind::SuggestedSubcommand);
        let tip = StyledStr::from("to compare two runs, use `evictlab report --compare BEFORE AFTER`");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// Runs an async command with the clock of its backend. Simulated time advances whenever no task is
/// ready, so its runtime has one thread and a paused clock.
fn block_on(
    backend: BackendName,
    command: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    if backend.has_model_time() {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
        block_on_runtime(runtime, command)
    } else {
        block_on_wall_clock(command)
    }
}

/// Runs an async command. Only async commands start a runtime.
fn block_on_wall_clock(
    command: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    block_on_runtime(Runtime::new(), command)
}

fn block_on_runtime(
    runtime: io::Result<Runtime>,
    command: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    let runtime = runtime
        .map_err(|error| Failure::infrastructure(format!("failed to start async runtime: {error}")))?;
    let result = runtime.block_on(command);
    // The remaining tasks only read or wait.
    runtime.shutdown_background();
    result
}
