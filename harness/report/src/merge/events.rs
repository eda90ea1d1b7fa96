//! The events of a merged run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;

use super::attempts::Attempts;
use super::source::{CaseKubelet, Source};
use crate::run_event::{CaseId, RunEvent, RunEventKind};
use evictlab_judge::Verdict;

/// Merges the events of runs by their time, without their starts and ends. Each run's events keep
/// their order.
pub(super) fn merge_events(sources: &[Source], start: RunEventKind, attempts: &Attempts) -> Vec<RunEvent> {
    let clusters = cluster_names(sources);
    let ran = cells_that_ran(sources);
    let mut events: Vec<(Timestamp, RunEvent)> = Vec::new();
    for (nth, source) in sources.iter().enumerate() {
        // An interrupt or timeout is dropped if every case of the run has a verdict in another run.
        let keeps_end = !source.planned().all(|cell| ran.contains(&cell));
        let mut time = Timestamp::MIN;
        for event in &source.events {
            time = time.max(event.at);
            let names = |cluster: &str| clusters.get(&(nth, cluster.to_owned())).cloned();
            let number = |id: &CaseId| attempts.number(nth, id);
            if let Some(kind) = renumber_event(&event.kind, names, number, keeps_end) {
                events.push((time, RunEvent { at: event.at, kind }));
            }
        }
    }
    events.sort_by_key(|(time, _)| *time);
    let first = sources.iter().map(|source| source.start().at).min().unwrap_or_default();
    let last = events.last().map_or(first, |(time, _)| *time);
    let gaps = attempts.gaps.iter().map(|(id, result)| RunEventKind::CaseEnded {
        id: id.clone(),
        node: None,
        seconds: 0.0,
        result: Arc::new(result.clone()),
        evidence: None,
    });
    let start = RunEvent { at: first, kind: start };
    let gaps = gaps.map(|kind| RunEvent { at: last, kind });
    std::iter::once(start).chain(events.into_iter().map(|(_, event)| event)).chain(gaps).collect()
}

/// Returns the event with the names and numbers of the merged run; `None` if it is not in it.
fn renumber_event(
    kind: &RunEventKind,
    cluster_name: impl Fn(&str) -> Option<String>,
    number: impl Fn(&CaseId) -> Option<u32>,
    keeps_end: bool,
) -> Option<RunEventKind> {
    let mut kind = kind.clone();
    match &mut kind {
        RunEventKind::RunStarted { .. } | RunEventKind::RunEnded { .. } => return None,
        RunEventKind::ReportFailed { .. } => {}
        RunEventKind::Interrupted { .. } | RunEventKind::TimedOut => return keeps_end.then_some(kind),
        RunEventKind::ClusterStarted { cluster, .. }
        | RunEventKind::ClusterStep { cluster, .. }
        | RunEventKind::ClusterWarning { cluster, .. }
        | RunEventKind::ClusterReady { cluster, .. }
        | RunEventKind::ClusterFailed { cluster, .. }
        | RunEventKind::ClusterDeleted { cluster, .. } => {
            if let Some(name) = cluster_name(cluster) {
                *cluster = name;
            }
        }
        RunEventKind::CaseStarted { id, .. }
        | RunEventKind::CaseStep { id, .. }
        | RunEventKind::CaseProgress { id, .. }
        | RunEventKind::CaseRetried { id, .. }
        | RunEventKind::CaseEnded { id, .. }
        | RunEventKind::CaseInterrupted { id, .. } => id.attempt = number(id)?,
    }
    Some(kind)
}

/// Returns new names, by run and name, of clusters whose name more than one run has.
fn cluster_names(sources: &[Source]) -> HashMap<(usize, String), String> {
    let mut runs: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (nth, source) in sources.iter().enumerate() {
        for cluster in &source.state.clusters {
            runs.entry(&cluster.name).or_default().insert(nth);
        }
    }
    let shared = runs.iter().filter(|(_, runs)| runs.len() > 1);
    let renamed = shared.flat_map(|(name, runs)| {
        runs.iter().map(move |nth| {
            let id = &sources[*nth].start().id;
            ((*nth, (*name).to_owned()), format!("{name} of run {id}"))
        })
    });
    renamed.collect()
}

/// Returns the cells with a verdict other than `skipped`, in any run.
fn cells_that_ran(sources: &[Source]) -> BTreeSet<CaseKubelet> {
    let ended = sources.iter().flat_map(|source| &source.state.ended);
    let ran = ended.filter(|ended| ended.result.verdict != Verdict::Skipped);
    ran.map(|ended| CaseKubelet::of(&ended.id)).collect()
}
