//! `evictlab book`

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use evictlab_case::Source;
use evictlab_report::KubeletResults;
use evictlab_report::text::count_noun;
use evictlab_tools::book::{Book, Command, Verdicts, real_verdicts};

use crate::args::baseline::BUILT_IN_BASELINE;
use crate::failure::Failure;
use crate::output::print;

/// Write the documentation as an mdBook
///
/// Copies the pages of harness/guides and other manuals of a checkout, adds a page for each command
/// and each case, with the verdicts of real kubelets from results/real, and checks all links
/// between them. `mdbook build DIR` renders the pages.
///
/// Exit status: 0 written; 2 a page is missing or a link is broken; 4 the pages could not be
/// written.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab book target/book && mdbook serve target/book
  evictlab run --kubelet all --output-dir run && evictlab book target/book --timelines run")]
pub(crate) struct Args {
    /// Output directory; created if it does not exist
    dir: PathBuf,
    /// Checkout of evictlab
    #[arg(long, value_name = "DIR", default_value = ".")]
    checkout: PathBuf,
    /// More verdicts for the pages of cases: a file that `evictlab run --write-baseline=FILE`
    /// wrote, such as `real=results/real.json` (repeatable)
    #[arg(long, value_name = "NAME=FILE", value_parser = named_file)]
    verdicts: Vec<(String, PathBuf)>,
    /// Run directory whose timelines the pages of cases get [default: no timelines]
    #[arg(long, value_name = "DIR")]
    timelines: Option<PathBuf>,
}

fn named_file(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = text.split_once('=').ok_or("not NAME=FILE")?;
    Ok((name.to_owned(), PathBuf::from(file)))
}

/// Writes the book.
pub(crate) fn run(args: &Args, evictlab: clap::Command) -> Result<ExitCode, Failure> {
    if !args.checkout.join("harness/guides").is_dir() {
        return Err(Failure::bad_input(format!(
            "failed to find the documentation in {}: book needs a checkout of evictlab\nhelp: run it in a checkout, or name one with --checkout DIR",
            args.checkout.display()
        )));
    }
    let cases = evictlab_case::load(&Source::Dir(args.checkout.join("cases")))?;
    let mut verdicts = vec![("model".to_owned(), parse(BUILT_IN_BASELINE, Path::new("built-in baseline"))?)];
    let real = args.checkout.join("results/real");
    if real.is_dir() {
        verdicts.extend(real_verdicts(&KubeletResults::read_dir(&real).map_err(Failure::bad_input)?));
    }
    for (name, file) in &args.verdicts {
        let text = fs::read_to_string(file)
            .map_err(|error| Failure::bad_input(format!("failed to read {}: {error}", file.display())))?;
        verdicts.push((name.clone(), parse(&text, file)?));
    }
    let commands = commands(evictlab);
    let book = Book::assemble(&args.checkout, &commands, &cases, &verdicts, args.timelines.as_deref())
        .map_err(Failure::bad_input)?;
    book.write(&args.dir).map_err(Failure::infrastructure)?;
    print(format!("{} in {}", count_noun(book.files().len(), "file"), args.dir.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn parse(text: &str, file: &Path) -> Result<Verdicts, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::bad_input(format!(
            "failed to parse {}:{}:{}: {error}",
            file.display(),
            error.line(),
            error.column()
        ))
    })
}

/// Returns the commands and their subcommands in the order of `--help`.
fn commands(evictlab: clap::Command) -> Vec<Command> {
    let mut evictlab = evictlab.disable_help_subcommand(true);
    evictlab.build();
    let mut all = Vec::new();
    add_commands(&evictlab, "", &mut all);
    all
}

fn add_commands(command: &clap::Command, prefix: &str, all: &mut Vec<Command>) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        let name = format!("{prefix}{}", below.get_name());
        let about = below.get_about().map(ToString::to_string).unwrap_or_default();
        let help = below.clone().term_width(100).render_long_help().to_string();
        all.push(Command { name: name.clone(), about, help });
        add_commands(below, &format!("{name} "), all);
    }
}
