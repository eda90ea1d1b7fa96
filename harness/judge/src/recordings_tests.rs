//! Verdicts on recordings of real kubelets, unchanged and with changed evidence.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::case_result::CaseResult;
use crate::decide::judge;
use crate::verdict::{InconclusiveReason, Verdict};
use evictlab_case::Case;
use evictlab_evidence::Observations;

/// Recordings of the crate `evictlab-rules`.
const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rules/recordings");

const SIDECARS: &str = "
name: sidecars
about: Sidecars are named.
pressure: {signal: memory.available}
pods: [{metadata: {name: sidecars}}]
expect:
  evicted: [sidecars]
  message:
    resource: memory
    containers:
      el-sidecar1: {request: '0', usage: '>=200Mi'}
      el-sidecar2: {request: '0'}
      el-sidecar3: {request: '0'}
      el1: {request: '0'}
      el2: {request: '0'}
      el3: {request: '0'}
known-bugs:
  - kubelet: '<1.32'
    upstream: kubernetes/kubernetes#124938
    about: Sidecars are left out.
    message: {containers: {el1: {request: '0'}, el2: {request: '0'}, el3: {request: '0'}}}
";

fn recording(name: &str) -> Value {
    let path = Path::new(RECORDINGS).join(name).with_extension("json");
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap()
}

fn judge_recording(name: &str, case: &str, tamper: &dyn Fn(&mut Value)) -> CaseResult {
    let mut recording = recording(name);
    let (kubelet, _) = name.split_once('/').unwrap();
    tamper(&mut recording);
    let case: Case = serde_saphyr::from_str(case).unwrap_or_else(|error| panic!("{error}: {case}"));
    let seen: Observations = serde_json::from_value(recording).unwrap();
    judge(&case, &kubelet.parse().unwrap(), &seen)
}

/// A case with one pod, named like its recording.
fn case(name: &str, rest: &str) -> String {
    format!("name: c\nabout: a\npods: [{{metadata: {{name: {name}}}}}]\n{rest}")
}

fn replaced(recording: &mut Value, from: &str, to: &str) {
    let text = recording.to_string();
    assert!(text.contains(from), "{from}");
    *recording = serde_json::from_str(&text.replace(from, to)).unwrap();
}

fn without_events(recording: &mut Value) {
    recording["events"].as_array_mut().unwrap().retain(|event| event["reason"] != "Evicted");
}

/// Removes every trace of an eviction.
fn without_eviction(recording: &mut Value) {
    without_events(recording);
    recording["podsFinal"][0]["status"] = json!({"phase": "Running", "conditions": [],
        "containerStatuses": [{"name": "el1", "state": {"running": {"startedAt": "2026-11-21T00:44:46Z"}}}]});
}

fn ignore(_: &mut Value) {}

/// Lets el1 wait for its next start since this end.
fn waits_since(seen: &mut Value, end: &str) {
    let status = &mut seen["podsFinal"][0]["status"]["containerStatuses"][0];
    status["state"] = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    status["lastState"] =
        json!({"terminated": {"reason": "Error", "exitCode": 1, "startedAt": end, "finishedAt": end}});
}

#[test]
fn a_patched_kubelet_may_behave_like_a_later_one() {
    let case: Case = serde_saphyr::from_str(SIDECARS).unwrap();
    let patched = |name: &str| {
        let mut recording = recording(name);
        recording["kubeletVersion"] = json!("v1.31.14-1+dirty");
        let seen: Observations = serde_json::from_value(recording).unwrap();
        judge(&case, &"v1.31.14-1+dirty".parse().unwrap(), &seen)
    };
    let result = patched("v1.32.13/sidecars");
    assert_eq!(result.verdict, Verdict::Fixed, "{}", result.why);
    assert!(result.checks.iter().all(|check| check.holds), "{:?}", result.checks);
    assert_eq!(patched("v1.31.14/sidecars").verdict, Verdict::Reproduced);
}

#[test]
fn judges_unchanged_recordings() {
    let pressure = "pressure: {signal: memory.available}\n";
    let containers = |pod: &str, list: &str| {
        case(
            pod,
            &format!(
                "{pressure}expect:\n  evicted: [{pod}]\n  message: {{resource: memory, containers: {list}}}"
            ),
        )
    };
    let before_1_32 =
        "known-bugs: [{kubelet: '<1.32', upstream: kubernetes/kubernetes#124938, message: {containers: {}}}]";
    let init = containers("init-stress", "{el-init1: {usage: '>=100Mi'}}") + "\n" + before_1_32;
    let limit = |pod: &str, kind: &str, more: &str| {
        case(pod, &format!("expect:\n  evicted: [{pod}]\n  message: {{{kind}}}\n{more}"))
    };
    let own = limit(
        "container-own-limit",
        "container-limit: {container: el1, limit: 20Mi}",
        "  witnesses: [event, status]\n  annotations: absent\n  disruption-target: absent",
    );
    let sidecar_own = limit(
        "sidecar-own-limit",
        "container-limit: {container: side, limit: 20Mi}",
        "known-bugs: [{kubelet: '<1.37', upstream: kubernetes/kubernetes#138371, evicted: []}]",
    );
    let grace = limit("limit-grace", "pod-limit: 20Mi", "  killed-within: 10s");
    let grace_bug = limit(
        "limit-grace",
        "pod-limit: 20Mi",
        "  killed-within: 1ms\nknown-bugs: [{kubelet: '>=1.26', about: Killed late., killed-after: 2s}]",
    );
    let volume = limit("emptydir-limit", "emptydir-limit: {volume: data, limit: 20Mi}", "");
    let ranking = format!(
        "name: c\nabout: a\n{pressure}pods:\n{}expect: {{evicted: [rank-burstable-over, rank-besteffort], \
         message: {{containers: {{a: {{request: 100Mi, usage: '>=300Mi'}}}}}}}}",
        ["besteffort", "burstable-over", "burstable-under", "guaranteed"]
            .map(|pod| format!("  - metadata: {{name: rank-{pod}}}\n"))
            .concat()
    );
    let pod_level =
        containers("pod-level", "{el1: {}, el2: {}, side: {}}, pod: {request: 200Mi, usage: '>=500Mi'}");
    let pod_level_bug = containers("pod-level", "{el1: {}, el2: {}, side: {}}")
        + "\nknown-bugs: [{kubelet: '>=1.34', about: Not compared., message: {pod: {request: 200Mi}}}]";
    let soft = containers("soft", "{el1: {request: '0'}, el-sidecar1: {usage: '>=500Mi'}}");
    let listed = case("sidecar-own-limit", "expect: {summary: {sidecar-own-limit: [side, el1]}}");
    let ephemeral = containers("ephemeral", "{el1: {request: '0'}, late: {request: '0'}}");
    let emptydir = case(
        "emptydir-message",
        "expect:\n  evicted: [emptydir-message]\n  message: {containers: {el1: {usage: '>=300Mi'}, el2: {}}}\nknown-bugs:\n  - {kubelet: '>=1.26', \
         upstream: kubernetes/kubernetes#130439, message: {containers: {el1: {usage: '<=1Mi'}, el2: {}}}}",
    );
    let sidecars = SIDECARS.to_owned();
    let fixed = SIDECARS.replace("<1.32", "<1.33");
    use Verdict::{Fixed, Passed, Reproduced};
    let rows = [
        (
            "v1.31.14/sidecars",
            &sidecars,
            Reproduced,
            "Sidecars are left out. Observed: sidecars was evicted, and the event names",
        ),
        ("v1.32.13/sidecars", &sidecars, Passed, "el-sidecar1, el-sidecar2, el-sidecar3"),
        ("v1.36.2/sidecars", &sidecars, Passed, "el-sidecar1, el-sidecar2, el-sidecar3"),
        ("v1.32.13/sidecars", &fixed, Fixed, "kubernetes/kubernetes#124938 should have shown and did not"),
        ("v1.31.14/init-stress", &init, Reproduced, "names no container"),
        ("v1.32.13/init-stress", &init, Passed, "names el-init1"),
        ("v1.36.2/init-stress", &init, Passed, "names el-init1"),
        ("v1.32.13/container-own-limit", &own, Passed, "Container el1 exceeded"),
        ("v1.36.2/container-own-limit", &own, Passed, "Container el1 exceeded"),
        ("v1.31.14/sidecar-own-limit", &sidecar_own, Reproduced, "It shows as stated."),
        ("v1.32.13/sidecar-own-limit", &sidecar_own, Reproduced, "It shows as stated."),
        ("v1.31.14/limit-grace", &grace, Passed, "Pod ephemeral local storage"),
        ("v1.32.13/limit-grace", &grace_bug, Reproduced, "Killed late."),
        ("v1.36.2/emptydir-limit", &volume, Passed, "\"data\""),
        ("v1.31.14/ranking", &ranking, Passed, "rank-burstable-over was evicted"),
        ("v1.36.2/pod-level", &pod_level, Passed, "names the pod, el1"),
        ("v1.36.2/pod-level", &pod_level_bug, Reproduced, "Not compared."),
        ("v1.32.13/soft", &soft, Passed, "el-sidecar1, el1"),
        ("v1.32.13/sidecar-own-limit", &listed, Passed, "the expected outcome was observed"),
        ("v1.32.13/ephemeral", &ephemeral, Passed, "el1, late"),
        ("v1.36.2/emptydir-message", &emptydir, Reproduced, "el1, el2"),
    ];
    for (name, case, verdict, why) in rows {
        let result = judge_recording(name, case, &ignore);
        assert_eq!(result.verdict, verdict, "{name}: {result:#?}");
        assert!(result.why.contains(why), "{name}: {}", result.why);
        assert!(result.checks.iter().all(|check| check.holds), "{name}: {result:#?}");
        assert_eq!(result.known_bug.is_some(), verdict != Passed, "{name}");
        if verdict != Reproduced {
            assert_eq!(result.diff, "", "{name}");
        }
    }
}

type Tamper<'a> = Box<dyn Fn(&mut Value) + 'a>;

#[test]
fn changed_evidence_fails_with_the_cause() {
    let another = SIDECARS.replace("el-sidecar3: {request: '0'}", "el-sidecar3: {request: 5Mi}");
    let greater = SIDECARS.replace(">=200Mi", ">=20Gi");
    let less = SIDECARS.replacen("      el2: {request: '0'}\n", "", 1);
    let (without_bug, _) = SIDECARS.split_once("known-bugs").unwrap();
    let survives = SIDECARS.replace("evicted: [sidecars]", "evicted: []");
    let condition = format!("{without_bug}  witnesses: [event, status, condition]\n");
    let absent = format!("{without_bug}  annotations: absent\n");
    let late = format!("{without_bug}  killed-within: 1s\n");
    let rows: [(&str, &str, &str, Tamper<'_>, &str); 13] = [
        (
            "a container restarts after the eviction",
            "v1.32.13/sidecars",
            &another,
            Box::new(|seen| waits_since(seen, "2026-11-21T00:45:05Z")),
            "message: container el-sidecar3: expected usage any, request 5Mi, observed usage 288Ki, request 0",
        ),
        (
            "another request",
            "v1.32.13/sidecars",
            &another,
            Box::new(ignore),
            "message: container el-sidecar3: expected usage any, request 5Mi, observed usage 288Ki, request 0",
        ),
        (
            "a greater usage",
            "v1.36.2/sidecars",
            &greater,
            Box::new(ignore),
            "message: container el-sidecar1: expected usage >=20Gi, request 0, observed usage 620728Ki, request 0",
        ),
        (
            "one named too many",
            "v1.32.13/sidecars",
            &less,
            Box::new(ignore),
            "message: container el2: expected not in the message, observed usage 304Ki, request 0",
        ),
        (
            "an unknown bug",
            "v1.31.14/sidecars",
            without_bug,
            Box::new(ignore),
            "message: container el-sidecar1: expected usage >=200Mi, request 0, observed not in the message (and 2 more)",
        ),
        (
            "neither the expectation nor the bug",
            "v1.31.14/sidecars",
            &SIDECARS.replace("{el1: {request: '0'}, ", "{"),
            Box::new(ignore),
            "kubernetes/kubernetes#124938 did not show either: message: container el-sidecar1: ",
        ),
        (
            "evicted against expectation",
            "v1.32.13/sidecars",
            &survives,
            Box::new(ignore),
            "evicted pods: expected none; not evicted: sidecars, observed evicted: sidecars",
        ),
        (
            "annotations in another order",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(|seen| replaced(seen, "\"el1,el2,", "\"el2,el1,")),
            "annotations-match-the-message (sidecars): expected ",
        ),
        (
            "a status that says something else",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(|seen| {
                seen["podsFinal"][0]["status"]["message"] = "The node was low on resource: memory. ".into()
            }),
            "status-repeats-an-event (sidecars): expected ",
        ),
        (
            "no condition",
            "v1.32.13/sidecars",
            &condition,
            Box::new(|seen| replaced(seen, "\"DisruptionTarget\"", "\"Other\"")),
            "condition of sidecars: expected present, observed absent",
        ),
        (
            "annotations where there should be none",
            "v1.32.13/sidecars",
            &absent,
            Box::new(ignore),
            "annotations of sidecars: expected absent, observed offending_containers, ",
        ),
        (
            "killed late",
            "v1.32.13/sidecars",
            &late,
            Box::new(ignore),
            "sidecars is killed: expected within 1s, observed 2.3 to 3.3 s",
        ),
        (
            "no message at all",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(|seen| replaced(seen, "The node was low", "The node got low")),
            "message-is-known (sidecars): expected a message of kubelets 1.26 to 1.37, observed ",
        ),
    ];
    for (about, name, case, tamper, why) in rows {
        let result = judge_recording(name, case, &tamper);
        assert_eq!(result.verdict, Verdict::Failed, "{about}: {result:#?}");
        assert!(result.why.starts_with(why), "{about}: {}", result.why);
        assert!(result.checks.iter().any(|check| !check.holds), "{about}");
    }
}

#[test]
fn insufficient_evidence_is_inconclusive() {
    let another = SIDECARS.replace("el-sidecar3: {request: '0'}", "el-sidecar3: {request: 5Mi}");
    let (without_bug, _) = SIDECARS.split_once("known-bugs").unwrap();
    let event = format!("{without_bug}  witnesses: [event, status]\n");
    let annotations = format!("{without_bug}  annotations: present\n");
    let killed = format!("{without_bug}  killed-within: 10s\n");
    let survives = SIDECARS.replace("evicted: [sidecars]", "evicted: []");
    let listed = case("sidecar-own-limit", "expect: {summary: {sidecar-own-limit: [side, el1]}}");
    let out_of_memory = |at: &'static str, reason: &'static str| {
        move |seen: &mut Value| {
            without_eviction(seen);
            seen["podsFinal"][0]["status"]["containerStatuses"][0]["state"] =
                json!({"terminated": {"reason": reason, "exitCode": 137, "finishedAt": at}});
        }
    };
    let never = |seen: &mut Value| {
        without_eviction(seen);
        seen["podsFinal"][0]["status"] = json!({"phase": "Pending", "containerStatuses": [{"name": "el1",
            "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"x\""}}}]});
    };
    let pending = |seen: &mut Value| {
        without_eviction(seen);
        seen["podsFinal"][0]["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
            "status": "False", "message": "0/1 nodes are available: 1 Insufficient memory."}]});
    };
    let rejected = |seen: &mut Value| {
        without_eviction(seen);
        seen["podsFinal"][0]["status"] = json!({"phase": "Failed", "reason": "Evicted",
            "message": "Pod was rejected: The node had condition: [MemoryPressure]. "});
    };
    let too_large = |seen: &mut Value| {
        without_eviction(seen);
        seen["podsFinal"][0]["status"] = json!({"phase": "Failed", "reason": "OutOfmemory",
            "message": "Pod was rejected: Node didn't have enough resource: memory, requested: 2, used: 0, capacity: 1"});
    };
    let killed_again = |seen: &mut Value| {
        without_eviction(seen);
        let status = &mut seen["podsFinal"][0]["status"]["containerStatuses"][0];
        status["state"] = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        status["lastState"] = json!({"terminated": {"reason": "OOMKilled", "exitCode": 137,
            "finishedAt": "2026-11-21T00:45:01Z"}});
    };
    let fails_again = |seen: &mut Value| {
        without_eviction(seen);
        let status = &mut seen["podsFinal"][0]["status"]["containerStatuses"][0];
        status["state"] = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        status["lastState"] = json!({"terminated": {"reason": "Error", "exitCode": 1,
            "startedAt": "2026-11-21T00:45:00Z", "finishedAt": "2026-11-21T00:45:01Z"}});
    };
    let not_reached = |seen: &mut Value| {
        without_eviction(seen);
        seen["kubeletConfigOverrides"]["evictionHard"]["memory.available"] = "1Gi".into();
    };
    use InconclusiveReason::*;
    let rows: [(&str, &str, &str, Tamper<'_>, InconclusiveReason, &str); 18] = [
        (
            "no event, wanted as a witness",
            "v1.32.13/sidecars",
            &event,
            Box::new(without_events),
            EventMissing,
            "the Evicted event of sidecars is missing",
        ),
        (
            "no event, annotations wanted",
            "v1.32.13/sidecars",
            &annotations,
            Box::new(without_events),
            EventMissing,
            "the Evicted event of sidecars is missing, and its annotations with it",
        ),
        (
            "no event, its time wanted",
            "v1.32.13/sidecars",
            &killed,
            Box::new(without_events),
            EventMissing,
            "when sidecars was killed is not known: its Evicted event is missing",
        ),
        (
            "no samples",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(|seen| seen["samples"] = json!([])),
            EvidenceLost,
            "the node returned no Summary",
        ),
        (
            "no samples, and the bug",
            "v1.31.14/sidecars",
            SIDECARS,
            Box::new(|seen| seen["samples"] = json!([])),
            EvidenceLost,
            "the node returned no Summary",
        ),
        (
            "no samples, a list wanted",
            "v1.32.13/sidecar-own-limit",
            &listed,
            Box::new(|seen| seen["samples"] = json!([])),
            EvidenceLost,
            "the node returned no Summary",
        ),
        (
            "killed for memory",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(out_of_memory("2026-11-21T00:45:01Z", "OOMKilled")),
            KilledBeforeEviction,
            "el1 of sidecars was killed (OOMKilled, exit code 137) at 2026-11-21T00:45:01Z, and the kubelet did not evict it",
        ),
        (
            "killed with another reason",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(out_of_memory("2026-11-21T00:45:01Z", "Error")),
            KilledBeforeEviction,
            "el1 of sidecars was killed (Error, ",
        ),
        (
            "threshold not reached",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(not_reached),
            ThresholdNotReached,
            "memory.available never fell below 1Gi: the least of 18 samples is ",
        ),
        (
            "no eviction expected, and no pressure",
            "v1.32.13/sidecars",
            &survives,
            Box::new(not_reached),
            ThresholdNotReached,
            "memory.available never fell below 1Gi",
        ),
        (
            "rejected",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(rejected),
            RejectedAtAdmission,
            "the kubelet did not admit sidecars: Pod was rejected: The node had condition: [MemoryPressure].",
        ),
        (
            "more than the node has",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(too_large),
            RejectedAtAdmission,
            "the kubelet did not admit sidecars: OutOfmemory: Pod was rejected: Node didn't have enough resource: memory",
        ),
        (
            "killed for memory and waiting for its next start",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(killed_again),
            KilledBeforeEviction,
            "el1 of sidecars was killed (OOMKilled, exit code 137)",
        ),
        (
            "never started",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(never),
            PodNeverStarted,
            "sidecars did not start: el1 is in ImagePullBackOff (Back-off pulling image \"x\")",
        ),
        (
            "fails again and again",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(fails_again),
            PodNeverStarted,
            "sidecars did not stay up: el1 is in CrashLoopBackOff",
        ),
        (
            "fails again and again until the eviction",
            "v1.32.13/sidecars",
            &another,
            Box::new(|seen| waits_since(seen, "2026-11-21T00:45:01Z")),
            PodNeverStarted,
            "sidecars did not stay up: el1 is in CrashLoopBackOff",
        ),
        (
            "never placed",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(pending),
            PodNeverStarted,
            "sidecars did not start: it is Pending, 0/1 nodes are available: 1 Insufficient memory.",
        ),
        (
            "deleted externally",
            "v1.32.13/sidecars",
            SIDECARS,
            Box::new(|seen| {
                without_events(seen);
                seen["podsFinal"] = json!([])
            }),
            EvidenceLost,
            "sidecars was deleted externally",
        ),
    ];
    for (about, name, case, tamper, reason, why) in rows {
        let result = judge_recording(name, case, &tamper);
        assert_eq!(result.verdict, Verdict::Inconclusive, "{about}: {result:#?}");
        assert_eq!(result.inconclusive_reason, Some(reason), "{about}: {}", result.why);
        assert!(result.why.starts_with(why), "{about}: {}", result.why);
    }
}

#[test]
fn late_statistics_are_inconclusive() {
    let stale = |seen: &mut Value| {
        // The first sample with the container's statistics is later than the event.
        for sample in seen["samples"].as_array_mut().unwrap() {
            if sample["node"]["rlimit"]["time"].as_str().unwrap() < "2026-11-21T00:45:03Z" {
                for container in sample
                    .pointer_mut("/pods/0/containers")
                    .and_then(Value::as_array_mut)
                    .into_iter()
                    .flatten()
                {
                    if container["name"] == "el-sidecar1" {
                        container["memory"] = Value::Null;
                    }
                }
            }
        }
        let sentence =
            "Container el-sidecar1 was using 519072Ki, request is 0, has larger consumption of memory. ";
        replaced(seen, sentence, "");
        replaced(seen, "el-sidecar1,el-sidecar2", "el-sidecar2");
        replaced(seen, "519072Ki,300Ki", "300Ki");
    };
    let result = judge_recording("v1.32.13/sidecars", SIDECARS, &stale);
    assert_eq!(result.inconclusive_reason, Some(InconclusiveReason::StaleStatistics), "{result:#?}");
    assert!(
        result.why.starts_with(
            "the kubelet's statistics of el-sidecar1 of sidecars were stale: the message omits it, the Summary showed nothing before"
        ),
        "{}",
        result.why
    );
}

#[test]
fn a_status_replaces_a_lost_event_only_in_a_failure() {
    let result = judge_recording("v1.32.13/sidecars", SIDECARS, &without_events);
    assert_eq!(result.inconclusive_reason, Some(InconclusiveReason::EventMissing), "{result:#?}");
    assert_eq!(result.why, "the Evicted event of sidecars is missing");
    let differs = |seen: &mut Value| {
        without_events(seen);
        replaced(seen, "Container el-sidecar2 was", "Container el-other was");
    };
    let result = judge_recording("v1.32.13/sidecars", SIDECARS, &differs);
    assert_eq!(result.verdict, Verdict::Failed, "{result:#?}");
}

#[test]
fn a_node_with_another_kubelet_is_an_error() {
    let claimed = |seen: &mut Value| seen["kubeletVersion"] = "v1.31.14".into();
    let result = judge_recording("v1.32.13/sidecars", SIDECARS, &claimed);
    assert_eq!(result.verdict, Verdict::Error);
    assert_eq!(result.why, "the node runs kubelet v1.31.14, expected v1.32.13");
}

#[test]
fn a_rejection_is_compared_completely() {
    let case = case(
        "sidecars",
        "ephemeral-containers: [{pod: sidecars, container: {name: late}}]\nexpect:\n  refused: {code: 422, reason: Invalid, \
         message: 'Pod \"$(POD)\" is invalid: no'}",
    );
    let refused = |message: &'static str| {
        move |seen: &mut Value| {
            without_eviction(seen);
            seen["refused"] = json!({"code": 422, "reason": "Invalid", "message": message});
        }
    };
    let verdict = |tamper: &dyn Fn(&mut Value)| judge_recording("v1.32.13/sidecars", &case, tamper).verdict;
    assert_eq!(verdict(&refused("Pod \"sidecars\" is invalid: no")), Verdict::Passed);
    assert_eq!(verdict(&refused("Pod \"sidecars\" is invalid: yes")), Verdict::Failed);
    assert_eq!(verdict(&without_eviction), Verdict::Failed);
}

#[test]
fn the_diff_lists_the_fields_of_the_message() {
    let diff = judge_recording("v1.31.14/sidecars", SIDECARS, &ignore).diff;
    let expected = "\
--- expected
+++ observed
@@ -1,8 +1,5 @@
 resource: memory
 threshold: 23392Mi, available 23951972Ki
-container el-sidecar1: usage >=200Mi, request 0
-container el-sidecar2: usage any, request 0
-container el-sidecar3: usage any, request 0
 container el1: usage 284Ki, request 0
 container el2: usage 284Ki, request 0
 container el3: usage 292Ki, request 0
";
    assert_eq!(diff, expected);
}

#[test]
fn records_each_report_of_an_eviction() {
    let result = judge_recording("v1.31.14/ranking", &case("rank-besteffort", "expect: {}"), &ignore);
    let records: Vec<_> = result
        .evictions
        .iter()
        .map(|record| {
            (
                record.pod.as_str(),
                record.events.len(),
                record.status.is_some(),
                record.condition == record.status,
            )
        })
        .collect();
    assert_eq!(records, [("rank-besteffort", 2, true, true), ("rank-burstable-over", 1, true, true)]);
    let annotations = result.evictions[0].annotations.as_ref().unwrap();
    assert_eq!(annotations["starved_resource"], "memory");
}

/// The kubelet evicted one pod twice, and the event whose message the status repeats was lost.
#[test]
fn a_lost_event_explains_a_status_that_repeats_none() {
    let case = format!(
        "name: c\nabout: a\npressure: {{signal: memory.available}}\npods:\n{}expect: {{evicted: [rank-burstable-over, \
         rank-besteffort]}}",
        ["besteffort", "burstable-over", "burstable-under", "guaranteed"]
            .map(|pod| format!("  - metadata: {{name: rank-{pod}}}\n"))
            .concat()
    );
    let lose = |counted: u64, other_condition: bool| {
        let case = case.clone();
        let tamper = move |seen: &mut Value| {
            let pods = seen["podsFinal"].as_array_mut().unwrap();
            let pod = pods.iter_mut().find(|pod| pod["metadata"]["name"] == "rank-besteffort").unwrap();
            let message = pod["status"]["message"].clone();
            if other_condition {
                pod["status"]["conditions"] = json!([]);
            }
            seen["events"].as_array_mut().unwrap().retain(|event| event["message"] != message);
            seen["evictionsCounted"] = json!({"memory.available": counted});
        };
        judge_recording("v1.31.14/ranking", &case, &tamper)
    };
    let lost = lose(3, false);
    assert_eq!(lost.inconclusive_reason, Some(InconclusiveReason::EvidenceLost), "{lost:#?}");
    assert!(lost.why.starts_with("an Evicted event of rank-besteffort was lost"), "{}", lost.why);
    assert_eq!(lose(2, false).verdict, Verdict::Failed, "as many events as evictions");
    assert_eq!(lose(3, true).verdict, Verdict::Failed, "no other witness");
}
