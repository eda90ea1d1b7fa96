//! Hand-written events shared by the tests of reports.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::backend_name::BackendName;
use crate::output_options::{OutputFormat, OutputOptions, Verbosity};
use crate::run_event::{CaseId, CaseInfo, FlakyResult, Model, RunEvent, RunEventKind};
use crate::run_state::RunState;
use crate::sink::Report;
use evictlab_evidence::{Observations, Recorded};
use evictlab_judge::{CaseResult, Check, EvictionRecord, InconclusiveReason, Phase, Verdict};
use serde::de::DeserializeOwned;

const OLD: &str = "v1.31.14";
const NEW: &str = "v1.32.13";
const CLUSTER: &str = "evictlab-7f3a";
const MESSAGE: &str = "The node was low on resource: memory. Threshold quantity: 23377Mi, available: 23932160Ki. \
    Container el-sidecar1 was using 212Mi, request is 0, has larger consumption of memory. ";

/// Plain output without colors.
pub(crate) fn plain_output(verbosity: Verbosity) -> OutputOptions {
    OutputOptions { format: OutputFormat::Plain, verbosity, color: false, hints: true }
}

/// Output on a terminal.
pub(crate) fn live_output(color: bool) -> OutputOptions {
    OutputOptions { format: OutputFormat::Live, verbosity: Verbosity::Normal, color, hints: true }
}

/// Applies events to an empty state.
pub(crate) fn state_after(events: &[RunEvent]) -> RunState {
    let mut state = RunState::default();
    events.iter().for_each(|event| state.apply(event));
    state
}

/// Passes the events of a run to a report; returns the state after the last one.
pub(crate) fn deliver(report: &mut dyn Report, events: &[RunEvent]) -> RunState {
    let mut state = RunState::default();
    for event in events {
        state.apply(event);
        report.on_event(event, &state).unwrap();
    }
    state
}

/// An event `seconds` after the start.
pub(crate) fn event(seconds: f64, kind: RunEventKind) -> RunEvent {
    let start: Timestamp = "2026-11-21T09:30:12Z".parse().unwrap();
    RunEvent { at: start + SignedDuration::from_secs_f64(seconds), kind }
}

pub(crate) fn id(suite: &str, case: &str, kubelet: &str, attempt: u32) -> CaseId {
    CaseId { suite: suite.to_owned(), case: case.to_owned(), kubelet: kubelet.to_owned(), attempt }
}

pub(crate) fn case_info(suite: &str, case: &str) -> CaseInfo {
    CaseInfo {
        suite: suite.to_owned(),
        case: case.to_owned(),
        about: "The Evicted event names every container over its request.".to_owned(),
        when_it_fails: Some("The kubelet names containers by another rule.".to_owned()),
        labels: vec!["Serial".to_owned(), "NodeFeature:Eviction".to_owned()],
        upstream: vec!["https://github.com/kubernetes/kubernetes/issues/124938".to_owned()],
        file: format!("{suite}/{case}.yaml"),
        path: None,
        baseline: BTreeMap::new(),
    }
}

/// The start of a run of cases of suite `message`.
pub(crate) fn run_started(kubelets: &[&str], cases: &[&str]) -> RunEventKind {
    RunEventKind::RunStarted {
        run_id: "7f3a".to_owned(),
        evictlab: "0.1.0".to_owned(),
        backend: BackendName::Kind,
        model: None,
        kubelets: kubelets.iter().map(|&kubelet| kubelet.to_owned()).collect(),
        kubelet_args: BTreeMap::new(),
        cases: cases.iter().map(|case| case_info("message", case)).collect(),
        repeat: Some(1),
        flaky_result: FlakyResult::Pass,
        real_start: None,
        shard: None,
    }
}

/// The model of a run without real kubelets.
pub(crate) fn model() -> Model {
    Model {
        cgroup: evictlab_rules::CgroupVersion::V2,
        seed: 0,
        options: String::new(),
        on_real_kubelets: "evictlab run --backend kind".to_owned(),
    }
}

/// The end of an attempt of a case of suite `message`.
pub(crate) fn case_ended(
    case: &str,
    kubelet: &str,
    attempt: u32,
    verdict: Verdict,
    why: &str,
) -> RunEventKind {
    let result = Arc::new(CaseResult::without_evidence(verdict, why));
    RunEventKind::CaseEnded {
        id: id("message", case, kubelet, attempt),
        node: None,
        seconds: 8.24,
        result,
        evidence: None,
    }
}

/// A run of cases of suite `message` on one kubelet with a baseline: expected and actual verdicts,
/// each for the reason `so it was`.
pub(crate) fn run_with_baseline(expected: &[(&str, Verdict)], seen: &[Verdict]) -> Vec<RunEvent> {
    let names: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
    let mut started = run_started(&[NEW], &names);
    let RunEventKind::RunStarted { cases, .. } = &mut started else { unreachable!("it started") };
    for (info, (_, verdict)) in cases.iter_mut().zip(expected) {
        info.baseline.insert(NEW.to_owned(), *verdict);
    }
    let ended = names.iter().zip(seen);
    let ended = ended.map(|(name, verdict)| case_ended(name, NEW, 1, *verdict, "so it was"));
    std::iter::once(started).chain(ended).map(|kind| event(0.0, kind)).collect()
}

fn ended(case: &str, kubelet: &str, node: &str, result: CaseResult) -> RunEventKind {
    RunEventKind::CaseEnded {
        id: id("message", case, kubelet, 1),
        node: (!node.is_empty()).then(|| node.to_owned()),
        seconds: 8.24,
        result: Arc::new(result),
        evidence: Some(Arc::new(evidence())),
    }
}

fn eviction() -> EvictionRecord {
    let annotations = json!({"starved_resource": "memory", "offending_containers": "el-sidecar1"});
    EvictionRecord {
        pod: "alloc".to_owned(),
        events: vec![MESSAGE.to_owned(), MESSAGE.replace("212Mi", "214Mi")],
        status: Some(MESSAGE.to_owned()),
        condition: None,
        annotations: annotations.as_object().cloned(),
    }
}

fn failed() -> CaseResult {
    let check = |name: &str, holds, expected: &str, observed: &str| Check {
        name: name.to_owned(),
        holds,
        expected: expected.to_owned(),
        observed: observed.to_owned(),
    };
    CaseResult {
        checks: vec![
            check("message names", false, "el-sidecar1, el1", "el-sidecar1"),
            check("resource", true, "memory", "memory"),
        ],
        evictions: vec![eviction()],
        diff: " resource: memory\n containers:\n   el-sidecar1: {request: \"0\"}\n-  el1: {request: \"0\"}\n"
            .to_owned(),
        ..CaseResult::without_evidence(
            Verdict::Failed,
            "the message does not name el1, which is over its request",
        )
    }
}

fn known_bug(verdict: Verdict, why: &str) -> CaseResult {
    let known_bug = Some("kubernetes/kubernetes#124938".to_owned());
    CaseResult { known_bug, evictions: vec![eviction()], ..CaseResult::without_evidence(verdict, why) }
}

const SIDECARS: &str = "sidecars-are-named";
const REQUESTS: &str = "requests-decide";
const SOFT: &str = "soft-threshold-message";
const POD_LEVEL: &str = "pod-level-request";
const NOBODY: &str = "nobody-offends";
const THREE: &str = "three-witnesses-agree";

/// An event kind at a time in seconds.
type Timed = (f64, RunEventKind);

/// A run on two kubelets with six cases and every verdict.
pub(crate) fn full_run() -> Vec<RunEvent> {
    let parts = [setup_events(), first_case_events(), other_case_events(), end_events()];
    parts.into_iter().flatten().map(|(seconds, kind)| event(seconds, kind)).collect()
}

fn setup_events() -> Vec<Timed> {
    let cluster = CLUSTER.to_owned();
    let step = |text: &str| RunEventKind::ClusterStep { cluster: cluster.clone(), text: text.to_owned() };
    let kubelets = vec![OLD.to_owned(), NEW.to_owned()];
    let nodes = vec![("el-worker".to_owned(), OLD.to_owned()), ("el-worker2".to_owned(), NEW.to_owned())];
    let cases = [SIDECARS, REQUESTS, SOFT, POD_LEVEL, NOBODY, THREE];
    vec![
        (0.0, run_started(&[OLD, NEW], &cases)),
        (0.1, RunEventKind::ClusterStarted { cluster: cluster.clone(), kubelets, reused: false }),
        (0.2, step("kind create cluster")),
        (28.0, step("agnhost:2.52 is in 3 nodes")),
        (30.2, RunEventKind::ClusterReady { cluster: cluster.clone(), seconds: 30.1, nodes }),
    ]
}

fn first_case_events() -> Vec<Timed> {
    vec![
        (30.3, ended(POD_LEVEL, OLD, "", plain(Verdict::Skipped, "asks for a kubelet >=1.34"))),
        (30.4, case_started(SIDECARS, OLD, "el-worker")),
        (30.5, case_started(SIDECARS, NEW, "el-worker2")),
        (30.6, case_step(SIDECARS, OLD, Phase::Configure, "memory.available<23377Mi")),
        (31.6, case_step(SIDECARS, OLD, Phase::Observe, "3 containers run")),
        (32.0, progress(SIDECARS, OLD, "el-sidecar1 at 112Mi, 144Mi to go")),
        (32.5, progress(SIDECARS, OLD, "el-sidecar1 at 152Mi, 104Mi to go")),
        (37.1, progress(SIDECARS, OLD, "el-sidecar1 at 212Mi, 44Mi to go")),
        (
            38.6,
            ended(SIDECARS, OLD, "el-worker", known_bug(Verdict::Reproduced, "the message names el1 alone")),
        ),
        (
            38.9,
            ended(
                SIDECARS,
                NEW,
                "el-worker2",
                plain(Verdict::Passed, "the message names all three containers"),
            ),
        ),
    ]
}

fn other_case_events() -> Vec<Timed> {
    let inconclusive = CaseResult {
        inconclusive_reason: Some(InconclusiveReason::KilledBeforeEviction),
        ..plain(Verdict::Inconclusive, "el1 was killed for memory before the kubelet evicted its pod")
    };
    let lost = CaseResult {
        phase: Some(Phase::Configure),
        ..plain(Verdict::Error, "the kubelet did not come back after its restart\nits log ends with: exit 1")
    };
    vec![
        (39.0, case_started(REQUESTS, NEW, "el-worker2")),
        (47.2, ended(REQUESTS, NEW, "el-worker2", failed())),
        (
            47.3,
            ended(REQUESTS, OLD, "el-worker", known_bug(Verdict::Fixed, "the message names the sidecars")),
        ),
        (48.0, ended(SOFT, OLD, "el-worker", inconclusive)),
        (48.1, ended(SOFT, NEW, "", lost)),
        (48.2, ended(POD_LEVEL, NEW, "", plain(Verdict::Skipped, "asks for a kubelet >=1.34"))),
        (48.3, case_started(NOBODY, OLD, "el-worker")),
        (48.4, RunEventKind::Interrupted { stage: 1 }),
        (48.9, ended(NOBODY, OLD, "el-worker", plain(Verdict::Inconclusive, "interrupted"))),
        (49.0, ended(NOBODY, NEW, "el-worker2", plain(Verdict::Passed, "both lists are there and empty"))),
        (49.1, ended(THREE, NEW, "el-worker2", plain(Verdict::Passed, "they agree"))),
    ]
}

fn end_events() -> Vec<Timed> {
    vec![
        (
            52.0,
            RunEventKind::ClusterDeleted {
                cluster: CLUSTER.to_owned(),
                seconds: 2.5,
                kept: None,
                error: None,
            },
        ),
        (52.1, RunEventKind::RunEnded { exit_code: 130, seconds: 52.1 }),
    ]
}

fn plain(verdict: Verdict, why: &str) -> CaseResult {
    CaseResult::without_evidence(verdict, why)
}

fn case_started(case: &str, kubelet: &str, node: &str) -> RunEventKind {
    RunEventKind::CaseStarted { id: id("message", case, kubelet, 1), node: node.to_owned() }
}

fn case_step(case: &str, kubelet: &str, phase: Phase, text: &str) -> RunEventKind {
    RunEventKind::CaseStep { id: id("message", case, kubelet, 1), phase, text: text.to_owned() }
}

fn progress(case: &str, kubelet: &str, text: &str) -> RunEventKind {
    let (phase, text) = (Phase::Observe, text.to_owned());
    RunEventKind::CaseProgress { id: id("message", case, kubelet, 1), phase, text }
}

/// Decodes a recorded document.
pub(crate) fn decoded<T: DeserializeOwned>(json: Value) -> Recorded<T> {
    Recorded::decode(json).unwrap()
}

/// Short evidence in which every field is set.
pub(crate) fn evidence() -> Observations {
    let map = |value: Value| value.as_object().cloned().unwrap();
    let pod = |phase: &str| {
        decoded(json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "alloc", "namespace": "evictlab-1"},
            "spec": {"containers": [{"name": "el1", "image": "agnhost:2.52"}]},
            "status": {"phase": phase},
        }))
    };
    Observations {
        case_name: "sidecars-are-named".to_owned(),
        kubelet_version: NEW.to_owned(),
        node: "el-worker2".to_owned(),
        cgroup: Some(evictlab_rules::CgroupVersion::V1),
        kubelet_config_overrides: map(json!({"evictionHard": {"memory.available": "23377Mi"}})),
        configure_seconds: 0.76,
        seconds_to_outcome: Some(7.502170085906982),
        pods_created: vec![pod("Pending"), pod("Pending")],
        pods_final: vec![pod("Failed"), pod("RunningCase")],
        events: vec![decoded(json!({"kind": "Event", "reason": "Evicted", "message": MESSAGE, "count": 1, "eventTime": null}))],
        node_status: decoded(json!({"conditions": [{"type": "MemoryPressure", "status": "True"}], "taints": []})),
        summary_before: decoded(json!({"node": {"memory": {"availableBytes": 25_162_661_888_u64}}})),
        samples: [0.0, 0.87]
            .map(|t| json!({"t": t, "node": {"memory": {"availableBytes": 1}, "fs": {}, "rlimit": {}}, "pods": []}))
            .iter()
            .collect(),
        kubelet_log: vec!["I1121 00:47:45.328219 eviction_manager.go:616] \"pod is evicted successfully\"".to_owned()],
        configz: decoded(json!({"kubeletconfig": {"evictionPressureTransitionPeriod": "1s"}})),
        evictions_counted: BTreeMap::from([("memory.available".to_owned(), 1)]),
        api_rejection: Some(decoded(json!({"kind": "Status", "code": 422, "reason": "Invalid"}))),
        ..Observations::default()
    }
}
