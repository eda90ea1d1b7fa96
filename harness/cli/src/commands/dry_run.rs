//! The preview of a run: `--dry-run` of `run` and `stress`.

use std::process::ExitCode;
use std::time::Duration;

use comfy_table::{ContentArrangement, Table, presets};
use evictlab_report::clock::Clock;
use evictlab_report::text::count_noun;
use evictlab_report::{BackendName, EarlierRuns, RESULTS_DIR};
use evictlab_runner::{Exclusivity, Interrupt, PreviewedCase, RunRequest};
use evictlab_tools::dry_run::{count_kubelets, executed_cases, preview_run, skipped_by_reason};

use crate::failure::Failure;
use crate::output::{print, print_json, print_table, stdout_width};

/// Options of a preview.
pub(crate) struct DryRunOptions {
    /// Print JSON instead of text.
    pub(crate) json: bool,
    /// Number of runs of each case; `None` if it depends on verdicts or on time.
    pub(crate) repeat: Option<u32>,
    /// Number of nodes for each kubelet.
    pub(crate) nodes: u16,
}

/// Prints the cases that the run would execute, in their order, and those that it would skip.
/// Creates and writes nothing.
pub(crate) async fn dry_run(
    backend: BackendName,
    prepare: impl AsyncFnOnce(&Clock) -> Result<RunRequest, Failure>,
    options: DryRunOptions,
) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let Some(request) = interrupt.or_none(prepare(&backend.clock())).await else {
        return Err(Failure::interrupted());
    };
    let request = request?;
    let earlier =
        EarlierRuns::read(RESULTS_DIR.as_ref(), request.backend.name()).map_err(Failure::infrastructure)?;
    let preview = preview_run(&request, &earlier, options.repeat, options.nodes);
    if options.json {
        print_json(&preview)?;
        return Ok(ExitCode::SUCCESS);
    }
    let run: Vec<&PreviewedCase> = executed_cases(&preview.cases).collect();
    print_table(&table(&run))?;
    for (reason, cases) in skipped_by_reason(&preview.cases) {
        print(format!("\nskipped: {reason}\n  {}", cases.join("\n  ")))?;
    }
    let repeat = preview.repeat.filter(|repeat| *repeat > 1).map(|repeat| format!(", {repeat} times each"));
    print(format!(
        "\n{}{} on {}, {} skipped; {}",
        count_noun(run.len(), "execution"),
        repeat.unwrap_or_default(),
        count_noun(count_kubelets(&preview.cases), "kubelet"),
        preview.cases.len() - run.len(),
        preview.estimated_seconds.map_or_else(
            || "real time unknown: no earlier run in results has the cases".to_owned(),
            |seconds| format!(
                "about {} of real time, by {}",
                duration(seconds),
                count_noun(preview.earlier_runs, "earlier run")
            ),
        )
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn table(cases: &[&PreviewedCase]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["CLUSTER", "KUBELET", "CASE", "NODE", "ALONE ON", "DEADLINE", "EARLIER"]);
    // In a pipe, every case is one line of any length.
    if let Some(width) = stdout_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for PreviewedCase { planned: case, earlier_seconds } in cases {
        table.add_row([
            case.cluster.clone(),
            case.kubelet.clone(),
            format!("{}/{}", case.suite, case.case),
            nodes(&case.nodes),
            exclusive_resource(case.exclusivity).to_owned(),
            format!("{}s", case.deadline_seconds),
            earlier_seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.1}s")),
        ]);
    }
    table.trim_fmt()
}

/// Returns the node, or the first one and the number of the others.
fn nodes(names: &[String]) -> String {
    match names {
        [] => "new".to_owned(),
        [only] => only.clone(),
        [first, others @ ..] => format!("{first} or {} more", others.len()),
    }
}

fn exclusive_resource(exclusivity: Exclusivity) -> &'static str {
    match exclusivity {
        Exclusivity::Shared => "-",
        Exclusivity::Node => "node",
        Exclusivity::Disk => "disk",
        Exclusivity::Host => "host",
    }
}

fn duration(seconds: f64) -> String {
    humantime::format_duration(Duration::from_secs(seconds.ceil() as u64)).to_string()
}
