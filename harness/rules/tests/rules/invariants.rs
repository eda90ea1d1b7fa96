//! Each invariant can fail: a change of a recorded eviction violates the matching invariant.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use evictlab_rules::invariant::{EventEvidence, Invariant, InvariantOutcome, check};
use evictlab_rules::pod::Pod;
use evictlab_rules::summary::Sample;
use evictlab_rules::threshold::{ThresholdConfig, parse_threshold_config};
use evictlab_rules::{KubeletVersion, event_time, evicted_events};
use serde_json::{Value, from_value, json};

/// Returns the invariants that the first eviction of a recording violates after tampering.
fn violated(recording: &str, tamper: impl Fn(&mut Value)) -> Vec<Invariant> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../rules/recordings")
        .join(recording)
        .with_extension("json");
    let mut recording: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    tamper(&mut recording);
    let version: KubeletVersion = from_value(recording["kubeletVersion"].clone()).unwrap();
    let config: ThresholdConfig = from_value(recording["kubeletConfigOverrides"].clone()).unwrap();
    let samples: Vec<Sample> = from_value(recording["samples"].clone()).unwrap();
    let all_events = recording["events"].as_array().unwrap();
    let events = evicted_events(all_events);
    let pod_json = &recording["podsFinal"][0];
    let conditions = pod_json["status"]["conditions"].as_array().unwrap();
    let condition = conditions.iter().find(|condition| condition["type"] == "DisruptionTarget");
    let findings = check(&EventEvidence {
        version: &version,
        pod: &from_value::<Pod>(pod_json.clone()).unwrap(),
        event: &events[0],
        events: &events,
        status: pod_json["status"]["message"].as_str(),
        condition: condition.map(|condition| condition["message"].as_str().unwrap()),
        exceeded_grace: all_events
            .iter()
            .find(|event| event["reason"] == "ExceededGracePeriod")
            .and_then(event_time),
        thresholds: &parse_threshold_config(&config).unwrap(),
        samples: &samples,
    });
    let mut names: Vec<_> = findings
        .iter()
        .filter(|f| f.outcome == InvariantOutcome::Violated)
        .map(|finding| finding.invariant)
        .collect();
    names.dedup();
    names
}

/// Replaces text in the whole recording: in event, status, condition and annotations.
fn replace_all(from: &'static str, to: &'static str) -> impl Fn(&mut Value) {
    move |recording| {
        let text = recording.to_string();
        assert!(text.contains(from), "{from}");
        *recording = serde_json::from_str(&text.replace(from, to)).unwrap();
    }
}

/// Replaces a value in the first Evicted event (`list` is `events`) or in the first pod
/// (`podsFinal`).
fn set(list: &'static str, path: &'static str, value: impl Into<Value>) -> impl Fn(&mut Value) {
    let value = value.into();
    move |recording| {
        let mut objects = recording[list].as_array_mut().unwrap().iter_mut();
        let object = objects.find(|object| list != "events" || object["reason"] == "Evicted").unwrap();
        *object.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value.clone();
    }
}

const SIDECARS: &str = "v1.32.13/sidecars";

/// A description, a recording, a change of it, and the invariants that the changed recording
/// violates.
type Row = (&'static str, &'static str, Box<dyn Fn(&mut Value)>, &'static [Invariant]);

#[test]
fn recorded_eviction_violates_nothing() {
    assert_eq!(violated(SIDECARS, |_| ()), []);
}

#[test]
fn minimum_reclaim_keeps_a_threshold_met() {
    let with_reclaim = |reclaim: &'static str| {
        violated(SIDECARS, move |recording| {
            replace_all("available: 23968152Ki", "available: 23506Mi")(recording);
            recording["kubeletConfigOverrides"]["evictionMinimumReclaim"] =
                json!({"memory.available": reclaim});
        })
    };
    assert_eq!(with_reclaim("100Mi"), []);
    assert_eq!(with_reclaim("99Mi"), [Invariant::AvailableIsBelowTheThreshold]);
}

/// Returns the names of all invariants, from the error about an unknown one.
fn catalogue() -> BTreeSet<String> {
    let error = from_value::<Invariant>(json!("?")).unwrap_err().to_string();
    error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

/// Changes of the message and of its copies in the pod.
fn messages() -> Vec<Row> {
    use Invariant::*;
    vec![
        ("an unknown sentence", SIDECARS, Box::new(replace_all("was using", "used")), &[MessageIsKnown]),
        (
            "another status",
            SIDECARS,
            Box::new(set("podsFinal", "/status/message", "The node was low on resource: memory. ")),
            &[StatusRepeatsAnEvent, ConditionRepeatsTheStatus],
        ),
        (
            "another condition",
            SIDECARS,
            Box::new(set(
                "podsFinal",
                "/status/conditions/0/message",
                "The node was low on resource: memory. ",
            )),
            &[ConditionRepeatsTheStatus],
        ),
    ]
}

/// Changes of the annotations.
fn annotations() -> Vec<Row> {
    use Invariant::*;
    vec![
        (
            "annotations in another order",
            SIDECARS,
            Box::new(replace_all("el1,el2,el3,el-sidecar1", "el2,el1,el3,el-sidecar1")),
            &[AnnotationsMatchTheMessage],
        ),
        (
            "a list with a missing entry",
            SIDECARS,
            Box::new(replace_all("304Ki,304Ki,288Ki,519072Ki", "304Ki,304Ki,519072Ki")),
            &[AnnotationsMatchTheMessage],
        ),
        (
            "a starved resource other than the message's",
            SIDECARS,
            Box::new(replace_all("\"starved_resource\":\"memory\"", "\"starved_resource\":\"pids\"")),
            &[AnnotationsMatchTheMessage],
        ),
    ]
}

/// Changes of the named containers and of their requests.
fn offenders() -> Vec<Row> {
    use Invariant::*;
    let el1 = "Container el1 was using 304Ki, request is 0, has larger consumption of memory. ";
    vec![
        (
            "a sidecar named before 1.32",
            SIDECARS,
            Box::new(replace_all("v1.32.13", "v1.31.14")),
            &[OffendersAreCandidates],
        ),
        (
            "a named container within its request",
            SIDECARS,
            Box::new(replace_all("304Ki, request is 0", "304Ki, request is 1Mi")),
            &[UsageExceedsRequest, RequestMatchesSpec],
        ),
        (
            "a request that is not the pod's",
            SIDECARS,
            Box::new(replace_all("304Ki, request is 0", "304Ki, request is 1Ki")),
            &[RequestMatchesSpec],
        ),
        (
            "a container left out",
            SIDECARS,
            Box::new(move |recording: &mut Value| {
                replace_all(el1, "")(recording);
                replace_all("el1,el2,el3,", "el2,el3,")(recording);
                replace_all("304Ki,304Ki,", "304Ki,")(recording);
            }),
            &[OffendersAreComplete],
        ),
    ]
}

/// Changes of the threshold and of usages.
fn amounts() -> Vec<Row> {
    use Invariant::*;
    vec![
        (
            "an available amount above the threshold",
            SIDECARS,
            Box::new(replace_all("available: 23968152Ki", "available: 23407Mi")),
            &[AvailableIsBelowTheThreshold],
        ),
        (
            "another threshold",
            SIDECARS,
            Box::new(replace_all("Threshold quantity: 23407Mi", "Threshold quantity: 23408Mi")),
            &[ThresholdIsConfigured],
        ),
        (
            "a usage greater than the node's memory",
            SIDECARS,
            Box::new(replace_all("519072Ki", "519072Gi")),
            &[UsageIsInTheSummary],
        ),
        (
            "a usage other than the cached one",
            SIDECARS,
            Box::new(|recording: &mut Value| {
                replace_all("el1 was using 304Ki", "el1 was using 305Ki")(recording);
                replace_all("usage\":\"304Ki,", "usage\":\"305Ki,")(recording);
                for sample in recording["samples"].as_array_mut().unwrap() {
                    for container in sample
                        .pointer_mut("/pods/0/containers")
                        .and_then(Value::as_array_mut)
                        .into_iter()
                        .flatten()
                    {
                        container["memory"]["time"] = "2026-11-21T00:44:50Z".into();
                    }
                }
            }),
            &[UsageIsInTheSummary],
        ),
    ]
}

/// Changes of constant usages, of the print of amounts, and of the sentence about the pod.
fn prints() -> Vec<Row> {
    use Invariant::*;
    vec![
        (
            "another usage of a container that did not change",
            SIDECARS,
            Box::new(|recording: &mut Value| {
                replace_all("el1 was using 304Ki", "el1 was using 305Ki")(recording);
                replace_all("usage\":\"304Ki,", "usage\":\"305Ki,")(recording);
                for sample in recording["samples"].as_array_mut().unwrap() {
                    let polled = sample.pointer("/node/rlimit/time").cloned();
                    if let Some(el1) = sample.pointer_mut("/pods/0/containers/0/memory") {
                        el1["time"] = polled.unwrap();
                    }
                }
            }),
            &[UsageIsInTheSummary],
        ),
        (
            "an available amount in bytes",
            SIDECARS,
            Box::new(replace_all("available: 23968152Ki", "available: 24543387648")),
            &[AmountsAreCanonical],
        ),
        ("usages in bytes", SIDECARS, Box::new(replace_all("304Ki", "311296")), &[AmountsAreCanonical]),
        (
            "a pod sentence before 1.34",
            "v1.36.2/pod-level",
            Box::new(replace_all("v1.36.2", "v1.33.1")),
            &[PodSentenceFollowsTheVersion],
        ),
    ]
}

/// Changes of evictions for a limit.
fn without_node_pressure() -> Vec<Row> {
    use Invariant::*;
    vec![
        (
            "a limit that is not the pod's",
            "v1.32.13/container-own-limit",
            Box::new(replace_all("limit \\\"20Mi\\\"", "limit \\\"21Mi\\\"")),
            &[LimitMatchesSpec],
        ),
        (
            "annotations on an eviction for a limit",
            "v1.32.13/container-own-limit",
            Box::new(set("events", "/metadata", json!({"annotations": {"starved_resource": "memory"}}))),
            &[NoPressureNoAnnotations],
        ),
        (
            "a condition on an eviction for a limit",
            "v1.32.13/container-own-limit",
            Box::new(|recording: &mut Value| {
                let status = &mut recording["podsFinal"][0]["status"];
                let condition = json!({"type": "DisruptionTarget", "message": status["message"]});
                status["conditions"].as_array_mut().unwrap().push(condition);
            }),
            &[NoPressureNoAnnotations],
        ),
        (
            "a report that the kill took too long, at once",
            "v1.32.13/container-own-limit",
            Box::new(|recording: &mut Value| {
                let events = recording["events"].as_array_mut().unwrap();
                let mut event = events.iter().find(|event| event["reason"] == "Evicted").unwrap().clone();
                event["reason"] = "ExceededGracePeriod".into();
                events.push(event);
            }),
            &[KillIsAwaited],
        ),
    ]
}

#[test]
fn tampering_violates_the_matching_invariant() {
    let mut all = BTreeSet::new();
    let rows = [messages(), annotations(), offenders(), amounts(), prints(), without_node_pressure()];
    for (about, recording, tamper, expected) in rows.into_iter().flatten() {
        assert_eq!(violated(recording, tamper), expected, "{about}");
        all.extend(expected.iter().map(ToString::to_string));
    }
    assert_eq!(all, catalogue());
}
