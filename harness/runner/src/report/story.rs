//! A run told by hand: the stream that the reports' tests share.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{CaseId, Planned, RunEvent, What};
use crate::judge::{Check, Doubt, Judgement, Phase, Testimony, Verdict};
use crate::observe::Observations;

const OLD: &str = "v1.31.14";
const NEW: &str = "v1.32.13";
const CLUSTER: &str = "evictlab-7f3a";
const MESSAGE: &str = "The node was low on resource: memory. Threshold quantity: 23377Mi, available: 23932160Ki. \
    Container el-sidecar1 was using 212Mi, request is 0, has larger consumption of memory. ";

/// An event so many seconds after the start.
pub fn event(seconds: f64, what: What) -> RunEvent {
    let start: Timestamp = "2026-11-21T09:30:12Z".parse().unwrap();
    RunEvent { at: start + SignedDuration::from_secs_f64(seconds), what }
}

pub fn id(suite: &str, case: &str, kubelet: &str, attempt: u32) -> CaseId {
    CaseId { suite: suite.to_owned(), case: case.to_owned(), kubelet: kubelet.to_owned(), attempt }
}

pub fn planned(suite: &str, case: &str) -> Planned {
    Planned {
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
pub fn run_started(kubelets: &[&str], cases: &[&str]) -> What {
    What::RunStarted {
        run: "7f3a".to_owned(),
        evictlab: "0.1.0".to_owned(),
        backend: "kind".to_owned(),
        model: None,
        kubelets: kubelets.iter().map(|&kubelet| kubelet.to_owned()).collect(),
        cases: cases.iter().map(|case| planned("message", case)).collect(),
    }
}

pub fn case_ended(suite: &str, case: &str, kubelet: &str, attempt: u32, verdict: Verdict, why: &str) -> What {
    let judgement = Arc::new(Judgement::without_evidence(verdict, why));
    What::CaseEnded {
        id: id(suite, case, kubelet, attempt),
        node: None,
        seconds: 8.24,
        judgement,
        evidence: None,
    }
}

/// A run of cases of suite `message` on one kubelet, held against a baseline: what it expects, and what was seen, why `so it was`.
pub fn against_a_baseline(expected: &[(&str, Verdict)], seen: &[Verdict]) -> Vec<RunEvent> {
    let names: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
    let mut started = run_started(&[NEW], &names);
    let What::RunStarted { cases, .. } = &mut started else { unreachable!("it started") };
    for (planned, (_, verdict)) in cases.iter_mut().zip(expected) {
        planned.baseline.insert(NEW.to_owned(), *verdict);
    }
    let ended = names.iter().zip(seen);
    let ended = ended.map(|(name, verdict)| case_ended("message", name, NEW, 1, *verdict, "so it was"));
    std::iter::once(started).chain(ended).map(|what| event(0.0, what)).collect()
}

fn ended(case: &str, kubelet: &str, node: &str, judgement: Judgement) -> What {
    What::CaseEnded {
        id: id("message", case, kubelet, 1),
        node: (!node.is_empty()).then(|| node.to_owned()),
        seconds: 8.24,
        judgement: Arc::new(judgement),
        evidence: Some(Arc::new(evidence())),
    }
}

fn testimony() -> Testimony {
    let annotations = json!({"starved_resource": "memory", "offending_containers": "el-sidecar1"});
    Testimony {
        pod: "alloc".to_owned(),
        events: vec![MESSAGE.to_owned(), MESSAGE.replace("212Mi", "214Mi")],
        status: Some(MESSAGE.to_owned()),
        condition: None,
        annotations: annotations.as_object().cloned(),
    }
}

fn failed() -> Judgement {
    let check = |name: &str, holds, expected: &str, observed: &str| Check {
        name: name.to_owned(),
        holds,
        expected: expected.to_owned(),
        observed: observed.to_owned(),
    };
    Judgement {
        checks: vec![
            check("message names", false, "el-sidecar1, el1", "el-sidecar1"),
            check("resource", true, "memory", "memory"),
        ],
        testimony: vec![testimony()],
        diff: " resource: memory\n containers:\n   el-sidecar1: {request: \"0\"}\n-  el1: {request: \"0\"}\n"
            .to_owned(),
        ..Judgement::without_evidence(
            Verdict::Failed,
            "the message does not name el1, which is over its request",
        )
    }
}

fn known_bug(verdict: Verdict, why: &str) -> Judgement {
    let known_bug = Some("kubernetes/kubernetes#124938".to_owned());
    Judgement { known_bug, testimony: vec![testimony()], ..Judgement::without_evidence(verdict, why) }
}

/// Two kubelets, six cases, every verdict.
pub fn whole() -> Vec<RunEvent> {
    let cases = [
        "sidecars-are-named",
        "requests-decide",
        "soft-threshold-message",
        "pod-level-request",
        "nobody-offends",
        "three-witnesses-agree",
    ];
    let [sidecars, requests, soft, pod_level, nobody, three] = cases;
    let cluster = CLUSTER.to_owned();
    let step = |text: &str| What::ClusterStep { cluster: cluster.clone(), text: text.to_owned() };
    let case_started = |case, kubelet, node: &str| What::CaseStarted {
        id: id("message", case, kubelet, 1),
        node: node.to_owned(),
    };
    let case_step = |case, kubelet, phase, text: &str| What::CaseStep {
        id: id("message", case, kubelet, 1),
        phase,
        text: text.to_owned(),
    };
    let progress = |case, kubelet, text: &str| What::CaseProgress {
        id: id("message", case, kubelet, 1),
        phase: Phase::Observe,
        text: text.to_owned(),
    };
    let plain = Judgement::without_evidence;
    let doubt = Judgement {
        doubt: Some(Doubt::KilledForMemory),
        ..plain(Verdict::Inconclusive, "el1 was killed for memory before the kubelet evicted its pod")
    };
    let lost = Judgement {
        phase: Some(Phase::Tune),
        ..plain(Verdict::Error, "the kubelet did not come back after its restart\nits log ends with: exit 1")
    };
    let kubelets = vec![OLD.to_owned(), NEW.to_owned()];
    let nodes = vec![("el-worker".to_owned(), OLD.to_owned()), ("el-worker2".to_owned(), NEW.to_owned())];
    [
        (0.0, run_started(&[OLD, NEW], &cases)),
        (0.1, What::ClusterStarted { cluster: cluster.clone(), kubelets, reused: false }),
        (0.2, step("kind create cluster")),
        (28.0, step("agnhost:2.52 is in 3 nodes")),
        (30.2, What::ClusterReady { cluster: cluster.clone(), seconds: 30.1, nodes }),
        (30.3, ended(pod_level, OLD, "", plain(Verdict::Skipped, "asks for a kubelet >=1.34"))),
        (30.4, case_started(sidecars, OLD, "el-worker")),
        (30.5, case_started(sidecars, NEW, "el-worker2")),
        (30.6, case_step(sidecars, OLD, Phase::Tune, "memory.available<23377Mi")),
        (31.6, case_step(sidecars, OLD, Phase::Observe, "3 containers run")),
        (32.0, progress(sidecars, OLD, "el-sidecar1 at 112Mi, 144Mi to go")),
        (32.5, progress(sidecars, OLD, "el-sidecar1 at 152Mi, 104Mi to go")),
        (37.1, progress(sidecars, OLD, "el-sidecar1 at 212Mi, 44Mi to go")),
        (
            38.6,
            ended(sidecars, OLD, "el-worker", known_bug(Verdict::Reproduced, "the message names el1 alone")),
        ),
        (
            38.9,
            ended(
                sidecars,
                NEW,
                "el-worker2",
                plain(Verdict::Passed, "the message names all three containers"),
            ),
        ),
        (39.0, case_started(requests, NEW, "el-worker2")),
        (47.2, ended(requests, NEW, "el-worker2", failed())),
        (
            47.3,
            ended(requests, OLD, "el-worker", known_bug(Verdict::Fixed, "the message names the sidecars")),
        ),
        (48.0, ended(soft, OLD, "el-worker", doubt)),
        (48.1, ended(soft, NEW, "", lost)),
        (48.2, ended(pod_level, NEW, "", plain(Verdict::Skipped, "asks for a kubelet >=1.34"))),
        (48.3, case_started(nobody, OLD, "el-worker")),
        (48.4, What::Interrupted { stage: 1 }),
        (48.9, ended(nobody, OLD, "el-worker", plain(Verdict::Inconclusive, "interrupted"))),
        (49.0, ended(nobody, NEW, "el-worker2", plain(Verdict::Passed, "both lists are there and empty"))),
        (49.1, ended(three, NEW, "el-worker2", plain(Verdict::Passed, "they agree"))),
        (52.0, What::ClusterDeleted { cluster: CLUSTER.to_owned(), seconds: 2.5, kept: None, error: None }),
        (52.1, What::RunEnded { exit_code: 130, seconds: 52.1 }),
    ]
    .into_iter()
    .map(|(seconds, what)| event(seconds, what))
    .collect()
}

/// What a kubelet answered, in short, with every field there.
pub fn evidence() -> Observations {
    let map = |value: Value| value.as_object().cloned().unwrap();
    let pod = |phase: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "alloc", "namespace": "evictlab-1"},
            "spec": {"containers": [{"name": "el1", "image": "agnhost:2.52"}]},
            "status": {"phase": phase},
        })
    };
    Observations {
        scenario: "sidecars-are-named".to_owned(),
        kubelet_version: NEW.to_owned(),
        node: "el-worker2".to_owned(),
        cgroup: "v1".to_owned(),
        kubelet_config_overrides: map(json!({"evictionHard": {"memory.available": "23377Mi"}})),
        tune_seconds: 0.76,
        seconds_to_outcome: Some(7.502170085906982),
        pods_created: vec![pod("Pending"), pod("Pending")],
        pods_final: vec![pod("Failed"), pod("Running")],
        events: vec![json!({"kind": "Event", "reason": "Evicted", "message": MESSAGE, "count": 1, "eventTime": null})],
        node_status: json!({"conditions": [{"type": "MemoryPressure", "status": "True"}], "taints": []}),
        summary_before: json!({"node": {"memory": {"availableBytes": 25_162_661_888_u64}}}),
        samples: [0.0, 0.87]
            .map(|t| json!({"t": t, "node": {"memory": {"availableBytes": 1}, "fs": {}, "rlimit": {}}, "pods": []}))
            .iter()
            .collect(),
        kubelet_log: vec!["I1121 00:47:45.328219 eviction_manager.go:616] \"pod is evicted successfully\"".to_owned()],
        configz: json!({"kubeletconfig": {"evictionPressureTransitionPeriod": "1s"}}),
        evictions_counted: map(json!({"memory.available": 1})),
        refused: Some(json!({"kind": "Status", "code": 422, "reason": "Invalid"})),
        ..Observations::default()
    }
}
