//! Verdicts on evidence that is incomplete, repeated, or ends early.

use serde_json::{Value, json};

use crate::case_result::CaseResult;
use crate::decide::judge;
use crate::verdict::{InconclusiveReason, Verdict};
use evictlab_case::Case;
use evictlab_evidence::Observations;

const KUBELET: &str = "v1.33.1";

/// A case with the pods `web` and `db`, with this expectation and further keys.
fn case(expect: &str, more: &str) -> Case {
    let text = format!(
        "{{name: c, about: a, pods: [{{metadata: {{name: web}}}}, {{metadata: {{name: db}}}}], expect: {expect}{more}}}"
    );
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Message of an eviction for a container's limit.
const MESSAGE: &str = "Container el1 exceeded its local ephemeral storage limit \"20Mi\". ";

fn pod(name: &str, status: Value) -> Value {
    let resources = json!({"limits": {"ephemeral-storage": "20Mi"}});
    let spec = json!({"containers": [{"name": "el1", "resources": resources}]});
    json!({"metadata": {"name": name, "uid": name}, "spec": spec, "status": status})
}

fn running(name: &str) -> Value {
    let state = json!({"running": {"startedAt": "2026-11-21T00:44:46Z"}});
    pod(name, json!({"phase": "Running", "containerStatuses": [{"name": "el1", "state": state}]}))
}

fn evicted(name: &str) -> Value {
    let state = json!({"terminated": {"startedAt": "2026-11-21T00:44:46Z", "finishedAt": "2026-11-21T00:45:46Z",
        "exitCode": 137, "reason": "Error"}});
    let statuses = json!([{"name": "el1", "state": state}]);
    pod(
        name,
        json!({"phase": "Failed", "reason": "Evicted", "message": MESSAGE, "containerStatuses": statuses}),
    )
}

fn event(name: &str, uid: &str) -> Value {
    json!({"metadata": {"name": format!("{name}.{uid}"), "uid": uid}, "reason": "Evicted", "type": "Warning",
        "message": MESSAGE, "firstTimestamp": "2026-11-21T00:45:46Z",
        "involvedObject": {"kind": "Pod", "name": name, "uid": name}})
}

/// Both pods run until the end of the case.
fn observations() -> Value {
    json!({"scenario": "c", "kubeletVersion": KUBELET, "node": "n", "ended": "outcome",
        "podsCreated": [running("web"), running("db")], "podsFinal": [running("web"), running("db")]})
}

/// `web` was evicted, with its event.
fn with_eviction() -> Value {
    let mut observed = observations();
    observed["podsFinal"] = json!([evicted("web"), running("db")]);
    observed["events"] = json!([event("web", "1")]);
    observed
}

fn result(case: &Case, observations: Value) -> CaseResult {
    let observations: Observations = serde_json::from_value(observations).unwrap();
    judge(case, &KUBELET.parse().unwrap(), &observations)
}

fn missing(source: &str) -> Value {
    json!([{"source": source, "cause": "status 500"}])
}

#[track_caller]
fn assert_inconclusive(result: &CaseResult, reason: InconclusiveReason, why: &str) {
    assert_eq!(result.verdict, Verdict::Inconclusive, "{result:#?}");
    assert_eq!(result.inconclusive_reason, Some(reason), "{result:#?}");
    assert!(result.why.contains(why), "{}", result.why);
}

#[test]
fn only_an_absent_value_is_absent() {
    let absent = |value: &str| {
        let that = format!("{{that: [{{what: w, value: \"{value}\", absent: true}}]}}");
        result(&case(&that, ""), observations()).verdict
    };
    assert_eq!(absent("pods.web.status.reason"), Verdict::Passed);
    assert_eq!(absent("condition(pods.web, 'DisruptionTarget')"), Verdict::Passed);
    for value in ["pods.wep.status.reason", "pods.web.statuz.reason", "objects.web.status.failed", "1 / 0"] {
        assert_eq!(absent(value), Verdict::Failed, "{value}");
    }
}

#[test]
fn an_expression_that_is_too_costly_is_an_error() {
    let nested =
        "{that: [{what: w, value: 'samples.all(a, samples.all(b, samples.all(c, true)))', is-not: false}]}";
    let mut observed = observations();
    observed["samples"] = json!(vec![json!({"t": 1}); 100]);
    let result = result(&case(nested, ""), observed);
    assert_eq!(result.verdict, Verdict::Error, "{result:#?}");
    assert!(result.why.contains("too costly"), "{}", result.why);
}

/// Neither is decided by the expressions that can be evaluated.
#[test]
fn a_rate_and_a_known_bug_that_are_too_costly_are_errors() {
    let nested = "samples.map(a, samples.all(b, samples.all(c, true)))";
    let rate = format!("{{evicted: [], rate: {{what: w, of: '{nested}'}}}}");
    let bug = format!(
        ", known-bugs: [{{kubelet: '>=1.30', about: b, evicted: [], that: [{{what: w, value: '{nested}', is-not: false}}]}}]"
    );
    let rows = [(rate.as_str(), ""), ("{evicted: [web]}", bug.as_str())];
    for (expect, more) in rows {
        let mut observed = observations();
        observed["samples"] = json!(vec![json!({"t": 1}); 300]);
        let result = result(&case(expect, more), observed);
        assert_eq!(result.verdict, Verdict::Error, "{expect} {more}: {result:#?}");
        assert!(result.why.contains("too costly"), "{}", result.why);
    }
}

/// Verdicts before a rate is added, and evidence for them.
const WITHOUT_RATE: [(Verdict, &str, &str); 6] = [
    (Verdict::Passed, "evicted: []", ""),
    (Verdict::Reproduced, "evicted: [web]", BUG),
    (Verdict::Fixed, "evicted: []", ", known-bugs: [{kubelet: '>=1.26', about: b, evicted: [web]}]"),
    (Verdict::Failed, "evicted: [web]", ""),
    (Verdict::Inconclusive, "evicted: []", ", trigger: 'false'"),
    (Verdict::Error, "evicted: []", ", trigger: 'samples.all(a, samples.all(b, samples.all(c, true)))'"),
];
const BUG: &str = ", known-bugs: [{kubelet: '>=1.26', about: b, evicted: []}]";

/// A verdict belongs to its reason, its known bug and its phase: a rate that changes it changes all
/// of them, and an error stays one.
#[test]
fn a_rate_without_a_value_changes_only_a_success_and_one_that_is_too_costly_all_but_an_error() {
    const TOO_COSTLY: &str = "samples.map(a, samples.all(b, samples.all(c, true)))";
    for (before, expect, more) in WITHOUT_RATE {
        let with_rate = |of: &str| {
            let mut observed = observations();
            observed["samples"] = json!(vec![json!({"t": 1}); 300]);
            observed["missing"] = missing("metrics");
            result(&case(&format!("{{{expect}, rate: {{what: r, of: '{of}'}}}}"), more), observed)
        };
        let rated = with_rate("[true]");
        assert_eq!(rated.verdict, before, "{rated:#?}");
        assert_eq!(rated.rate.is_some(), before != Verdict::Error, "{before}");
        let is_success = before.is_success();
        let after = |verdict: Verdict| if is_success { verdict } else { before };
        let without_value = with_rate("pods.wep.status");
        let of_rate = without_value.checks.iter().filter(|check| check.name == "r").count();
        assert_eq!(of_rate, usize::from(before != Verdict::Error), "{without_value:#?}");
        let rows = [
            (without_value, after(Verdict::Failed), "r: expected a list of true and false"),
            (with_rate("[size(counted) == 0]"), after(Verdict::Inconclusive), "r: metrics not collected"),
            (with_rate(TOO_COSTLY), Verdict::Error, "r: "),
        ];
        for (judged, verdict, why) in rows {
            let is_changed = verdict != before;
            assert_eq!(judged.verdict, verdict, "{before}: {judged:#?}");
            assert!(
                judged.why.starts_with(if is_changed { why } else { &rated.why }),
                "{before}: {}",
                judged.why
            );
            let reason = match verdict {
                Verdict::Inconclusive if is_changed => Some(InconclusiveReason::EvidenceLost),
                Verdict::Inconclusive => Some(InconclusiveReason::TriggerNotObserved),
                _ => None,
            };
            assert_eq!(judged.inconclusive_reason, reason, "{before}: {judged:#?}");
            assert_eq!(judged.known_bug, None, "{before}: {judged:#?}");
            assert_eq!(judged.phase.is_some(), verdict == Verdict::Error, "{before}: {judged:#?}");
        }
    }
}

/// The evidence of an eviction does not depend on the verdict.
#[test]
fn an_error_keeps_the_reports_of_evictions() {
    let nested =
        "{evicted: [web], that: [{what: w, value: 'samples.all(a, samples.all(b, samples.all(c, true)))'}]}";
    let mut observed = with_eviction();
    observed["samples"] = json!(vec![json!({"t": 1}); 100]);
    let judged = result(&case(nested, ""), observed);
    assert_eq!((judged.verdict, judged.evictions.len()), (Verdict::Error, 1), "{judged:#?}");
}

/// The trigger was not observed while the case ran, and cannot be evaluated afterwards.
#[test]
fn a_trigger_that_is_too_costly_is_an_error() {
    let trigger = ", trigger: 'samples.all(a, samples.all(b, samples.all(c, true)))'";
    let mut observed = observations();
    observed["samples"] = json!(vec![json!({"t": 1}); 100]);
    let judged = result(&case("{evicted: []}", trigger), observed);
    assert_eq!(judged.verdict, Verdict::Error, "{judged:#?}");
    assert!(judged.why.starts_with("trigger: ") && judged.why.contains("too costly"), "{}", judged.why);
}

/// Only the last version of an event counts, in the order of the last versions.
#[test]
fn an_event_that_was_updated_counts_once() {
    let mut observed = with_eviction();
    let mut updated = event("web", "1");
    updated["count"] = json!(2);
    observed["events"] = json!([event("web", "1"), updated]);
    let judged = result(&case("{evicted: [web]}", ""), observed);
    assert_eq!(judged.verdict, Verdict::Passed, "{judged:#?}");
    assert_eq!(judged.evictions[0].events.len(), 1);
}

#[test]
fn missing_evidence_decides_nothing() {
    let that = |value: &str| format!("{{evicted: [], that: [{{what: w, value: '{value}'}}]}}");
    let rows = [
        ("pods", "{evicted: []}".to_owned()),
        ("events", "{evicted: []}".to_owned()),
        ("pods/db", "{evicted: []}".to_owned()),
        ("metrics", that("size(counted) == 0")),
        ("node", that("size(node.conditions) == 0")),
        ("nodeHistory", that("size(nodeHistory) == 0")),
        ("summary", that("size(samples) == 0")),
        ("kubeletLog", that("size(kubeletLog) == 0")),
        ("objects/deployments/web", that("!has(objects.web)")),
        ("logs/web/el1", that("!has(logs.web)")),
    ];
    for (source, expect) in rows {
        let mut observed = observations();
        observed["missing"] = missing(source);
        let result = result(&case(&expect, ""), observed);
        assert_inconclusive(&result, InconclusiveReason::EvidenceLost, &format!("{source} not collected"));
    }
}

#[test]
fn the_first_evidence_that_is_missing_is_the_reason() {
    let mut observed = with_eviction();
    observed["events"] = json!([]);
    observed["missing"] = missing("pods/db");
    let judged = result(&case("{evicted: [web], killed-within: 5s}", ""), observed);
    assert_inconclusive(&judged, InconclusiveReason::EvidenceLost, "whether db was evicted is not known");
}

/// A sample of this second that lists the pods with these UIDs.
fn sample(second: u32, pods: &[&str]) -> Value {
    let listed = |uid: &&str| json!({"podRef": {"name": uid, "uid": uid}, "containers": [{"name": "el1"}]});
    let pods: Vec<Value> = pods.iter().map(listed).collect();
    json!({"t": second, "node": {"rlimit": {"time": format!("2026-11-21T00:45:{second:02}Z")}}, "pods": pods})
}

/// A lost event explains why the status does not repeat an event, not why a pod was evicted.
#[test]
fn a_lost_event_does_not_excuse_an_unexpected_eviction() {
    const LOW: &str = "The node was low on resource: pids. ";
    let mut observed = with_eviction();
    let status = format!("{LOW}Threshold quantity: 1000, available: 900. ");
    let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": status});
    observed["podsFinal"][0]["status"]["message"] = json!(status);
    observed["podsFinal"][0]["status"]["conditions"] = json!([condition]);
    observed["events"][0]["message"] = json!(LOW);
    observed["events"][0]["metadata"]["annotations"] =
        json!({"offending_containers": "", "offending_containers_usage": "", "starved_resource": "pids"});
    observed["evictionsCounted"] = json!({"pid.available": 2});
    let expected = result(&case("{evicted: [web]}", ""), observed.clone());
    assert_inconclusive(&expected, InconclusiveReason::EvidenceLost, "an Evicted event of web was lost");
    for expect in ["{evicted: []}", "{evicted: [db]}"] {
        let unexpected = result(&case(expect, ""), observed.clone());
        assert_eq!(unexpected.verdict, Verdict::Failed, "{expect}: {unexpected:#?}");
        assert!(unexpected.why.starts_with("evicted pods: "), "{}", unexpected.why);
    }
}

/// The rules cannot be applied to it: its containers, requests and statistics are not known.
#[test]
fn a_pod_that_the_rules_cannot_read_is_missing_evidence() {
    let bug = ", known-bugs: [{kubelet: '>=1.26', about: b, evicted: []}]";
    for (expect, more) in
        [("{evicted: [web]}", ""), ("{evicted: [db]}", ""), ("{evicted: []}", ""), ("{evicted: [db]}", bug)]
    {
        for observed in [with_eviction(), observations()] {
            let mut observed = observed;
            let container = &mut observed["podsFinal"][0]["spec"]["containers"][0];
            container["resources"] = json!({"limits": {"ephemeral-storage": "20Mi", "memory": "a lot"}});
            let judged = result(&case(expect, more), observed);
            let why = "web: failed to decode Pod at spec.containers[0].resources.limits";
            assert_inconclusive(&judged, InconclusiveReason::EvidenceLost, why);
        }
    }
}

/// A pod that runs, and that the last Summaries do not list, may be neither evicted nor measured.
#[test]
fn a_running_pod_without_statistics_explains_a_failure() {
    let fails = case("{evicted: [], that: [{what: w, value: 'stats.job.el1.x', is: 1}]}", "");
    let with_samples = |samples: [Value; 3]| {
        let mut observed = observations();
        // The pod of a controller.
        observed["podsFinal"].as_array_mut().unwrap().push(running("job"));
        observed["samples"] = json!(samples);
        result(&fails, observed)
    };
    let all = ["web", "db", "job"];
    let lost = with_samples([sample(1, &all), sample(20, &all[..2]), sample(22, &all[..2])]);
    assert_inconclusive(&lost, InconclusiveReason::EvidenceLost, "no statistics of job at the end");
    let complete = with_samples([sample(1, &all[..2]), sample(20, &all), sample(22, &all[..2])]);
    assert_eq!(complete.verdict, Verdict::Failed, "{complete:#?}");
}

/// The kubelet evicts a pod that it does not measure before all others.
#[test]
fn an_evicted_pod_without_statistics_explains_a_failure() {
    let fails = case("{evicted: [], that: [{what: w, value: 'podList.size()', is: 9}]}", "");
    // The pod of a controller.
    let evicted_at = |time: &str| {
        let mut event = event("job", time);
        event["message"] = json!("The node was low on resource: memory. ");
        event["firstTimestamp"] = time.into();
        event
    };
    let with_events = |events: &[&str], samples: [Value; 2]| {
        let mut observed = observations();
        observed["events"] = events.iter().map(|time| evicted_at(time)).collect();
        observed["samples"] = json!(samples);
        result(&fails, observed)
    };
    let with_samples = |samples| with_events(&["2026-11-21T00:45:46Z"], samples);
    let all = ["web", "db", "job"];
    let lost = with_samples([sample(43, &all), sample(45, &all[..2])]);
    assert_inconclusive(&lost, InconclusiveReason::EvidenceLost, "no statistics of job when it evicted it");
    let complete = with_samples([sample(45, &all), sample(47, &all[..2])]);
    assert_eq!(complete.verdict, Verdict::Failed, "{complete:#?}");
    // A pod that still terminates is evicted again.
    let twice = ["2026-11-21T00:45:46Z", "2026-11-21T00:45:48Z"];
    let again = with_events(&twice, [sample(45, &all), sample(47, &all[..2])]);
    assert_eq!(again.verdict, Verdict::Failed, "{again:#?}");
}

/// A kubelet that admits what it should reject may evict it before it has measured it.
#[test]
fn statistics_do_not_explain_that_a_pod_was_admitted() {
    let with_expect = |expect: &str| {
        let mut observed = with_eviction();
        let message = json!("The node was low on resource: memory. ");
        observed["podsFinal"][0]["status"]["message"] = message.clone();
        observed["events"][0]["message"] = message;
        observed["samples"] = json!([sample(43, &["db"]), sample(45, &["db"])]);
        result(&case(expect, ""), observed)
    };
    let ranked = with_expect("{evicted: [db]}");
    assert_inconclusive(&ranked, InconclusiveReason::EvidenceLost, "no statistics of web when it evicted it");
    let admitted = with_expect("{evicted: [], rejected: [web]}");
    assert_eq!(admitted.verdict, Verdict::Failed, "{admitted:#?}");
}

#[test]
fn missing_evidence_that_is_not_read_does_not_matter() {
    let mut observed = observations();
    observed["missing"] = missing("objects/deployments/web");
    let expect = "{evicted: [], that: [{what: w, value: '!has(objects.db)'}]}";
    assert_eq!(result(&case(expect, ""), observed).verdict, Verdict::Passed);
}

#[test]
fn a_failure_that_was_observed_stays_a_failure() {
    for source in ["pods", "events", "pods/db", "metrics", "summary"] {
        let mut observed = with_eviction();
        observed["missing"] = missing(source);
        let result = result(&case("{evicted: []}", ""), observed);
        assert_eq!(result.verdict, Verdict::Failed, "{source}: {result:#?}");
    }
    let mut observed = observations();
    observed["missing"] = missing("metrics");
    let expect = "{evicted: [], that: [{what: w, value: size(counted), is: 0}, {what: v, value: pods.web.status.phase, is: Failed}]}";
    assert_eq!(result(&case(expect, ""), observed).verdict, Verdict::Failed);
}

#[test]
fn a_pod_whose_end_was_not_observed_may_have_been_evicted() {
    for expect in ["{evicted: []}", "{evicted: [db]}"] {
        let mut observed = observations();
        observed["podsFinal"] = json!([running("web")]);
        let result = result(&case(expect, ""), observed);
        assert_inconclusive(&result, InconclusiveReason::EvidenceLost, "db was deleted externally");
    }
}

#[test]
fn a_pod_that_was_deleted_by_nobody_in_the_case_is_no_pass() {
    let mut observed = observations();
    observed["podsFinal"] = json!([running("web")]);
    observed["podsGone"] = json!([running("db")]);
    let without_steps = result(&case("{evicted: []}", ""), observed.clone());
    assert_inconclusive(&without_steps, InconclusiveReason::EvidenceLost, "db was deleted externally");
    let static_pods = ", static-pods: [{metadata: {name: db}}], do: [{delete-static-pod: db}]";
    let of_static_pod = case("{evicted: []}", static_pods);
    assert_eq!(result(&of_static_pod, observed.clone()).verdict, Verdict::Passed);
    let with_steps = case("{evicted: []}", ", do: [{delete: {pod: db}}]");
    assert_eq!(result(&with_steps, observed.clone()).verdict, Verdict::Passed);
    observed["missing"] = missing("pods/db");
    let vanished = result(&with_steps, observed);
    assert_inconclusive(&vanished, InconclusiveReason::EvidenceLost, "pods/db not collected");
}

/// Only a step that can be the reason excuses the deletion of a pod.
#[test]
fn steps_that_cannot_delete_a_pod_do_not_excuse_its_deletion() {
    let taint = |effect: &str| format!("{{taint: {{key: out, value: b, effect: {effect}}}}}");
    let rows = [
        ("{wait: 15s, about: waiting}", false),
        ("{delete: {pod: web}}", false),
        ("{evict: web}", false),
        ("{evict: db}", true),
        ("{drain: true}", true),
        ("{pause: true}", true),
        ("{restart-kubelet: true}", false),
        (&taint("NoSchedule"), false),
        (&taint("NoExecute"), true),
        ("{delete: {kind: ConfigMap, name: db}}", false),
        ("{delete: {kind: ReplicaSet, name: owner-1}}", true),
        ("{patch: {kind: Deployment, name: owner, patch: {spec: {replicas: 0}}}}", true),
        ("{patch: {kind: Deployment, name: own, patch: {spec: {replicas: 0}}}}", false),
        ("{patch: {kind: Pod, name: db, patch: {metadata: {labels: {a: b}}}}}", false),
        ("{create: {kind: ReplicaSet, metadata: {name: owner-1}}}", true),
    ];
    let mut observed = observations();
    observed["podsFinal"] = json!([running("web")]);
    let mut gone = running("db");
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner-1", "uid": "r"});
    gone["metadata"]["ownerReferences"] = json!([owner]);
    let mut judged = |step: &str, more: &str, gone: &Value| {
        observed["podsGone"] = json!([gone]);
        result(&case("{evicted: []}", &format!(", do: [{step}]{more}")), observed.clone())
    };
    for (step, is_excused) in rows {
        let result = judged(step, "", &gone);
        let expected = if is_excused { Verdict::Passed } else { Verdict::Inconclusive };
        assert_eq!(result.verdict, expected, "{step}: {}", result.why);
    }
    let tolerations = [
        (json!({"operator": "Exists"}), false),
        (json!({"key": "out", "value": "b", "effect": "NoExecute"}), false),
        (json!({"key": "out", "value": "b", "effect": "NoSchedule"}), true),
        (json!({"key": "out", "value": "b", "tolerationSeconds": 5}), true),
        (json!({"key": "out", "value": "c"}), true),
        (json!({"key": "other", "operator": "Exists"}), true),
    ];
    for (toleration, is_excused) in tolerations {
        let mut gone = gone.clone();
        gone["spec"]["tolerations"] = json!([toleration]);
        let is_passed = judged(&taint("NoExecute"), "", &gone).verdict == Verdict::Passed;
        assert_eq!(is_passed, is_excused, "{toleration}");
    }
    let create = "{create: {kind: Pod, metadata: {name: c}, spec: {priorityClassName: high}}}";
    for (more, is_excused) in [("", false), (", placed: scheduled", true)] {
        let result = judged(create, more, &gone);
        assert_eq!(result.verdict == Verdict::Passed, is_excused, "{more}: {}", result.why);
    }
}

#[test]
fn lost_and_doubled_events_decide_nothing_about_events() {
    let one_event = "{evicted: [web], that: [{what: w, value: events.size(), is: 1}]}";
    assert_eq!(result(&case(one_event, ""), with_eviction()).verdict, Verdict::Passed);
    let mut lost = with_eviction();
    lost["events"] = json!([]);
    let mut doubled = with_eviction();
    doubled["events"] = json!([event("web", "1"), event("web", "2")]);
    for (observed, why) in [(lost, "the Evicted event of web is missing"), (doubled, "delivered twice")] {
        let result = result(&case(one_event, ""), observed);
        assert_inconclusive(&result, InconclusiveReason::EvidenceLost, why);
    }
    // A second eviction has another time.
    let mut again = event("web", "2");
    again["firstTimestamp"] = json!("2026-11-21T00:46:46Z");
    let mut twice = with_eviction();
    twice["events"] = json!([event("web", "1"), again]);
    assert_eq!(result(&case(one_event, ""), twice).verdict, Verdict::Failed);
}

#[test]
fn lost_events_can_be_the_known_bug() {
    let one_event = "{evicted: [web], that: [{what: w, value: events.size(), is: 1}]}";
    let that = "that: [{what: w, value: events.size(), is: 0}]";
    let bug = |kubelet: &str| format!(", known-bugs: [{{kubelet: '{kubelet}', about: b, {that}}}]");
    let mut lost = with_eviction();
    lost["events"] = json!([]);
    let verdict = |lost: &Value, kubelet: &str| result(&case(one_event, &bug(kubelet)), lost.clone()).verdict;
    assert_eq!(verdict(&lost, ">=1.26"), Verdict::Reproduced);
    assert_eq!(verdict(&lost, "<1.33"), Verdict::Inconclusive);
    // Another cause is not that the kubelet did not send the event, which fails at the second try.
    let mut killing = event("web", "2");
    killing["reason"] = json!("Killing");
    lost["events"] = json!([killing]);
    lost["podsFinal"] = json!([evicted("web")]);
    lost["podsGone"] = json!([running("db")]);
    let deleted = result(&case(one_event, &bug(">=1.26").replace("size(), is: 0", "size(), is: 1")), lost);
    assert_inconclusive(&deleted, InconclusiveReason::EvidenceLost, "db was deleted externally");
}

/// A bug about something else does not make an assertion on events decide without its event.
#[test]
fn events_of_another_assertion_of_a_bug_can_be_lost() {
    let that = "that: [{what: other, value: events.size(), is: 1}]";
    let bug = format!(", known-bugs: [{{kubelet: '>=1.26', about: b, evicted: [web], {that}}}]");
    let mut lost = with_eviction();
    lost["events"] = json!([]);
    let result = result(&case("{evicted: []}", &bug), lost);
    assert_eq!(result.verdict, Verdict::Inconclusive, "{result:#?}");
}

/// The kubelet sends no event after that of a rejection: the case is tried again before it fails.
#[test]
fn the_event_of_a_rejection_can_be_missing() {
    let expect = "{rejected: [web], that: [{what: w, value: events.size(), is: 1}]}";
    let lost = result(&case(expect, ""), with_rejection());
    assert_inconclusive(&lost, InconclusiveReason::EventMissing, "the Evicted event of web is missing");
    let mut delivered = with_rejection();
    delivered["events"] = json!([event("web", "1")]);
    delivered["events"][0]["message"] = json!("The node had condition: [DiskPressure]. ");
    assert_eq!(result(&case(expect, ""), delivered).verdict, Verdict::Passed);
}

#[test]
fn events_with_the_same_uid_are_one() {
    let mut observed = with_eviction();
    observed["events"] = json!([event("web", "1"), event("web", "1")]);
    let result = result(&case("{evicted: [web]}", ""), observed);
    assert_eq!(result.evictions[0].events.len(), 1);
}

#[test]
fn a_case_that_did_not_reach_its_end_is_no_pass() {
    let until = ", until: 'evicted(pods.web)'";
    let ended = |end: Value| {
        let mut observed = observations();
        observed["ended"] = end;
        observed
    };
    let deadline = json!({"deadline": {"secs": 90, "nanos": 0}});
    for end in [json!("stalled"), deadline.clone()] {
        let result = result(&case("{evicted: []}", until), ended(end));
        let why = "the end condition never held: evicted(pods.web)";
        assert_inconclusive(&result, InconclusiveReason::EndNotReached, why);
    }
    let mut waiting = ended(json!("stalled"));
    waiting["stoppedAt"] = json!("deleting db");
    let stopped = result(&case("{evicted: []}", ""), waiting);
    assert_inconclusive(&stopped, InconclusiveReason::EndNotReached, "not done in time: deleting db");
    let fails = result(&case("{evicted: [web]}", until), ended(json!("stalled")));
    assert_eq!(fails.verdict, Verdict::Failed);
    // A known bug may mean that the end condition never holds; it has time to show.
    let bug = ", known-bugs: [{kubelet: '>=1.26', about: Not evicted., evicted: []}]";
    let with_bug = case("{evicted: [web]}", bug);
    assert_eq!(result(&with_bug, ended(json!("stalled"))).verdict, Verdict::Reproduced);
    assert_eq!(result(&with_bug, ended(deadline)).verdict, Verdict::Inconclusive);
}

#[test]
fn without_its_trigger_a_case_has_no_verdict() {
    let trigger = ", trigger: 'stats.web.el1.rootfs.usedBytes > 20'";
    let used = |bytes: u64| {
        let container = json!({"name": "el1", "rootfs": {"usedBytes": bytes}});
        json!([{"t": 1.0, "node": {}, "pods": [{"podRef": {"name": "web"}, "containers": [container]}]}])
    };
    for expect in ["{evicted: []}", "{evicted: [web]}"] {
        let of = |samples: Value| {
            let mut observed = observations();
            observed["samples"] = samples;
            result(&case(expect, trigger), observed)
        };
        let why = "the trigger of the case was never observed: stats.web.el1";
        assert_inconclusive(&of(used(20)), InconclusiveReason::TriggerNotObserved, why);
        assert!(matches!(of(used(21)).verdict, Verdict::Passed | Verdict::Failed));
        let mut earlier = observations();
        earlier["triggerObserved"] = json!(true);
        assert_ne!(result(&case(expect, trigger), earlier).verdict, Verdict::Inconclusive);
    }
    let unexpected = result(&case("{evicted: []}", trigger), with_eviction());
    assert_eq!(unexpected.verdict, Verdict::Failed, "an eviction that nothing triggered");
}

#[test]
fn a_kubelet_that_does_not_answer_at_the_end_may_have_evicted_or_not() {
    let mut observed = observations();
    let cause = "the kubelet did not answer at the end of the case: connection refused";
    observed["missing"] = json!([{"source": "summary", "cause": cause}]);
    for expect in ["{evicted: []}", "{evicted: [web]}"] {
        let result = result(&case(expect, ""), observed.clone());
        assert_inconclusive(
            &result,
            InconclusiveReason::EvidenceLost,
            "whether web was evicted is not known",
        );
    }
    // An eviction that was observed is decided.
    let mut evicted = with_eviction();
    evicted["missing"] = observed["missing"].clone();
    assert_eq!(result(&case("{evicted: []}", ""), evicted).verdict, Verdict::Failed);
}

#[test]
fn a_known_bug_does_not_show_without_the_trigger() {
    let more = ", trigger: 'size(samples) > 0', known-bugs: [{kubelet: '>=1.26', about: b, evicted: []}]";
    let reproduced = result(&case("{evicted: [web]}", more), observations());
    assert_inconclusive(&reproduced, InconclusiveReason::TriggerNotObserved, "size(samples) > 0");
    let fixed = ", trigger: 'size(samples) > 0', known-bugs: [{kubelet: '>=1.26', about: b, evicted: [web]}]";
    let fixed = result(&case("{evicted: []}", fixed), observations());
    assert_inconclusive(&fixed, InconclusiveReason::TriggerNotObserved, "size(samples) > 0");
}

#[test]
fn an_oom_kill_can_be_the_expectation() {
    let killed = |name: &str| {
        let state = json!({"terminated": {"reason": "OOMKilled", "exitCode": 137,
            "startedAt": "2026-11-21T00:44:46Z", "finishedAt": "2026-11-21T00:45:46Z"}});
        pod(name, json!({"phase": "Failed", "containerStatuses": [{"name": "el1", "state": state}]}))
    };
    let mut observed = observations();
    observed["podsFinal"] = json!([killed("web"), running("db")]);
    let verdict = |expect: &str, observed: &Value| result(&case(expect, ""), observed.clone()).verdict;
    assert_eq!(verdict("{evicted: [web]}", &observed), Verdict::Inconclusive);
    assert_eq!(verdict("{evicted: [web], oom-killed: []}", &observed), Verdict::Failed);
    assert_eq!(verdict("{evicted: [], oom-killed: []}", &observed), Verdict::Failed);
    assert_eq!(verdict("{evicted: [], oom-killed: [el1]}", &observed), Verdict::Passed);
    assert_eq!(verdict("{evicted: [], oom-killed: [el1]}", &observations()), Verdict::Failed);
}

#[test]
fn a_fixed_kubelet_may_violate_the_invariants_that_its_bug_lists() {
    // The kubelet's rules require that the limit is the pod's.
    let mut observed = with_eviction();
    let message = MESSAGE.replace("20Mi", "30Mi");
    observed["podsFinal"][0]["status"]["message"] = json!(message);
    observed["events"][0]["message"] = json!(message);
    let bug = |more: &str| format!(", known-bugs: [{{kubelet: '>=1.26', about: b, evicted: []{more}}}]");
    let verdict = |more: &str| result(&case("{evicted: [web]}", &bug(more)), observed.clone());
    assert_eq!(verdict("").verdict, Verdict::Failed);
    assert_eq!(verdict(", fixed-violates: [limit-is-the-pods]").verdict, Verdict::Fixed);
    assert_eq!(verdict(", fixed-violates: [message-is-known]").verdict, Verdict::Failed);
    let without_bug = result(&case("{evicted: [web]}", ""), observed.clone());
    assert_eq!(without_bug.verdict, Verdict::Failed);
}

/// Evidence with a pod that the kubelet rejected at admission for a condition of the node.
fn with_rejection() -> Value {
    let message = "Pod was rejected: The node had condition: [DiskPressure]. ";
    let mut observed = observations();
    observed["podsFinal"] = json!([
        pod("web", json!({"phase": "Failed", "reason": "Evicted", "message": message})),
        running("db")
    ]);
    observed
}

#[test]
fn a_rejection_can_be_the_expectation() {
    let verdict = |expect: &str, observed: Value| result(&case(expect, ""), observed).verdict;
    assert_eq!(verdict("{rejected: [web]}", with_rejection()), Verdict::Passed);
    assert_eq!(verdict("{rejected: [web], evicted: []}", with_rejection()), Verdict::Passed);
    for expect in ["{rejected: []}", "{rejected: [db]}", "{rejected: [web, db]}"] {
        assert_eq!(verdict(expect, with_rejection()), Verdict::Failed, "{expect}");
    }
    assert_eq!(verdict("{rejected: [web]}", observations()), Verdict::Failed);
    // An eviction is not a rejection.
    assert_eq!(verdict("{rejected: [web], evicted: [web]}", with_eviction()), Verdict::Failed);
    // Older kubelets have another prefix.
    let mut old = with_rejection();
    old["podsFinal"][0]["status"]["message"] = json!("Pod The node had condition: [DiskPressure]. ");
    assert_eq!(verdict("{rejected: [web], evicted: []}", old), Verdict::Passed);
    let unexpected = result(&case("{evicted: []}", ""), with_rejection());
    assert_eq!(unexpected.verdict, Verdict::Passed, "{unexpected:#?}");
    let not_evicted = result(&case("{evicted: [web]}", ""), with_rejection());
    assert_inconclusive(&not_evicted, InconclusiveReason::RejectedAtAdmission, "did not admit web");
}

#[test]
fn a_known_bug_can_be_a_rejection() {
    let bug = |rejected: &str| format!(", known-bugs: [{{kubelet: '>=1.20', rejected: {rejected}}}]");
    let verdict = |rejected: &str, observed: Value| {
        result(&case("{evicted: [], rejected: []}", &bug(rejected)), observed).verdict
    };
    assert_eq!(verdict("[web]", with_rejection()), Verdict::Reproduced);
    assert_eq!(verdict("[db]", with_rejection()), Verdict::Failed);
    assert_eq!(verdict("[web]", observations()), Verdict::Fixed);
}

/// A bug of one cgroup version does not excuse a node of the other.
#[test]
fn a_known_bug_can_be_of_one_cgroup_version() {
    let verdict = |of_node: &str| {
        let bug = ", known-bugs: [{kubelet: '>=1.20', cgroup: v1, rejected: [web]}]";
        let mut observed = with_rejection();
        observed["cgroup"] = json!(of_node);
        result(&case("{evicted: [], rejected: []}", bug), observed).verdict
    };
    assert_eq!(verdict("v1"), Verdict::Reproduced);
    assert_eq!(verdict("v2"), Verdict::Failed);
    assert_eq!(verdict(""), Verdict::Reproduced);
}

#[test]
fn a_pod_whose_end_was_not_observed_may_have_been_rejected() {
    let mut observed = with_rejection();
    observed["podsFinal"] = json!([observed["podsFinal"][0]]);
    let lost = result(&case("{rejected: [web, db]}", ""), observed);
    assert_inconclusive(&lost, InconclusiveReason::EvidenceLost, "db was deleted externally");
    let mut incomplete = with_rejection();
    incomplete["missing"] = missing("pods/db");
    let more_than_expected = result(&case("{rejected: []}", ""), incomplete);
    assert_eq!(more_than_expected.verdict, Verdict::Failed);
}

#[test]
fn a_known_bug_can_be_a_late_kill() {
    let bug = ", known-bugs: [{kubelet: '>=1.26', about: Killed late., killed-after: 5s}]";
    let killed = |seconds: u32| {
        let mut observed = with_eviction();
        let state = &mut observed["podsFinal"][0]["status"]["containerStatuses"][0]["state"];
        state["terminated"]["finishedAt"] = json!(format!("2026-11-21T00:45:{:02}Z", 46 + seconds));
        result(&case("{evicted: [web], killed-within: 2s}", bug), observed).verdict
    };
    assert_eq!(killed(0), Verdict::Fixed);
    assert_eq!(killed(2), Verdict::Fixed);
    // Neither in time nor as late as the bug says: with one second of tolerance.
    assert_eq!(killed(3), Verdict::Failed);
    assert_eq!(killed(4), Verdict::Reproduced);
    assert_eq!(killed(9), Verdict::Reproduced);
}

#[test]
fn a_sample_that_cannot_be_read_is_a_cause_of_missing_samples() {
    let mut observed = observations();
    observed["samples"] = json!([{"t": 1, "node": "n"}]);
    let result = result(&case("{evicted: []}", ", pressure: {signal: memory.available}"), observed);
    let why = "the node returned no Summary; failed to decode a sample: invalid type: string \"n\"";
    assert_inconclusive(&result, InconclusiveReason::EvidenceLost, why);
}

/// A controller may replace an evicted pod so fast that no sample shows the pressure.
#[test]
fn the_eviction_of_a_pod_that_a_controller_made_shows_the_pressure() {
    let case = case("{evicted: []}", ", pressure: {signal: memory.available}");
    let mut observed = observations();
    observed["configz"] = json!({"evictionHard": {"memory.available": "1Gi"}});
    observed["samples"] = json!([{"t": 1.0, "node": {"memory": {"availableBytes": 2_u64 << 30, "workingSetBytes": 1_u64 << 30}}}]);
    let why = "memory.available never fell below 1Gi";
    assert_inconclusive(&result(&case, observed.clone()), InconclusiveReason::ThresholdNotReached, why);
    observed["events"] = json!([event("of-a-job", "1")]);
    assert_inconclusive(&result(&case, observed.clone()), InconclusiveReason::ThresholdNotReached, why);
    observed["events"][0]["message"] = json!(
        "The node was low on resource: memory. Threshold quantity: 1Gi, available: 900Mi. Container el1 was using 2Gi, request is 0, has larger consumption of memory. "
    );
    assert_eq!(result(&case, observed).verdict, Verdict::Passed);
}

/// Deleting files outside of the cluster makes room on a disk that a case has just filled.
#[test]
fn a_case_that_waited_for_two_shortages_needs_both() {
    let case = case(
        "{rejected: [web]}",
        ", pressure: {signal: memory.available, also: {nodefs.available: 256Mi}}, until: 'false'",
    );
    let verdict = |free_disk: u64, ended: Value| {
        let mut observed = observations();
        observed["configz"] = json!({"evictionHard": {"memory.available": "1Gi", "nodefs.available": "2Gi"}});
        let memory = json!({"availableBytes": 1_u64 << 29, "workingSetBytes": 1_u64 << 30});
        let fs = json!({"availableBytes": free_disk << 30, "capacityBytes": 8_u64 << 30, "usedBytes": 1});
        observed["samples"] = json!([{"t": 1.0, "node": {"memory": memory, "fs": fs}}]);
        observed["ended"] = ended;
        result(&case, observed)
    };
    let why = "nodefs.available never fell below 2Gi: the least of 1 samples is 3Gi";
    let timed_out = verdict(3, json!({"deadline": {"secs": 156, "nanos": 0}}));
    assert_inconclusive(&timed_out, InconclusiveReason::ThresholdNotReached, why);
    assert_inconclusive(&verdict(3, json!("stalled")), InconclusiveReason::ThresholdNotReached, why);
    assert_eq!(verdict(1, json!({"deadline": {"secs": 156, "nanos": 0}})).verdict, Verdict::Failed);
    let evicted = verdict(3, json!({"unexpected": "web was evicted"}));
    assert_eq!(evicted.verdict, Verdict::Failed, "{evicted:#?}");
}

/// A busy kubelet may lose the status of a container and report its end much later.
#[test]
fn a_lost_end_of_a_container_is_no_late_kill() {
    let killed = |bound: &str, last_use: u32, reported: u32| {
        let mut observed = with_eviction();
        let uid = observed["podsFinal"][0]["metadata"]["uid"].clone();
        let status = &mut observed["podsFinal"][0]["status"];
        status["containerStatuses"][0]["state"] =
            json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}});
        status["conditions"] = json!([{
            "type": "ContainersReady", "status": "False", "reason": "PodFailed",
            "lastTransitionTime": format!("2026-11-21T00:45:{:02}Z", 46 + reported),
        }]);
        observed["samples"] = json!([{"t": 1.0, "pods": [{"podRef": {"name": "web", "uid": uid}, "containers": [
            {"name": "el1", "memory": {"time": format!("2026-11-21T00:45:{:02}Z", 46 + last_use), "workingSetBytes": 1}},
        ]}]}]);
        result(&case(&format!("{{evicted: [web], {bound}}}"), ""), observed)
    };
    assert_eq!(killed("killed-within: 2s", 0, 1).verdict, Verdict::Passed);
    assert_eq!(killed("killed-within: 2s", 9, 10).verdict, Verdict::Failed);
    let why = "1.0 to 10.0 s from the event to the end of the last container, because the status of a container was lost";
    assert_inconclusive(&killed("killed-within: 2s", 1, 10), InconclusiveReason::StatusLost, why);
    assert_eq!(killed("killed-after: 7s", 5, 8).verdict, Verdict::Passed);
    assert_eq!(killed("killed-after: 7s", 1, 3).verdict, Verdict::Failed);
    assert_inconclusive(&killed("killed-after: 7s", 1, 10), InconclusiveReason::StatusLost, why);
}

/// The pod ran at least until the end of the container whose status is known.
#[test]
fn the_known_end_of_another_container_bounds_the_kill() {
    let killed = |bound: &str, other_end: u32| {
        let mut observed = with_eviction();
        let status = &mut observed["podsFinal"][0]["status"];
        let finished = format!("2026-11-21T00:45:{:02}Z", 46 + other_end);
        let other = json!({"exitCode": 137, "reason": "Error", "finishedAt": finished});
        let lost = json!({"exitCode": 137, "reason": "ContainerStatusUnknown"});
        status["containerStatuses"][0]["state"] = json!({"terminated": lost});
        let mut second = status["containerStatuses"][0].clone();
        (second["name"], second["state"]) = (json!("el2"), json!({"terminated": other}));
        status["containerStatuses"].as_array_mut().unwrap().push(second);
        status["conditions"] = json!([{
            "type": "ContainersReady", "status": "False", "reason": "PodFailed",
            "lastTransitionTime": "2026-11-21T00:45:54Z",
        }]);
        result(&case(&format!("{{evicted: [web], {bound}}}"), ""), observed)
    };
    assert_eq!(killed("killed-after: 7s", 7).verdict, Verdict::Passed);
    assert_eq!(killed("killed-within: 4s", 7).verdict, Verdict::Failed);
    for bound in ["killed-after: 7s", "killed-within: 4s"] {
        assert_eq!(killed(bound, 2).inconclusive_reason, Some(InconclusiveReason::StatusLost), "{bound}");
    }
}

#[test]
fn a_pod_that_never_ran_explains_the_missing_trigger() {
    let condition = json!({"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available."});
    let pending = pod("web", json!({"phase": "Pending", "conditions": [condition]}));
    let mut observed = observations();
    observed["podsFinal"] = json!([pending, running("db")]);
    let with_trigger =
        |expect: &str, observed: Value| result(&case(expect, ", trigger: 'size(samples) > 0'"), observed);
    for expect in ["{evicted: []}", "{evicted: [web]}"] {
        let why = "web did not start: it is Pending, 0/1 nodes are available.";
        let result = with_trigger(expect, observed.clone());
        assert_inconclusive(&result, InconclusiveReason::PodNeverStarted, why);
    }
    let rejected = with_trigger("{evicted: []}", with_rejection());
    assert_inconclusive(&rejected, InconclusiveReason::RejectedAtAdmission, "did not admit web");
    let about_admission = with_trigger("{rejected: [web]}", with_rejection());
    assert_inconclusive(&about_admission, InconclusiveReason::TriggerNotObserved, "never observed");
}

#[test]
fn a_missing_event_is_told_from_lost_evidence_by_later_events() {
    let mut observed = with_eviction();
    observed["events"] = json!([]);
    let of = |observed: &Value| result(&case("{evicted: [web], witnesses: [event]}", ""), observed.clone());
    assert_inconclusive(
        &of(&observed),
        InconclusiveReason::EvidenceLost,
        "the Evicted event of web is missing",
    );
    let mut killing = event("web", "2");
    killing["reason"] = json!("Killing");
    killing["message"] = json!("Stopping container el1");
    observed["events"] = json!([killing]);
    assert_inconclusive(
        &of(&observed),
        InconclusiveReason::EventMissing,
        "the Evicted event of web is missing",
    );
    observed["missing"] = missing("events");
    assert_inconclusive(&of(&observed), InconclusiveReason::EvidenceLost, "events not collected");
}

#[test]
fn a_container_of_a_deleted_pod_is_killed_by_the_deletion() {
    let deleted = |requested_at: &str, reason: &str| {
        let mut web = evicted("web");
        let status = &mut web["status"];
        status["reason"] = Value::Null;
        status["containerStatuses"][0]["state"]["terminated"]["reason"] = json!(reason);
        web["metadata"]["deletionTimestamp"] = json!(requested_at);
        web["metadata"]["deletionGracePeriodSeconds"] = json!(10);
        let mut observed = observations();
        observed["podsFinal"] = json!([web, running("db")]);
        result(&case("{evicted: [db]}", ""), observed)
    };
    // The container ended at 00:45:46.
    assert_eq!(deleted("2026-11-21T00:45:56Z", "Error").verdict, Verdict::Failed);
    let earlier = deleted("2026-11-21T00:45:57Z", "Error");
    assert_inconclusive(&earlier, InconclusiveReason::KilledBeforeEviction, "el1 of web was killed");
    let oom_kill = deleted("2026-11-21T00:45:56Z", "OOMKilled");
    assert_inconclusive(&oom_kill, InconclusiveReason::KilledBeforeEviction, "el1 of web was killed");
    // The last version has the time of the kubelet's own request.
    let mut web = evicted("web");
    web["status"]["reason"] = Value::Null;
    web["metadata"]["deletionTimestamp"] = json!("2026-11-21T00:45:52Z");
    web["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    let mut observed = observations();
    observed["podsFinal"] = json!([running("db")]);
    observed["podsGone"] = json!([web]);
    observed["deletionRequests"] = json!({"web": "2026-11-21T00:45:45Z"});
    let gone = result(&case("{evicted: [db]}", ", do: [{delete: {pod: web}}]"), observed);
    assert_eq!(gone.verdict, Verdict::Failed, "{gone:#?}");
}

#[test]
fn a_container_without_its_configuration_is_intended_beside_one_that_ran() {
    let waiting = |reason: &str| json!({"name": "el2", "state": {"waiting": {"reason": reason}}});
    let of = |reason: &str, others: Vec<Value>| {
        let mut observed = observations();
        let statuses: Vec<Value> = others.into_iter().chain([waiting(reason)]).collect();
        observed["podsFinal"][0]["status"]["containerStatuses"] = json!(statuses);
        result(&case("{evicted: [web]}", ""), observed)
    };
    let ran = || running("web")["status"]["containerStatuses"][0].clone();
    assert_eq!(of("CreateContainerConfigError", vec![ran()]).verdict, Verdict::Failed);
    for (reason, others) in [("ImagePullBackOff", vec![ran()]), ("CreateContainerConfigError", vec![])] {
        assert_inconclusive(&of(reason, others), InconclusiveReason::PodNeverStarted, reason);
    }
    // A container that waits for its restart ran.
    let mut restarts = waiting("ContainerCreating");
    restarts["lastState"] = json!({"terminated": {"exitCode": 1, "startedAt": "2026-11-21T00:44:46Z"}});
    assert_eq!(of("CreateContainerConfigError", vec![restarts]).verdict, Verdict::Failed);
}

/// The kubelet measures the files of each pod at another time. Figures of a real 1.36.2 on a busy
/// host: 16,009 files of a pod were not measured when the kubelet ranked.
#[test]
fn an_eviction_by_old_statistics_of_files_is_inconclusive() {
    const LOW: &str = "The node was low on resource: inodes. ";
    let fails = case("{evicted: [web]}", "");
    let with_files = |free: i64, later: i64| {
        let sample = |at: u32, free: i64, web: i64| {
            let mut sample = sample(at, &["web", "db"]);
            sample["node"]["fs"] = json!({"inodesFree": free});
            for (index, files) in [web, 305].into_iter().enumerate() {
                sample["pods"][index]["ephemeral-storage"] = json!({"inodesUsed": files});
            }
            sample
        };
        let mut observed = observations();
        let samples = [sample(30, 4_185_636, 3), sample(33, free, 6), sample(39, free, later)];
        observed["samples"] = json!(samples);
        observed["podsFinal"] = json!(["web", "db"].map(|name| {
            let mut pod = evicted(name);
            pod["status"]["message"] = json!(LOW);
            pod
        }));
        observed["events"] = json!([("db", "35"), ("web", "41")].map(|(name, second)| {
            let mut event = event(name, name);
            event["message"] = json!(LOW);
            event["metadata"]["annotations"] = json!({"offending_containers": "",
                "offending_containers_usage": "", "starved_resource": "inodes"});
            event["firstTimestamp"] = json!(format!("2026-11-21T00:45:{second}Z"));
            event
        }));
        result(&fails, observed)
    };
    let why = "the kubelet's statistics of web were stale: the kubelet ranked it by 6, and 13049 were used that it had \
               not measured yet; later 16014";
    assert_inconclusive(&with_files(4_172_584, 16_014), InconclusiveReason::StaleStatistics, why);
    // The statistics were complete: the kubelet ranked wrongly.
    assert_eq!(with_files(4_185_400, 16_014).verdict, Verdict::Failed);
    // The pod never had more files.
    assert_eq!(with_files(4_172_584, 200).verdict, Verdict::Failed);
}

/// The runtime deletes the data of an evicted pod in the background: until they are gone, the
/// kubelet evicts the next pod.
#[test]
fn an_eviction_before_the_data_were_deleted_is_inconclusive() {
    const LOW: &str = "The node was low on resource: ephemeral-storage. ";
    let fails = case("{evicted: [web]}", "");
    let with_free = |first: u64, second: u64, victims: [&str; 2]| {
        let sample = |at: u32, mib: u64| {
            let mut sample = sample(at, &["web", "db"]);
            // Other files are deleted meanwhile.
            sample["node"]["fs"] = json!({"availableBytes": mib << 20, "inodesFree": 1000 + at});
            sample
        };
        let mut observed = observations();
        observed["samples"] = json!([sample(33, first), sample(39, second)]);
        observed["podsFinal"] = json!(["web", "db"].map(|name| {
            let mut pod = evicted(name);
            pod["status"]["message"] = json!(LOW);
            pod
        }));
        observed["events"] = json!([(victims[0], "35"), (victims[1], "41")].map(|(name, second)| {
            let mut event = event(name, name);
            event["message"] = json!(LOW);
            event["metadata"]["annotations"] = json!({"offending_containers": "",
                "offending_containers_usage": "", "starved_resource": "ephemeral-storage"});
            event["firstTimestamp"] = json!(format!("2026-11-21T00:45:{second}Z"));
            event
        }));
        result(&fails, observed)
    };
    let why = "the data of web were not deleted yet when the kubelet evicted db";
    assert_inconclusive(&with_free(90, 80, ["web", "db"]), InconclusiveReason::ReclaimPending, why);
    // The data were deleted, and the kubelet evicts another pod.
    assert_eq!(with_free(90, 300, ["web", "db"]).verdict, Verdict::Failed);
    // The kubelet ranks another pod first.
    assert_eq!(with_free(90, 80, ["db", "web"]).verdict, Verdict::Failed);
}

/// Image garbage collection may end the pressure before the kubelet evicts a pod.
#[test]
fn a_disk_that_was_freed_before_any_eviction_is_inconclusive() {
    let with_all = |expect: &str, [mib, images]: [u64; 2], minimum: &str, events: Value| {
        let case = case(expect, ", pressure: {signal: nodefs.available}");
        let sample = |at: u32, mib: u64, images: u64| {
            let mut sample = sample(at, &["web", "db"]);
            sample["node"]["fs"] =
                json!({"availableBytes": mib << 20, "capacityBytes": 1_u64 << 30, "inodesFree": 1000});
            sample["node"]["runtime"] = json!({"imageFs": {"usedBytes": images << 20}});
            sample
        };
        let mut observed = observations();
        observed["configz"] = json!({
            "evictionHard": {"nodefs.available": "100Mi"},
            "evictionMinimumReclaim": {"nodefs.available": minimum},
        });
        observed["samples"] = json!([sample(33, 90, 500), sample(39, mib, images)]);
        observed["events"] = events;
        result(&case, observed)
    };
    let with_last_and_minimum = |expect: &str, mib: u64, images: u64, minimum: &str| {
        with_all(expect, [mib, images], minimum, json!([]))
    };
    // Of a pod that a controller made.
    let with_event = |message: &str| {
        let mut event = event("of-a-job", "1");
        event["message"] = json!(message);
        with_all("{evicted: [web]}", [300, 500], "0", json!([event]))
    };
    let with_last_of_images =
        |expect: &str, mib: u64, images: u64| with_last_and_minimum(expect, mib, images, "0");
    let with_last = |expect: &str, mib: u64| with_last_of_images(expect, mib, 500);
    let why = "the pressure on nodefs.available ended before any eviction: at last it was 300Mi; images or \
               dead containers of 200Mi were deleted";
    let deleted = with_last_of_images("{evicted: [web]}", 300, 300);
    assert_inconclusive(&deleted, InconclusiveReason::ReclaimSufficed, why);
    let deleted = with_last_and_minimum("{evicted: [web]}", 300, 300, "250Mi");
    assert_eq!(deleted.verdict, Verdict::Failed, "less than the minimum was reclaimed");
    let why = "the pressure on nodefs.available ended before any eviction: at last it was 300Mi";
    assert_inconclusive(&with_last("{evicted: [web]}", 300), InconclusiveReason::ThresholdNotReached, why);
    // The kubelet rejects further pods for some minutes.
    let rejected = with_event("The node had condition: [DiskPressure]. ");
    assert_inconclusive(&rejected, InconclusiveReason::ThresholdNotReached, why);
    let evicted = with_event(MESSAGE);
    assert_eq!(evicted.verdict, Verdict::Failed, "{evicted:#?}");
    assert_eq!(with_last("{evicted: [web]}", 80).verdict, Verdict::Failed, "the pressure lasts");
    assert_eq!(with_last("{evicted: []}", 300).verdict, Verdict::Passed);
}

/// The node was measured after the container whose memory it contains, and the pod ended before the
/// container was measured again.
#[test]
fn a_message_by_old_statistics_of_a_container_is_inconclusive() {
    const LOW: &str = "The node was low on resource: memory. Container el1 was using 8Mi, request is 0, has larger consumption of memory. ";
    let with_growth = |mib: i64| {
        let memory = |second: u32, mib: i64| json!({"time": format!("2026-11-21T00:45:{second:02}Z"), "workingSetBytes": mib << 20});
        let sample = |second: u32, node: Value| {
            let mut sample = sample(second, &["web", "db"]);
            sample["node"]["memory"] = node;
            sample["pods"][0]["containers"][0]["memory"] = memory(42, 8);
            sample
        };
        let mut observed = with_eviction();
        observed["samples"] = json!([sample(42, memory(41, 300)), sample(44, memory(44, 300 + mib))]);
        observed["podsFinal"][0]["status"]["message"] = json!(LOW);
        observed["events"][0]["message"] = json!(LOW);
        observed["events"][0]["metadata"]["annotations"] = json!({"offending_containers": "el1",
            "offending_containers_usage": "8Mi", "starved_resource": "memory"});
        observed
    };
    let message = "message: {resource: memory, containers: {el1: {usage: '>=100Mi', request: '0'}}}";
    let case = case(&format!("{{evicted: [web], {message}}}"), "");
    let why = "the kubelet's statistics of el1 of web were stale: the message reports 8Mi, the Summary showed 8Mi before \
               the eviction, and the node used 240Mi more since it had measured the container";
    assert_inconclusive(&result(&case, with_growth(240)), InconclusiveReason::StaleStatistics, why);
    // The memory is not that of the container.
    let other = result(&case, with_growth(40));
    assert_eq!(other.verdict, Verdict::Failed, "{other:#?}");
    // The kubelet measured the node once more than the Summary shows.
    let with_available = |mib: i64| {
        let mut observed = with_growth(0);
        let clause =
            format!("resource: memory. Threshold quantity: 1000Mi, available: {}Mi. Container", 990 - mib);
        for text in ["/podsFinal/0/status/message", "/events/0/message"] {
            let message = observed.pointer_mut(text).unwrap();
            *message = json!(message.as_str().unwrap().replace("resource: memory. Container", &clause));
        }
        observed["samples"][0]["node"]["memory"]["availableBytes"] = json!(990 << 20);
        observed
    };
    assert_inconclusive(&result(&case, with_available(240)), InconclusiveReason::StaleStatistics, why);
    let other = result(&case, with_available(40));
    assert_eq!(other.verdict, Verdict::Failed, "{other:#?}");
}

/// A pod that is ranked by a measurement from before its container grew explains a wrong victim,
/// and that a known bug of the ranking did not show.
#[test]
fn a_ranking_by_old_statistics_is_inconclusive() {
    const LOW: &str = "The node was low on resource: memory. Container el1 was using 200Mi, request is 0, has larger consumption of memory. ";
    let with_ranked_usage = |mib: i64| {
        let memory = |mib: i64| json!({"workingSetBytes": mib << 20});
        let stats = |uid: &str, pod: i64, container: i64| {
            json!({"podRef": {"name": uid, "uid": uid}, "memory": memory(pod),
                "containers": [{"name": "el1", "memory": memory(container)}]})
        };
        let mut sample = sample(44, &[]);
        sample["pods"] = json!([stats("web", 190, 200), stats("db", mib, 88)]);
        // After the eviction, the statistics of all pods are new.
        let mut after = self::sample(47, &[]);
        after["pods"] = json!([stats("db", 88, 88)]);
        let mut observed = with_eviction();
        observed["samples"] = json!([sample, after]);
        observed["podsFinal"][0]["status"]["message"] = json!(LOW);
        observed["events"][0]["message"] = json!(LOW);
        observed["events"][0]["metadata"]["annotations"] = json!({"offending_containers": "el1",
            "offending_containers_usage": "200Mi", "starved_resource": "memory"});
        observed
    };
    let fails = case("{evicted: [db]}", "");
    let why = "the kubelet's statistics of db were stale: the kubelet ranked it by 10Mi, when its containers used 88Mi";
    assert_inconclusive(&result(&fails, with_ranked_usage(10)), InconclusiveReason::StaleStatistics, why);
    assert_eq!(result(&fails, with_ranked_usage(80)).verdict, Verdict::Failed);
    let bug = ", known-bugs: [{kubelet: '>=1.30', about: b, evicted: [db]}]";
    let fixed = case("{evicted: [web]}", bug);
    assert_inconclusive(&result(&fixed, with_ranked_usage(10)), InconclusiveReason::StaleStatistics, why);
    assert_eq!(result(&fixed, with_ranked_usage(80)).verdict, Verdict::Fixed);
    // Without a known bug, the victim that the case expects is not doubtful.
    assert_eq!(result(&case("{evicted: [web]}", ""), with_ranked_usage(10)).verdict, Verdict::Passed);
}

/// The kubelet may lose the status of a container, and with it the requests that it had allocated.
#[test]
fn a_pending_resize_does_not_change_the_requests() {
    let message = "The node was low on resource: memory. Container el1 was using 90Mi, request is 60Mi, has larger consumption of memory. ";
    let of = |request: &str, allocated: Option<&str>, pending: bool| {
        let mut pod = evicted("web");
        pod["spec"]["containers"][0]["resources"] = json!({"requests": {"memory": request}});
        pod["status"]["message"] = json!(message);
        if let Some(allocated) = allocated {
            pod["status"]["containerStatuses"][0]["allocatedResources"] = json!({"memory": allocated});
        }
        if pending {
            pod["status"]["conditions"] = json!([{"type": "PodResizePending", "status": "True"}]);
        }
        pod
    };
    for (last, expected) in [
        (of("10Ti", Some("60Mi"), true), Verdict::Passed),
        (of("10Ti", None, true), Verdict::Passed),
        (of("10Ti", None, false), Verdict::Failed),
    ] {
        let mut observed = with_eviction();
        observed["podsCreated"][0] = of("60Mi", None, false);
        observed["podsFinal"][0] = last.clone();
        observed["events"][0]["message"] = json!(message);
        observed["events"][0]["metadata"]["annotations"] = json!({
            "offending_containers": "el1", "offending_containers_usage": "90Mi", "starved_resource": "memory"});
        let result = result(&case("{evicted: [web]}", ""), observed);
        assert_eq!(result.verdict, expected, "{last}: {}", result.why);
        assert_eq!(result.why.contains("request-is-the-pods"), expected == Verdict::Failed, "{}", result.why);
    }
    // The kubelet may lose the condition, too; the history has it.
    let mut observed = with_eviction();
    observed["podsCreated"][0] = of("60Mi", None, false);
    observed["podsFinal"][0] = of("10Ti", None, false);
    observed["events"][0]["message"] = json!(message);
    observed["events"][0]["metadata"]["annotations"] = json!({
        "offending_containers": "el1", "offending_containers_usage": "90Mi", "starved_resource": "memory"});
    let pending = json!({"PodResizePending": {"status": "True", "reason": "Deferred"}});
    observed["podHistory"] =
        json!({"web": [{"t": 1, "phase": "Running", "conditions": pending}, {"t": 2, "phase": "Failed"}]});
    assert_eq!(result(&case("{evicted: [web]}", ""), observed).verdict, Verdict::Passed);
}

/// Evidence of an eviction of `web`, whose container el2 started in this second, and whose message
/// omits el2.
fn with_start(second: u32) -> Value {
    const MESSAGE: &str = "The node was low on resource: memory. Container el1 was using 80Mi, request is 0, has larger consumption of memory. ";
    let mut observed = with_eviction();
    let containers = json!([{"name": "el1"}, {"name": "el2"}]);
    for list in ["podsCreated", "podsFinal"] {
        observed[list][0]["spec"]["containers"] = containers.clone();
    }
    observed["podsFinal"][0]["status"]["message"] = json!(MESSAGE);
    observed["events"][0]["message"] = json!(MESSAGE);
    observed["events"][0]["metadata"]["annotations"] = json!({"offending_containers": "el1",
        "offending_containers_usage": "80Mi", "starved_resource": "memory"});
    observed["samples"] = json!([sample(44, &["web", "db"])]);
    let started = json!({"metadata": {"name": "web.2", "uid": "2"}, "reason": "Started",
        "firstTimestamp": format!("2026-11-21T00:45:{second:02}Z"), "involvedObject":
        {"kind": "Pod", "name": "web", "uid": "web", "fieldPath": "spec.containers{el2}"}});
    observed["events"].as_array_mut().unwrap().push(started);
    observed
}

fn case_of_both_containers() -> Case {
    let message = "message: {resource: memory, containers: {el1: {request: '0'}, el2: {request: '0'}}}";
    case(&format!("{{evicted: [web], {message}}}"), "")
}

const JUST_STARTED: &str =
    "the kubelet had no statistics of el2 of web at the eviction: the container had just started";

/// A busy host started el2 when the node was already short of memory.
#[test]
fn a_message_without_a_container_that_had_just_started_is_inconclusive() {
    let case = case_of_both_containers();
    assert_inconclusive(&result(&case, with_start(45)), InconclusiveReason::StaleStatistics, JUST_STARTED);
    let early = result(&case, with_start(36));
    assert_eq!(early.verdict, Verdict::Failed, "{early:#?}");
}

/// The last start counts: that of the status, or of the event of all starts. The usage before it is
/// that of an earlier run.
#[test]
fn a_message_without_a_container_that_had_just_restarted_is_inconclusive() {
    let case = case_of_both_containers();
    let of_event = |second: u32| {
        let mut observed = with_start(20);
        let started = observed["events"].as_array_mut().unwrap().last_mut().unwrap();
        started["lastTimestamp"] = json!(format!("2026-11-21T00:45:{second:02}Z"));
        started["count"] = json!(2);
        observed
    };
    let of_status = |second: u32, present: &str| {
        let mut observed = with_start(20);
        let statuses = observed["podsFinal"][0]["status"]["containerStatuses"].as_array_mut().unwrap();
        let run = |start: u32| json!({"terminated": {"exitCode": 1, "startedAt": format!("2026-11-21T00:45:{start:02}Z")}});
        let mut restarted = json!({"name": "el2", "restartCount": 1, "lastState": run(20), "state": run(21)});
        restarted[present] = run(second);
        statuses.push(restarted);
        observed
    };
    for (mut restarted, is_stale) in [
        (of_event(45), true),
        (of_event(36), false),
        (of_status(45, "state"), true),
        (of_status(45, "lastState"), true),
        (of_status(36, "state"), false),
    ] {
        let sample = &mut restarted["samples"][0];
        let memory = json!({"time": "2026-11-21T00:45:30Z", "workingSetBytes": 200 << 20});
        let mut earlier = sample.clone();
        earlier["node"]["rlimit"]["time"] = json!("2026-11-21T00:45:31Z");
        earlier["pods"][0]["containers"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "el2", "memory": memory}));
        restarted["samples"].as_array_mut().unwrap().insert(0, earlier);
        let judged = result(&case, restarted);
        assert_eq!(judged.verdict == Verdict::Inconclusive, is_stale, "{judged:#?}");
        assert_eq!(judged.why.contains(JUST_STARTED), is_stale, "{}", judged.why);
    }
}
