//! `evictlab bench`

use std::env;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use comfy_table::{ContentArrangement, Table, presets};
use evictlab_runner::bench::{self, Bench, BenchError, Figure, Unit, command_seconds};
use evictlab_runner::case::{LoadedCase, Source};
use evictlab_runner::cluster::{self, Docker, KubeletSource, KubeletSpec, StateDir};
use evictlab_runner::images::Resolve;
use evictlab_runner::report::{Manners, Plain, exit_code};
use evictlab_runner::schedule::Interrupt;
use evictlab_runner::select::{Selection, select};
use serde_json::{Value, json};

use super::backend::Backend;
use super::kubelets::KubeletArgs;
use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::{print, tell};

/// What is run: the case that the project began with.
const CASE: &str = "message/sidecars-are-named";
/// How often the quick commands are run; the best counts.
const RUNS: u32 = 10;

/// Measure how quick evictlab is here, beside what it should be
///
/// Makes a kind cluster, runs message/sidecars-are-named on it, tunes its nodes and puts them back, deletes it; runs every case on embedded
/// clusters; times the quick commands. Without --kubelet, kind gets the two newest in Docker that can share a cluster. What happens is told
/// on standard error.
///
/// Exit status: 0 every target reached; 1 one missed; 2 the input cannot be used; 4 something could not be measured; 130 interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab bench --backend embedded
  evictlab bench --kubelet v1.31 --kubelet v1.32 --repeat 10
  evictlab bench --json > bench.json")]
pub struct Args {
    #[command(flatten)]
    kubelets: KubeletArgs,
    /// Measure this backend only
    #[arg(long, value_enum)]
    backend: Option<Backend>,
    /// Run the case this often on each kubelet
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Print a JSON array instead of a table
    #[arg(long)]
    json: bool,
}

/// Measures, and prints the figures.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.backend == Some(Backend::Existing) {
        return Err(bad_input(
            "the figures are promised of clusters that evictlab makes: --backend kind or embedded",
        ));
    }
    let selection = Selection { names: vec![CASE.to_owned()], ..Selection::default() };
    let case = select(&Source::BuiltIn(cases::FILES), &selection)?.remove(0);
    let mut figures = Vec::new();
    if args.backend != Some(Backend::Embedded) {
        figures.extend(on_kind(args, case).await?);
    }
    if args.backend != Some(Backend::Kind) {
        say("running every case on the embedded cluster");
        let own = env::current_exe().map_err(infrastructure)?;
        figures.extend(bench::on_embedded(&own).into_iter().map(in_this_build));
    }
    figures.extend(quick_commands().map(in_this_build));
    if args.json {
        let all: Vec<Value> = figures.iter().map(as_json).collect();
        print(format!("{:#}", Value::from(all)))?;
    } else {
        print(table(&figures))?;
    }
    let reached: Vec<_> = figures.iter().map(Figure::reached).collect();
    Ok(match (reached.contains(&None), reached.contains(&Some(false))) {
        (true, _) => exit_code::INFRASTRUCTURE.into(),
        (_, true) => exit_code::FAILED.into(),
        _ => ExitCode::SUCCESS,
    })
}

/// What kind clusters take.
async fn on_kind(args: &Args, case: Arc<LoadedCase>) -> Result<Vec<Figure>, Failure> {
    let lock = args.kubelets.lock()?;
    let state = StateDir::open().map_err(infrastructure)?;
    let docker = Docker::connect().await.map_err(infrastructure)?;
    cluster::kind_version().await.map_err(infrastructure)?;
    let kubelets = if args.kubelets.any() {
        args.kubelets.resolve(&docker, &lock).await?
    } else {
        let overrides = args.kubelets.images().overrides();
        let resolve = Resolve { docker: &docker, lock: &lock, overrides: &overrides, progress: &say };
        let there = resolve.there().await.map_err(infrastructure)?;
        let release = |version| KubeletSpec { claimed: None, source: KubeletSource::Release(version) };
        let specs: Vec<_> = bench::pair(there).into_iter().map(release).collect();
        match specs.is_empty() {
            true => args.kubelets.resolve(&docker, &lock).await?,
            false => resolve.all(&specs).await.map_err(bad_input)?,
        }
    };
    let mut groups = cluster::group(kubelets).map_err(bad_input)?;
    if groups.len() != 1 {
        return Err(bad_input(
            "these kubelets cannot share a cluster: an API server takes kubelets up to three minors older than itself, and none newer",
        ));
    }
    let bench = Bench { case, group: groups.remove(0), repeat: args.repeat, lock: Arc::new(lock) };
    let interrupt = Interrupt::listen().map_err(infrastructure)?;
    let plain = Manners { live: false, colour: false };
    let shown = Box::new(Plain::new("terminal", io::stderr(), plain, None));
    bench::figures(&bench, &docker, &state, shown, &interrupt, &say).await.map_err(|error| {
        let interrupted = interrupt.stop.is_cancelled() || matches!(error, BenchError::Interrupted);
        Failure::new(error, if interrupted { exit_code::INTERRUPTED } else { exit_code::INFRASTRUCTURE })
    })
}

/// A figure with a note where this is no build for use.
fn in_this_build(mut figure: Figure) -> Figure {
    if cfg!(debug_assertions) && figure.measured.is_some() {
        figure.note.push_str("; this is a debug build");
    }
    figure
}

fn say(text: &str) {
    tell(text.trim());
}

fn quick_commands() -> [Figure; 2] {
    ["list", "--help"].map(|argument| {
        let best = env::current_exe()
            .map_err(|error| error.to_string())
            .and_then(|own| command_seconds(&own, argument, RUNS).map_err(|error| error.to_string()));
        Figure {
            figure: format!("`evictlab {argument}`"),
            unit: Unit::Milliseconds,
            at_most: 50.0,
            measured: best.as_ref().ok().map(|best| best * 1000.0),
            note: match &best {
                Ok(_) => format!("best of {RUNS}"),
                Err(why) => why.clone(),
            },
        }
    })
}

fn word(figure: &Figure) -> &'static str {
    match figure.reached() {
        Some(true) => "ok",
        Some(false) => "missed",
        None => "not measured",
    }
}

fn table(figures: &[Figure]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["FIGURE", "TARGET", "MEASURED", "", "HOW"]);
    if let Some((width, _)) = terminal_size::terminal_size() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.0);
    }
    for figure in figures {
        table.add_row([
            figure.figure.clone(),
            format!("≤ {}", figure.unit.show(figure.at_most)),
            figure.measured.map_or_else(|| "-".to_owned(), |measured| figure.unit.show(measured)),
            word(figure).to_owned(),
            figure.note.clone(),
        ]);
    }
    table.trim_fmt()
}

fn as_json(figure: &Figure) -> Value {
    json!({
        "figure": figure.figure,
        "unit": figure.unit,
        "atMost": figure.at_most,
        "measured": figure.measured,
        "reached": figure.reached(),
        "note": figure.note,
    })
}
