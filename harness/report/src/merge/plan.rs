//! The plan of a merged run: the cases and kubelets of all runs.

use std::collections::BTreeMap;

use evictlab_rules::KubeletVersion;

use super::error::MergeError;
use super::source::Source;
use crate::baseline::Baseline;
use crate::run_event::{CaseInfo, FlakyResult, Model, RunEventKind};
use crate::run_state::RunStart;
use crate::text::count_noun;

/// Number of run ids in the id of a merged run.
const MAX_IDS: usize = 3;

/// Returns the start of the merged run. Cases are sorted by suite and name, kubelets by version.
///
/// # Errors
/// The runs are of different backends, or of different models.
pub(super) fn merged_start(
    sources: &[Source],
    baseline: Option<&Baseline>,
) -> Result<RunEventKind, MergeError> {
    let starts: Vec<&RunStart> = sources.iter().map(Source::start).collect();
    ensure_same(sources, "backend", |start| start.backend.to_string())?;
    ensure_same(sources, "model", |start| start.model.as_ref().map_or("none".to_owned(), describe_model))?;
    let kubelets = kubelets(&starts);
    let is_strict = starts.iter().any(|start| start.flaky_result == FlakyResult::Fail);
    Ok(RunEventKind::RunStarted {
        run_id: merged_id(&starts),
        evictlab: versions(&starts).join(", "),
        backend: starts[0].backend,
        model: merged_model(&starts),
        cases: cases(&starts, &kubelets, baseline),
        kubelet_args: kubelet_args(&starts),
        kubelets,
        flaky_result: if is_strict { FlakyResult::Fail } else { FlakyResult::Pass },
        repeat: Some(1),
        real_start: Some(starts[0].real_start).filter(|_| starts[0].model.is_some()),
        shard: None,
    })
}

/// Versions of evictlab that made the runs, without repeats.
pub(super) fn versions(starts: &[&RunStart]) -> Vec<String> {
    let mut versions: Vec<String> = starts.iter().map(|start| start.evictlab.clone()).collect();
    versions.sort();
    versions.dedup();
    versions
}

fn ensure_same(
    sources: &[Source],
    property: &'static str,
    value: impl Fn(&RunStart) -> String,
) -> Result<(), MergeError> {
    let first = &sources[0];
    let expected = value(first.start());
    match sources.iter().find(|source| value(source.start()) != expected) {
        Some(other) => Err(MergeError::Different {
            property,
            runs: [first, other].map(|source| (source.dir.clone(), value(source.start()))).into(),
        }),
        None => Ok(()),
    }
}

/// Describes everything that determines the verdicts of a model.
fn describe_model(model: &Model) -> String {
    let options = match model.options.as_str() {
        "" => String::new(),
        options => format!(", {options}"),
    };
    format!("cgroup {}, seed {}{options}", model.cgroup, model.seed)
}

fn merged_id(starts: &[&RunStart]) -> String {
    let mut ids: Vec<String> = starts.iter().take(MAX_IDS).map(|start| start.id.clone()).collect();
    if starts.len() > MAX_IDS {
        ids.push(format!("{} more", starts.len() - MAX_IDS));
    }
    ids.join("+")
}

/// The model; its command for real kubelets selects all shards.
fn merged_model(starts: &[&RunStart]) -> Option<Model> {
    let command = |start: &RunStart| {
        let command = start.model.as_ref()?.on_real_kubelets.clone();
        let shard = start.shard.as_ref().map(|shard| format!(" --shard {}/{}", shard.part, shard.of));
        Some(shard.map_or(command.clone(), |shard| command.replace(&shard, "")))
    };
    let first = command(starts[0])?;
    let is_common = starts.iter().all(|start| command(start).as_ref() == Some(&first));
    let on_real_kubelets = if is_common { first } else { "evictlab run --backend kind".to_owned() };
    Some(Model { on_real_kubelets, ..starts[0].model.clone()? })
}

fn kubelets(starts: &[&RunStart]) -> Vec<String> {
    let mut kubelets: Vec<String> = Vec::new();
    for kubelet in starts.iter().flat_map(|start| &start.kubelets) {
        if !kubelets.contains(kubelet) {
            kubelets.push(kubelet.clone());
        }
    }
    let version = |label: &String| label.parse::<KubeletVersion>().ok();
    kubelets.sort_by_key(|kubelet| (version(kubelet).is_none(), version(kubelet)));
    kubelets
}

/// The arguments that select kubelets again, by label, without those of labels that stand for
/// another kubelet in another run.
fn kubelet_args(starts: &[&RunStart]) -> BTreeMap<String, String> {
    let arg = |label: &String| {
        let having = starts.iter().filter(|start| start.kubelets.contains(label));
        let mut args = having.map(|start| start.kubelet_args.get(label));
        let first = args.next()??;
        args.all(|arg| arg == Some(first)).then(|| (label.clone(), first.clone()))
    };
    starts.iter().flat_map(|start| &start.kubelets).filter_map(arg).collect()
}

/// The cases of all runs and of their missing shards. `baseline` replaces those of the runs.
fn cases(starts: &[&RunStart], kubelets: &[String], baseline: Option<&Baseline>) -> Vec<CaseInfo> {
    let others =
        |start: &'_ RunStart| start.shard.iter().flat_map(|shard| shard.other_cases.clone()).collect();
    let planned = starts.iter().flat_map(|start| start.cases.clone());
    let missing = starts.iter().flat_map(|start| -> Vec<CaseInfo> { others(start) });
    let mut cases: BTreeMap<(String, String), CaseInfo> = BTreeMap::new();
    for info in planned.chain(missing) {
        let id = (info.suite.clone(), info.case.clone());
        let expected = info.baseline.clone();
        cases.entry(id).or_insert(info).baseline.extend(expected);
    }
    let mut cases: Vec<CaseInfo> = cases.into_values().collect();
    if let Some(baseline) = baseline {
        cases.iter_mut().for_each(|info| info.baseline = baseline.of_case(&info.suite, &info.case, kubelets));
    }
    cases
}

/// Describes missing shards: `shards 2/3 and 3/3 are missing`. `None` if no shard is missing.
pub(super) fn missing_shards(starts: &[&RunStart]) -> Option<String> {
    let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for shard in starts.iter().filter_map(|start| start.shard.as_ref()) {
        parts.entry(shard.of).or_default().push(shard.part);
    }
    let missing = |(total, parts): (&usize, &Vec<usize>)| -> Vec<String> {
        (1..=*total).filter(|part| !parts.contains(part)).map(|part| format!("{part}/{total}")).collect()
    };
    match &parts.iter().flat_map(missing).collect::<Vec<_>>()[..] {
        [] => None,
        [one] => Some(format!("shard {one} is missing")),
        [others @ .., last] if others.len() < 10 => {
            Some(format!("shards {} and {last} are missing", others.join(", ")))
        }
        many => Some(format!("{} are missing, the first is {}", count_noun(many.len(), "shard"), many[0])),
    }
}
