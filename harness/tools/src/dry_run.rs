//! The preview of a run, with its duration estimated from earlier runs.

use std::collections::{BTreeMap, BTreeSet};

use evictlab_report::EarlierRuns;
use evictlab_runner::{PreviewedCase, RunPreview, RunRequest, preview};

/// Returns the preview of a run. `repeat`: number of runs of each case, `None` if it depends on
/// verdicts or on time; `nodes`: number of nodes for each kubelet.
pub fn preview_run(
    request: &RunRequest,
    earlier: &EarlierRuns,
    repeat: Option<u32>,
    nodes: u16,
) -> RunPreview {
    let previewed = preview(request).into_iter().map(|planned| {
        let earlier_seconds = earlier.seconds(&planned.suite, &planned.case, &planned.kubelet);
        PreviewedCase { planned, earlier_seconds }
    });
    let cases: Vec<PreviewedCase> = previewed.collect();
    let estimate_once = || match request.backend.model() {
        Some(_) => estimate_of_model(&cases, earlier),
        None => estimate_of_nodes(&cases, nodes),
    };
    let estimated_seconds = repeat.and_then(|repeat| Some(estimate_once()? * f64::from(repeat)));
    RunPreview {
        backend: request.backend.name(),
        repeat,
        earlier_runs: earlier.runs,
        estimated_seconds,
        cases,
    }
}

/// Returns the cases that a run would execute.
pub fn executed_cases(cases: &[PreviewedCase]) -> impl Iterator<Item = &PreviewedCase> {
    cases.iter().filter(|case| case.planned.skipped.is_none())
}

/// Returns the number of kubelets of a run.
pub fn count_kubelets(cases: &[PreviewedCase]) -> usize {
    cases.iter().map(|case| &case.planned.kubelet).collect::<BTreeSet<_>>().len()
}

/// Groups the cases that a run would skip by the reason: each is `suite/case on KUBELETS`.
pub fn skipped_by_reason(cases: &[PreviewedCase]) -> Vec<(&str, Vec<String>)> {
    let mut all: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for case in cases.iter().map(|case| &case.planned) {
        if let Some(reason) = &case.skipped {
            let cases = all.entry(reason).or_default();
            cases.entry(format!("{}/{}", case.suite, case.case)).or_default().push(&case.kubelet);
        }
    }
    let lines = |cases: BTreeMap<String, Vec<&str>>| {
        cases.into_iter().map(|(case, kubelets)| format!("{case} on {}", kubelets.join(", "))).collect()
    };
    all.into_iter().map(|(reason, cases)| (reason, lines(cases))).collect()
}

/// Estimates the real time of all cases on a model, in seconds.
fn estimate_of_model(cases: &[PreviewedCase], earlier: &EarlierRuns) -> Option<f64> {
    Some(earlier.real_seconds_per_execution()? * executed_cases(cases).count() as f64)
}

/// Estimates the time of all cases in seconds, without the creation of clusters: clusters run one
/// after the other, their kubelets in parallel. `None` if less than half of the cases have a
/// duration; cases without one take as long as the mean of the others.
fn estimate_of_nodes(cases: &[PreviewedCase], nodes: u16) -> Option<f64> {
    let run: Vec<&PreviewedCase> = executed_cases(cases).collect();
    let known: Vec<f64> = run.iter().filter_map(|case| case.earlier_seconds).collect();
    if known.is_empty() || known.len() * 2 < run.len() {
        return None;
    }
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let mut clusters: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
    for PreviewedCase { planned, earlier_seconds } in run {
        let on_nodes = planned.nodes.len().max(nodes.into()) as f64;
        let kubelets = clusters.entry(&planned.cluster).or_default();
        *kubelets.entry(&planned.kubelet).or_default() += earlier_seconds.unwrap_or(mean) / on_nodes;
    }
    Some(clusters.values().map(|kubelets| kubelets.values().copied().fold(0.0, f64::max)).sum())
}

#[cfg(test)]
mod tests {
    use evictlab_runner::{Exclusivity, PlannedCase};

    use super::*;

    fn case(name: &str, kubelet: &str, skipped: Option<&str>, earlier_seconds: Option<f64>) -> PreviewedCase {
        let planned = PlannedCase {
            cluster: "c".to_owned(),
            kubelet: kubelet.to_owned(),
            suite: "s".to_owned(),
            case: name.to_owned(),
            nodes: vec![],
            exclusivity: Exclusivity::Node,
            deadline_seconds: 120,
            skipped: skipped.map(str::to_owned),
        };
        PreviewedCase { planned, earlier_seconds }
    }

    #[test]
    fn skipped_cases_are_grouped_by_their_reason() {
        let cases = [
            case("a", "v1.27", Some("old"), None),
            case("a", "v1.28", Some("old"), None),
            case("b", "v1.27", Some("x"), None),
            case("c", "v1.27", None, None),
        ];
        assert_eq!(
            skipped_by_reason(&cases),
            [("old", vec!["s/a on v1.27, v1.28".to_owned()]), ("x", vec!["s/b on v1.27".to_owned()])]
        );
        assert_eq!((executed_cases(&cases).count(), count_kubelets(&cases)), (1, 2));
    }

    #[test]
    fn kubelets_run_in_parallel_and_unknown_cases_take_the_mean_time() {
        let [a, b] = ["v1.27", "v1.28"];
        let cases = [
            case("a", a, None, Some(60.0)),
            case("b", a, None, None),
            case("a", b, None, Some(30.0)),
            case("b", b, Some("old"), Some(900.0)),
        ];
        assert_eq!(estimate_of_nodes(&cases, 1), Some(60.0 + 45.0));
        assert_eq!(estimate_of_nodes(&cases, 2), Some(52.5));
        assert_eq!(estimate_of_nodes(&[case("a", a, None, None), case("b", a, None, None)], 1), None);
    }
}
