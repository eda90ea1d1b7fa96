//! `evictlab bench`

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use comfy_table::{ContentArrangement, Table, presets};
use evictlab_case::select::{Selection, select};
use evictlab_case::{LoadedCase, Source};
use evictlab_cluster::{Docker, KubeletSource, KubeletSpec, MAX_KUBELET_SKEW, StateDir, skew_policy};
use evictlab_report::exit_code;
use evictlab_runner::Interrupt;
use evictlab_tools::bench::{
    self, BenchError, Figure, FigureResult, KindBench, MeasuredProgram, Unit, command_seconds,
};

use crate::args::backend::ManagedBackend;
use crate::args::kubelets::{KubeletArgs, resolver};
use crate::args::output::ProgressArgs;
use crate::args::values::whole_number;
use crate::failure::Failure;
use crate::output::{print, print_json, print_table, stdout_width};

/// The measured case.
const CASE: &str = "message/sidecars-are-named";
/// Number of runs of the quick commands; the fastest counts.
const QUICK_RUNS: u32 = 10;

/// Measure the performance of evictlab and compare it with its targets
///
/// Creates a kind cluster, runs message/sidecars-are-named on it, configures and restores its
/// nodes, and deletes it; runs every case on embedded clusters; times the quick commands. Without
/// --kubelet, the kind cluster gets the two newest kubelets in Docker that can share a cluster.
/// Progress is printed to standard error.
///
/// Also measures time and memory on 10, 100, 1,000 and 5,000 nodes, and prints how they grow: a run
/// on an embedded cluster and the preparation of an existing one (up to 1,000 nodes; the existing
/// one is an embedded cluster in another process), `evictlab watch` (generated nodes with 30 pods
/// each, once and every 30 s), and `evictlab explain` (30 events for each node). This takes about
/// five minutes.
///
/// Exit status: 0 every target reached; 1 a target missed; 2 invalid input; 4 a figure could not be
/// measured; 130 interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab bench --backend embedded
  evictlab bench --backend kind --kubelet v1.31 --kubelet v1.32 --repeat 10
  evictlab bench --sizes
  evictlab bench --json > bench.json")]
pub(crate) struct Args {
    #[command(flatten)]
    kubelets: KubeletArgs,
    /// Measure only this backend; with kind, no sizes [default: both]
    #[arg(long, short, value_enum)]
    backend: Option<ManagedBackend>,
    /// Run the case N times on each kubelet
    #[arg(long, short, value_name = "N", default_value_t = 5, value_parser = whole_number::<u32>(1..))]
    repeat: u32,
    /// Measure only the sizes
    #[arg(long, conflicts_with_all = ["backend", "repeat"])]
    sizes: bool,
    /// Print a JSON array instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// Measures and prints the figures.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let status = args.progress.status_line();
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let progress = |text: &str| {
        if !interrupt.stop.is_cancelled() {
            status.step(text.trim());
        }
    };
    let mut figures =
        if args.sizes { Vec::new() } else { measure_targets(args, &interrupt, &progress).await? };
    if args.backend != Some(ManagedBackend::Kind) {
        let own = env::current_exe().map_err(Failure::infrastructure)?;
        let program = MeasuredProgram { program: &own, stop: &interrupt.stop };
        let sizes = bench::measure_sizes(program, &progress).await;
        figures.extend(sizes.into_iter().map(note_debug_build));
    }
    status.clear();
    if interrupt.stop.is_cancelled() {
        return Err(Failure::interrupted());
    }
    if args.json {
        print_json(&figures.iter().map(FigureResult::from).collect::<Vec<_>>())?;
    } else {
        print_table(&table(&figures))?;
        for figure in figures.iter().filter(|figure| !figure.growth.is_empty()) {
            print(format!("\n{}", growth_table(figure)))?;
        }
    }
    let reached: Vec<_> = figures.iter().map(Figure::reached).collect();
    Ok(match (reached.contains(&None), reached.contains(&Some(false))) {
        (true, _) => exit_code::INFRASTRUCTURE.into(),
        (_, true) => exit_code::FAILED.into(),
        _ => ExitCode::SUCCESS,
    })
}

/// Measures on the backends, and the quick commands.
async fn measure_targets(
    args: &Args,
    interrupt: &Interrupt,
    progress: &dyn Fn(&str),
) -> Result<Vec<Figure>, Failure> {
    let selection = Selection { names: vec![CASE.to_owned()], ..Selection::default() };
    let case = select(&Source::BuiltIn(cases::FILES), &selection)?.remove(0);
    let mut figures = Vec::new();
    if args.backend != Some(ManagedBackend::Embedded) {
        figures.extend(measure_kind(args, case, interrupt, progress).await?);
    }
    if args.backend != Some(ManagedBackend::Kind) {
        progress("running every case on the embedded cluster");
        let own = env::current_exe().map_err(Failure::infrastructure)?;
        let program = MeasuredProgram { program: &own, stop: &interrupt.stop };
        figures.extend(bench::measure_embedded(program).into_iter().map(note_debug_build));
    }
    figures.extend(quick_commands().map(note_debug_build));
    Ok(figures)
}

/// Measures on a kind cluster.
async fn measure_kind(
    args: &Args,
    case: Arc<LoadedCase>,
    interrupt: &Interrupt,
    progress: &dyn Fn(&str),
) -> Result<Vec<Figure>, Failure> {
    let catalog = args.kubelets.image_catalog()?;
    let state = StateDir::open().map_err(Failure::infrastructure)?;
    let docker = Docker::connect().await.map_err(Failure::infrastructure)?;
    evictlab_cluster::kind_version().await.map_err(Failure::infrastructure)?;
    let kubelets = if args.kubelets.any() {
        args.kubelets.resolve(&docker, &catalog).await?
    } else {
        let overrides = args.kubelets.images().overrides();
        let resolve = resolver(&docker, &catalog, &overrides);
        let present = resolve.local_versions().await.map_err(Failure::infrastructure)?;
        let release = |version| KubeletSpec::from(KubeletSource::Release(version));
        let specs: Vec<_> = bench::newest_pair(present).into_iter().map(release).collect();
        if specs.is_empty() {
            args.kubelets.resolve(&docker, &catalog).await?
        } else {
            resolve.resolve_all(&specs).await.map_err(Failure::bad_input)?
        }
    };
    let mut groups = evictlab_cluster::group_by_skew(kubelets).map_err(Failure::bad_input)?;
    if groups.len() != 1 {
        return Err(Failure::bad_input(format!(
            "failed to create a cluster with these kubelets: {}\nhelp: name kubelets of at most {} consecutive minors",
            skew_policy(),
            MAX_KUBELET_SKEW + 1
        )));
    }
    let bench = KindBench {
        case,
        group: groups.remove(0),
        repeat: args.repeat,
        catalog: Arc::new(catalog),
        docker,
        state,
    };
    bench.measure(args.progress.run_log(), interrupt, progress).await.map_err(|error| {
        let interrupted = interrupt.stop.is_cancelled() || matches!(error, BenchError::Interrupted);
        Failure::new(error, if interrupted { exit_code::INTERRUPTED } else { exit_code::INFRASTRUCTURE })
    })
}

/// Notes that a figure was measured with a debug build.
fn note_debug_build(mut figure: Figure) -> Figure {
    if cfg!(debug_assertions) && figure.measured.is_some() {
        figure.note.push_str("; this is a debug build");
    }
    figure
}

fn quick_commands() -> [Figure; 2] {
    ["list", "--help"].map(|argument| {
        let best = env::current_exe()
            .map_err(|error| error.to_string())
            .and_then(|own| command_seconds(&own, argument, QUICK_RUNS).map_err(|error| error.to_string()));
        Figure {
            figure: format!("`evictlab {argument}`"),
            unit: Unit::Milliseconds,
            at_most: 15.0,
            measured: best.as_ref().ok().map(|best| best * 1000.0),
            note: match &best {
                Ok(_) => format!("best of {QUICK_RUNS}"),
                Err(why) => why.clone(),
            },
            growth: Vec::new(),
        }
    })
}

fn verdict(figure: &Figure) -> &'static str {
    match figure.reached() {
        Some(true) => "ok",
        Some(false) => "missed",
        None => "not measured",
    }
}

fn table(figures: &[Figure]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["FIGURE", "TARGET", "MEASURED", "", "HOW"]);
    if let Some(width) = stdout_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for figure in figures {
        table.add_row([
            figure.figure.clone(),
            format!("≤ {}", figure.unit.format(figure.at_most)),
            figure.measured.map_or_else(|| "-".to_owned(), |measured| figure.unit.format(measured)),
            verdict(figure).to_owned(),
            figure.note.clone(),
        ]);
    }
    table.trim_fmt()
}

/// Formats time and memory by size.
fn growth_table(figure: &Figure) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["SIZE", "TIME", "MEMORY", "TIME PER 1,000"]);
    for point in &figure.growth {
        let memory = point.mebibytes.map(|mebibytes| Unit::Mebibytes.format(mebibytes));
        table.add_row([
            point.size.to_string(),
            format!("{:.2} s", point.seconds),
            memory.unwrap_or_else(|| "-".to_owned()),
            Unit::Milliseconds.format(point.seconds * 1e6 / point.size as f64),
        ]);
    }
    format!("{}\n{}", figure.figure, table.trim_fmt())
}
