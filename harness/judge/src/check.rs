//! The check of an expectation: that of a case, or that of one of its known bugs.

use std::collections::BTreeSet;

use evictlab_rules::message::{Annotations, EvictionMessage};

use crate::assertions::{self, Undecided};
use crate::case_evidence::{CaseEvidence, PodEvidence};
use crate::case_result::Check;
use crate::message_diff;
use crate::termination_time::{TerminationBounds, check_termination_time};
use crate::verdict::Inconclusive;
use evictlab_case::{Case, ExpectedApiRejection, ExpectedMessage, KnownBug, Name, Presence, Witness};
use evictlab_evidence::{ContainerStatusExt, Scope};
use k8s_openapi::api::core::v1::ContainerStateTerminated;

/// A complete expectation.
pub(crate) struct Expectation<'a> {
    case: &'a Case,
    evicted: &'a [Name],
    message: Option<ExpectedMessage>,
    termination: Option<TerminationBounds>,
    bug: Option<&'a KnownBug>,
}

/// Results of the check of an expectation.
#[derive(Default)]
pub(crate) struct CheckResults {
    /// The checks.
    pub(crate) checks: Vec<Check>,
    /// Diff of the expected and the observed message.
    pub(crate) diff: String,
    /// The first check that was not possible because evidence is missing.
    pub(crate) evidence_lost: Option<Inconclusive>,
    /// The first assertion that cannot be evaluated at all.
    pub(crate) error: Option<String>,
}

impl CheckResults {
    /// Returns whether all checks hold.
    pub(crate) fn hold(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }

    fn record_lost_evidence(&mut self, lost: Inconclusive) {
        self.evidence_lost.get_or_insert(lost);
    }
}

impl<'a> Expectation<'a> {
    /// Returns the expectation of a case.
    pub(crate) fn of(case: &'a Case) -> Self {
        let expect = &case.expect;
        let termination = TerminationBounds::new(expect.killed_after, expect.killed_within);
        Self { case, evicted: &expect.evicted, message: expect.message.clone(), termination, bug: None }
    }

    /// Returns the expectation of a known bug. It inherits from the case whatever it does not
    /// state.
    pub(crate) fn of_bug(case: &'a Case, bug: &'a KnownBug) -> Self {
        let of_case = Self::of(case);
        let message = match (&bug.message, of_case.message) {
            (Some(of_bug), Some(of_case)) => Some(inherit(of_bug, &of_case)),
            (of_bug, of_case) => of_bug.clone().or(of_case),
        };
        Self {
            case,
            evicted: bug.evicted.as_deref().unwrap_or(of_case.evicted),
            message,
            termination: TerminationBounds::new(bug.killed_after, None).or(of_case.termination),
            bug: Some(bug),
        }
    }

    /// Returns the names of the pods that are expected to be evicted.
    pub(crate) fn evicted(&self) -> &'a [Name] {
        self.evicted
    }

    /// Returns the expected message.
    pub(crate) fn message(&self) -> Option<&ExpectedMessage> {
        self.message.as_ref()
    }

    /// Compares the expectation with the evidence.
    pub(crate) fn check(&self, evidence: &CaseEvidence<'_>) -> CheckResults {
        let mut results = CheckResults::default();
        self.check_evicted_pods(evidence, &mut results);
        let evicted: Vec<_> = self.evicted.iter().filter_map(|name| evidence.pod(name.as_str())).collect();
        if let Some(first) = evicted.first().filter(|pod| pod.was_evicted()) {
            self.check_message(first, &mut results);
            match self.termination.map(|bounds| check_termination_time(bounds, first, &evidence.samples)) {
                Some(Ok(check)) => results.checks.push(check),
                Some(Err(lost)) => results.record_lost_evidence(lost),
                None => {}
            }
        }
        for pod in evicted.into_iter().filter(|pod| pod.was_evicted()) {
            self.check_eviction(pod, evidence, &mut results);
        }
        for (pod, containers) in &self.case.expect.summary {
            check_summary(pod.as_str(), containers, evidence, &mut results);
        }
        if let Some(expected) = &self.case.expect.oom_killed {
            check_oom_kills(expected, evidence, &mut results);
        }
        let of_bug = self.bug.and_then(|bug| bug.rejected.as_ref());
        if let Some(expected) = of_bug.or(self.case.expect.rejected.as_ref()) {
            check_rejected_pods(expected, evidence, &mut results);
        }
        if let Some(expected) = &self.case.expect.api_rejection {
            results.checks.push(self.check_api_rejection(expected, evidence));
        }
        let scope = Scope::of(evidence.observations);
        let assertions = assertions::applicable(self.case, self.bug, evidence.observations);
        for assertion in assertions {
            match assertions::check(assertion, &scope, evidence) {
                Ok(check) => results.checks.push(check),
                Err(Undecided::Lost(lost)) => results.record_lost_evidence(lost),
                Err(Undecided::TooCostly(why)) => results.error = results.error.or(Some(why)),
            }
        }
        results
    }

    /// Checks which pods are evicted. An eviction that was reported decides the check; that a pod
    /// was not evicted does so only if its end was observed.
    fn check_evicted_pods(&self, evidence: &CaseEvidence<'_>, results: &mut CheckResults) {
        let is_expected = |pod: &PodEvidence<'_>| contains(self.evicted, pod);
        let may_be_evicted = |pod: &PodEvidence<'_>| contains(&self.case.expect.may_be_evicted, pod);
        let pods: Vec<_> = evidence.pods.iter().filter(|pod| !may_be_evicted(pod)).collect();
        let (expected, observed) =
            (describe_evicted(&pods, is_expected), describe_evicted(&pods, |pod| pod.was_evicted()));
        let all_known = self.evicted.iter().all(|name| evidence.pod(name.as_str()).is_some());
        let holds = all_known && expected == observed;
        let is_violated = |pod: &&PodEvidence<'_>| match (pod.was_evicted(), is_expected(pod)) {
            (true, is_expected) => !is_expected,
            (false, is_expected) => is_expected && evidence.unknown_end(pod).is_none(),
        };
        let unknown = pods.iter().filter(|pod| !pod.was_evicted()).find_map(|pod| evidence.unknown_end(pod));
        match unknown {
            Some(lost) if all_known && !pods.iter().copied().any(|pod| is_violated(&pod)) => {
                results.record_lost_evidence(lost);
            }
            _ => {
                let name = "evicted pods".to_owned();
                results.checks.push(Check { name, holds, expected, observed });
            }
        }
    }

    fn check_message(&self, pod: &PodEvidence<'_>, results: &mut CheckResults) {
        let Some(expected) = &self.message else { return };
        let observed = pod.message().unwrap_or_default().parse::<EvictionMessage>();
        if let Err(error) = &observed {
            let expected = "an eviction message".to_owned();
            let observed = error.to_string();
            results.checks.push(Check { name: "message".to_owned(), holds: false, expected, observed });
        }
        let comparison = message_diff::compare(expected, observed.ok().as_ref());
        results.checks.extend(comparison.checks);
        results.diff = comparison.diff;
    }

    /// Checks the reports of the eviction of one pod. That they agree is an invariant.
    fn check_eviction(&self, pod: &PodEvidence<'_>, evidence: &CaseEvidence<'_>, results: &mut CheckResults) {
        let expect = &self.case.expect;
        let unknown_status = evidence.unknown_end(pod).filter(|_| pod.status.is_none());
        for witness in expect.witnesses.iter().flatten() {
            match &unknown_status {
                Some(lost) if *witness != Witness::Event => results.record_lost_evidence(lost.clone()),
                _ => check_witness(*witness, pod, results),
            }
        }
        if let Some(presence) = expect.annotations {
            check_annotations(presence, pod, results);
        }
        if let (Some(_), Some(lost)) = (expect.disruption_target, &unknown_status) {
            results.record_lost_evidence(lost.clone());
        } else if let Some(presence) = expect.disruption_target {
            let name = format!("DisruptionTarget of {}", pod.name);
            results.checks.push(check_presence(name, presence, pod.condition.map(str::to_owned)));
        }
    }

    fn check_api_rejection(&self, expected: &ExpectedApiRejection, evidence: &CaseEvidence<'_>) -> Check {
        let ephemeral = self.case.ephemeral_containers.first();
        let pod = ephemeral.map(|container| container.pod.as_str()).unwrap_or_default();
        let message = expected.message.replace("$(POD)", pod);
        let expected = format!("{} {}: {message}", expected.code, expected.reason);
        let answer = evidence.ephemeral_container_error;
        let observed = answer.map(|answer| format!("{} {}: {}", answer.code, answer.reason, answer.message));
        let holds = observed.as_ref() == Some(&expected);
        let observed = observed.unwrap_or_else(|| "the API accepted it".to_owned());
        Check { name: "API rejection".to_owned(), holds, expected, observed }
    }
}

fn contains(names: &[Name], pod: &PodEvidence<'_>) -> bool {
    names.iter().any(|name| name.as_str() == pod.name)
}

/// Describes which pods are evicted and which are not.
fn describe_evicted(pods: &[&PodEvidence<'_>], is_evicted: impl Fn(&PodEvidence<'_>) -> bool) -> String {
    let (evicted, others): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| is_evicted(pod));
    let names =
        |pods: Vec<&PodEvidence<'_>>| pods.iter().map(|pod| pod.name.as_str()).collect::<Vec<_>>().join(", ");
    let evicted = if evicted.is_empty() { "none".to_owned() } else { format!("evicted: {}", names(evicted)) };
    if others.is_empty() { evicted } else { format!("{evicted}; not evicted: {}", names(others)) }
}

/// Returns the bug's expected message, completed from that of the case.
fn inherit(of_bug: &ExpectedMessage, of_case: &ExpectedMessage) -> ExpectedMessage {
    ExpectedMessage {
        resource: of_bug.resource.or(of_case.resource),
        containers: of_bug.containers.clone().or_else(|| of_case.containers.clone()),
        pod: of_bug.pod.clone().or_else(|| of_case.pod.clone()),
        emptydir_limit: of_bug.emptydir_limit.clone().or_else(|| of_case.emptydir_limit.clone()),
        pod_limit: of_bug.pod_limit.clone().or_else(|| of_case.pod_limit.clone()),
        container_limit: of_bug.container_limit.clone().or_else(|| of_case.container_limit.clone()),
    }
}

/// Checks that a report of the eviction exists.
fn check_witness(witness: Witness, pod: &PodEvidence<'_>, results: &mut CheckResults) {
    let (name, message) = match witness {
        Witness::Event => ("event", pod.events.first().map(|event| event.message.as_str())),
        Witness::Status => ("status", pod.status),
        Witness::Condition => ("condition", pod.condition),
    };
    // Events are delivered at best effort: a missing event is not a fault of the kubelet.
    if witness == Witness::Event && message.is_none() {
        return results.record_lost_evidence(pod.missing_event());
    }
    let name = format!("{name} of {}", pod.name);
    results.checks.push(check_presence(name, Presence::Present, message.map(str::to_owned)));
}

fn check_annotations(presence: Presence, pod: &PodEvidence<'_>, results: &mut CheckResults) {
    let Some(event) = pod.events.first() else {
        let mut lost = pod.missing_event();
        lost.why.push_str(", and its annotations with it");
        return results.record_lost_evidence(lost);
    };
    let is_offender = |key: &&String| Annotations::is_key(key);
    let keys: Vec<_> = event.annotations.keys().filter(is_offender).map(String::as_str).collect();
    let observed = (!keys.is_empty()).then(|| keys.join(", "));
    results.checks.push(check_presence(format!("annotations of {}", pod.name), presence, observed));
}

fn check_presence(name: String, presence: Presence, observed: Option<String>) -> Check {
    let (expected, holds) = match presence {
        Presence::Present => ("present", observed.is_some()),
        Presence::Absent => ("absent", observed.is_none()),
    };
    let observed = observed.unwrap_or_else(|| "absent".to_owned());
    Check { name, holds, expected: expected.to_owned(), observed }
}

/// Checks that the last sample that lists the pod lists exactly these containers.
fn check_summary(pod: &str, containers: &[Name], evidence: &CaseEvidence<'_>, results: &mut CheckResults) {
    if evidence.samples.is_empty() {
        return results.record_lost_evidence(evidence.no_sample("the node returned no Summary"));
    }
    let uid = evidence.pod(pod).map(|pod| pod.pod.metadata.uid.as_str()).unwrap_or_default();
    let last = evidence.samples.iter().rev().find_map(|sample| sample.pod(uid));
    let join = |names: Vec<&str>| {
        let mut names = names;
        names.sort_unstable();
        names.join(", ")
    };
    let expected = join(containers.iter().map(Name::as_str).collect());
    let observed = last.map(|pod| join(pod.containers.iter().map(|stats| stats.name.as_str()).collect()));
    let holds = observed.as_ref() == Some(&expected);
    let observed = observed.unwrap_or_else(|| "no sample lists the pod".to_owned());
    let name = format!("the Summary lists containers of {pod}");
    results.checks.push(Check { name, holds, expected, observed });
}

/// Checks which pods the kubelet rejected at admission. Pods that were not created yet count as
/// admitted.
fn check_rejected_pods(expected: &[Name], evidence: &CaseEvidence<'_>, results: &mut CheckResults) {
    let rejected = evidence.pods.iter().filter(|pod| pod.admission_rejection.is_some());
    let observed: BTreeSet<&str> = rejected.map(|pod| pod.name.as_str()).collect();
    let expected: BTreeSet<&str> = expected.iter().map(Name::as_str).collect();
    let holds = expected == observed;
    let missed = || evidence.pods.iter().filter(|pod| pod.admission_rejection.is_none());
    match missed().find_map(|pod| evidence.unknown_end(pod)) {
        Some(lost) if observed.is_subset(&expected) && !holds => results.record_lost_evidence(lost),
        _ => results.checks.push(Check {
            name: "pods rejected at admission".to_owned(),
            holds,
            expected: describe_names(expected),
            observed: describe_names(observed),
        }),
    }
}

/// Lists names, or `none`.
fn describe_names(names: BTreeSet<&str>) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Checks which containers the kernel OOM-killed, now or before their last restart.
fn check_oom_kills(expected: &[Name], evidence: &CaseEvidence<'_>, results: &mut CheckResults) {
    if let Some(lost) = evidence.pods.iter().find_map(|pod| evidence.unknown_end(pod)) {
        return results.record_lost_evidence(lost);
    }
    let is_oom_kill =
        |terminated: &ContainerStateTerminated| terminated.reason.as_deref() == Some("OOMKilled");
    let statuses = evidence.pods.iter().flat_map(PodEvidence::container_statuses);
    let killed = statuses.filter(|status| {
        let terminations = [status.terminated(), status.last_terminated()];
        terminations.into_iter().flatten().any(is_oom_kill)
    });
    let expected = describe_names(expected.iter().map(Name::as_str).collect());
    let observed = describe_names(killed.map(|status| status.name.as_str()).collect());
    let holds = expected == observed;
    results.checks.push(Check { name: "OOM-killed containers".to_owned(), holds, expected, observed });
}
