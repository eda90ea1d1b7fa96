//! The `evictlab` command: one file per subcommand in `commands/`, and no logic here.

mod commands;
mod failure;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{lint, list, schema};

/// Makes the kubelet evict a pod on demand, on a cluster made for the purpose, and judges what it said about it.
#[derive(Parser)]
#[command(name = "evictlab", version, about, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::Args),
    Lint(lint::Args),
    Schema(schema::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::List(args) => list::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Schema(args) => schema::run(&args),
    };
    done.unwrap_or_else(|failure| failure.tell())
}
