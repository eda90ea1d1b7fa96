//! The preview of a run: `--dry-run` of `run` and `stress`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use comfy_table::{ContentArrangement, Table, presets};
use evictlab_report::EarlierRuns;
use evictlab_report::clock::Clock;
use evictlab_report::words::count;
use evictlab_runner::{Exclusivity, Interrupt, PlannedCase, PreviewedCase, RunPreview, RunRequest, preview};

use crate::args::backend::BackendName;
use crate::failure::{Failure, infrastructure};
use crate::output::{print, print_json};

/// Options of a preview.
pub(crate) struct DryRunOptions {
    /// Print JSON instead of text.
    pub(crate) json: bool,
    /// Number of runs of each case; `None` if it depends on verdicts or on time.
    pub(crate) repeat: Option<u32>,
    /// Number of nodes for each kubelet.
    pub(crate) nodes: u16,
}

/// Prints the cases that the run would execute, in their order, and those that it would skip. Creates
/// and writes nothing.
pub(crate) async fn dry_run(
    backend: BackendName,
    prepare: impl AsyncFnOnce(&Clock) -> Result<RunRequest, Failure>,
    options: DryRunOptions,
) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::listen().map_err(infrastructure)?;
    let Some(request) = interrupt.or_none(prepare(&backend.clock())).await else {
        return Err(Failure::interrupted());
    };
    let request = request?;
    let earlier = EarlierRuns::read("results".as_ref(), request.backend.name()).map_err(infrastructure)?;
    let cases = preview(&request);
    let has_model = request.backend.model().is_some();
    let estimate = options.repeat.and_then(|repeat| match has_model {
        true => estimate_of_model(&cases, &earlier).map(|once| once * f64::from(repeat)),
        false => estimate_of_nodes(&cases, &earlier, options.nodes).map(|once| once * f64::from(repeat)),
    });
    if options.json {
        let previewed = cases.into_iter().map(|planned| {
            let earlier_seconds = earlier.seconds(&planned.suite, &planned.case, &planned.kubelet);
            PreviewedCase { planned, earlier_seconds }
        });
        print_json(&RunPreview {
            backend: request.backend.name().to_owned(),
            cases: previewed.collect(),
            repeat: options.repeat,
            earlier_runs: earlier.runs,
            estimated_seconds: estimate,
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let (run, skipped): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.skipped.is_none());
    print(table(&run, &earlier))?;
    for (reason, cases) in by_reason(&skipped) {
        print(format!("\nskipped: {reason}\n  {}", cases.join("\n  ")))?;
    }
    let repeat = options.repeat.filter(|repeat| *repeat > 1).map(|repeat| format!(", {repeat} times each"));
    print(format!(
        "\n{}{} on {}, {} skipped; {}",
        count(run.len(), "execution"),
        repeat.unwrap_or_default(),
        count(kubelets(&cases), "kubelet"),
        skipped.len(),
        estimate.map_or_else(
            || "real time unknown: no earlier run in results has the cases".to_owned(),
            |seconds| format!(
                "about {} of real time, by {}",
                duration(seconds),
                count(earlier.runs, "earlier run")
            ),
        )
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn kubelets(cases: &[PlannedCase]) -> usize {
    let labels: std::collections::BTreeSet<&str> = cases.iter().map(|case| case.kubelet.as_str()).collect();
    labels.len()
}

fn table(cases: &[&PlannedCase], earlier: &EarlierRuns) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["CLUSTER", "KUBELET", "CASE", "NODE", "ALONE ON", "DEADLINE", "EARLIER"]);
    // In a pipe, every case is one line of any length.
    if let Some((width, _)) = terminal_size::terminal_size() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.0);
    }
    for case in cases {
        let seconds = earlier.seconds(&case.suite, &case.case, &case.kubelet);
        table.add_row([
            case.cluster.clone(),
            case.kubelet.clone(),
            format!("{}/{}", case.suite, case.case),
            nodes(&case.nodes),
            alone_on(case.exclusivity).to_owned(),
            format!("{}s", case.deadline_seconds),
            seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.1}s")),
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

fn alone_on(exclusivity: Exclusivity) -> &'static str {
    match exclusivity {
        Exclusivity::Shared => "-",
        Exclusivity::Node => "node",
        Exclusivity::Disk => "disk",
        Exclusivity::Host => "host",
    }
}

/// Groups skipped cases by their reason.
fn by_reason<'a>(skipped: &[&'a PlannedCase]) -> Vec<(&'a str, Vec<String>)> {
    let mut all: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for case in skipped {
        let cases = all.entry(case.skipped.as_deref().unwrap_or_default()).or_default();
        cases.entry(format!("{}/{}", case.suite, case.case)).or_default().push(&case.kubelet);
    }
    let lines = |cases: BTreeMap<String, Vec<&str>>| {
        cases.into_iter().map(|(case, kubelets)| format!("{case} on {}", kubelets.join(", "))).collect()
    };
    all.into_iter().map(|(reason, cases)| (reason, lines(cases))).collect()
}

/// Estimates the real time of all cases on a model, in seconds.
fn estimate_of_model(cases: &[PlannedCase], earlier: &EarlierRuns) -> Option<f64> {
    let run = cases.iter().filter(|case| case.skipped.is_none()).count();
    Some(earlier.real_seconds_per_execution()? * run as f64)
}

/// Estimates the time of all cases in seconds, without the creation of clusters: clusters run one after
/// the other, their kubelets in parallel. `None` if less than half of the cases have a duration; cases
/// without one take as long as the mean of the others.
fn estimate_of_nodes(cases: &[PlannedCase], earlier: &EarlierRuns, nodes: u16) -> Option<f64> {
    let seconds = |case: &PlannedCase| earlier.seconds(&case.suite, &case.case, &case.kubelet);
    let run: Vec<_> = cases.iter().filter(|case| case.skipped.is_none()).collect();
    let known: Vec<f64> = run.iter().filter_map(|case| seconds(case)).collect();
    if known.is_empty() || known.len() * 2 < run.len() {
        return None;
    }
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let mut clusters: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
    for case in run {
        let on_nodes = case.nodes.len().max(nodes.into()) as f64;
        let kubelets = clusters.entry(&case.cluster).or_default();
        *kubelets.entry(&case.kubelet).or_default() += seconds(case).unwrap_or(mean) / on_nodes;
    }
    Some(clusters.values().map(|kubelets| kubelets.values().copied().fold(0.0, f64::max)).sum())
}

fn duration(seconds: f64) -> String {
    humantime::format_duration(Duration::from_secs(seconds.ceil() as u64)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_cases_are_grouped_by_their_reason() {
        let case = |name: &str, kubelet: &str, skipped: Option<&str>| PlannedCase {
            cluster: "c".to_owned(),
            kubelet: kubelet.to_owned(),
            suite: "s".to_owned(),
            case: name.to_owned(),
            nodes: vec![],
            exclusivity: Exclusivity::Node,
            deadline_seconds: 120,
            skipped: skipped.map(str::to_owned),
        };
        let cases =
            [case("a", "v1.27", Some("old")), case("a", "v1.28", Some("old")), case("b", "v1.27", Some("x"))];
        let grouped = by_reason(&cases.iter().collect::<Vec<_>>());
        assert_eq!(
            grouped,
            [("old", vec!["s/a on v1.27, v1.28".to_owned()]), ("x", vec!["s/b on v1.27".to_owned()])]
        );
    }
}
