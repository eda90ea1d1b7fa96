//! Invariants of evictions under node pressure.

use super::history::UsageHistory;
use super::{EventEvidence, Finding, Invariant, InvariantOutcome};
use crate::message::{
    Annotations, NodePressure, Offender, ThresholdClause, pressure_eviction, reportable_containers,
};
use crate::pod::Container;
use crate::quantity::Quantity;
use crate::threshold::{Observation, Resource, Threshold};

pub(super) fn check(evidence: &EventEvidence<'_>, message: &NodePressure) -> Vec<Finding> {
    let mut findings = vec![check_annotations(evidence, message), check_pod_sentence(evidence, message)];
    findings.extend(check_candidates(evidence, message));
    findings.extend(check_usage_exceeds_request(message));
    findings.extend(check_requests(evidence, message));
    findings.extend(check_completeness(evidence, message));
    findings.extend(check_threshold(evidence, message));
    findings.extend(check_usage_in_summary(evidence, message));
    findings.extend(check_canonical_amounts(message));
    findings
}

/// Checks that measured amounts are printed in canonical form.
fn check_canonical_amounts(message: &NodePressure) -> Vec<Finding> {
    let available = message.threshold.iter().map(|clause| ("available", &clause.available));
    let offenders = message.pod.iter().chain(&message.containers);
    let amounts = available.chain(offenders.map(|Offender { name, usage, .. }| (name.as_str(), usage)));
    let finding = |(name, amount): (&str, &Quantity)| {
        let canonical = if message.resource.is_bytes() {
            Quantity::from_bytes(amount.value())
        } else {
            Quantity::from_count(amount.value())
        };
        let (expected, observed) = (canonical.to_string(), amount.to_string());
        let holds = expected == observed;
        let named = |text: &str| format!("{name}: {text}");
        Finding::proven(Invariant::AmountsAreCanonical, holds, named(&expected), named(&observed))
    };
    amounts.map(finding).collect()
}

fn check_annotations(evidence: &EventEvidence<'_>, message: &NodePressure) -> Finding {
    let expected = Annotations::new(message.resource, message.pod.as_ref(), &message.containers).to_map();
    let annotations = &evidence.event.annotations;
    // Without statistics, the kubelet writes neither offenders nor annotations.
    let without_offenders = message.containers.is_empty() && message.pod.is_none();
    let (holds, observed) = match Annotations::from_map(annotations) {
        Ok(None) => (without_offenders, format!("{annotations:?}")),
        Ok(Some(parsed)) => (parsed.to_map() == expected, format!("{annotations:?}")),
        Err(error) => (false, error.to_string()),
    };
    Finding::proven(Invariant::AnnotationsMatchTheMessage, holds, format!("{expected:?}"), observed)
}

fn check_pod_sentence(evidence: &EventEvidence<'_>, message: &NodePressure) -> Finding {
    let EventEvidence { version, pod, event, samples, .. } = evidence;
    let stats = samples.iter().rev().find_map(|sample| sample.pod(&pod.metadata.uid));
    let composed = pressure_eviction(version, pod, stats, message.resource, None).message.pod;
    let describe = |offender: &Option<Offender>| match offender {
        Some(Offender { name, request, .. }) => format!("Pod {name}, request is {request}"),
        None => "none".to_owned(),
    };
    let (expected, observed) = (describe(&composed), describe(&message.pod));
    let without_stats = stats.is_none_or(|stats| stats.working_set().is_none());
    let outcome = match (composed, &message.pod) {
        _ if expected == observed => InvariantOutcome::Holds,
        // Without statistics, neither the kubelet nor `pressure_eviction` names the pod.
        (Some(_), None) if event.annotations.is_empty() => InvariantOutcome::Unproven,
        (None, Some(_)) if without_stats && version.at_least(34) => InvariantOutcome::Unproven,
        _ => InvariantOutcome::Violated,
    };
    Finding::new(Invariant::PodSentenceFollowsTheVersion, outcome, expected, observed)
}

fn check_candidates(evidence: &EventEvidence<'_>, message: &NodePressure) -> Vec<Finding> {
    if message.containers.is_empty() {
        return vec![];
    }
    let reportable: Vec<_> =
        reportable_containers(evidence.version, evidence.pod).map(|spec| spec.name.as_str()).collect();
    let names: Vec<_> = message.containers.iter().map(|offender| offender.name.as_str()).collect();
    let is_unique = |name: &&str| names.iter().filter(|other| *other == name).count() == 1;
    let holds = names.iter().all(|name| reportable.contains(name) && is_unique(name));
    let expected = format!("some of {}, each once", reportable.join(", "));
    vec![Finding::proven(Invariant::OffendersAreCandidates, holds, expected, names.join(", "))]
}

fn check_usage_exceeds_request(message: &NodePressure) -> Vec<Finding> {
    let finding = |Offender { name, usage, request }: &Offender| {
        let expected = format!("{name}: more than {request}");
        let observed = format!("{name}: {usage}");
        Finding::proven(Invariant::UsageExceedsRequest, usage > request, expected, observed)
    };
    message.containers.iter().map(finding).collect()
}

fn check_requests(evidence: &EventEvidence<'_>, message: &NodePressure) -> Vec<Finding> {
    let finding = |Offender { name, request, .. }: &Offender| {
        let spec = reportable_containers(evidence.version, evidence.pod).find(|spec| spec.name == *name)?;
        let expected = spec.request_or_zero(message.resource.as_str()).to_string();
        let holds = expected == request.to_string();
        let (expected, observed) = (format!("{name}: {expected}"), format!("{name}: {request}"));
        Some(Finding::proven(Invariant::RequestMatchesSpec, holds, expected, observed))
    };
    message.containers.iter().filter_map(finding).collect()
}

fn check_completeness(evidence: &EventEvidence<'_>, message: &NodePressure) -> Vec<Finding> {
    // Without statistics, the kubelet names no container and writes no annotations.
    let names_containers = message.resource.is_bytes();
    if !names_containers || evidence.event.annotations.is_empty() {
        return vec![];
    }
    let containers = reportable_containers(evidence.version, evidence.pod);
    containers.map(|container| check_is_named(evidence, message, container)).collect()
}

/// Checks that the message names `container` if it was over its request.
fn check_is_named(evidence: &EventEvidence<'_>, message: &NodePressure, container: &Container) -> Finding {
    let name = &container.name;
    let request = container.request_or_zero(message.resource.as_str());
    let history = UsageHistory::of_container(evidence.samples, evidence.pod, name, message.resource);
    let finding = |outcome, observed: String| {
        let expected = format!("{name}: named if it was over {request}");
        Finding::new(Invariant::OffendersAreComplete, outcome, expected, format!("{name}: {observed}"))
    };
    let is_over = |bytes: &i64| Quantity::from_bytes(*bytes) > request;
    if message.containers.iter().any(|offender| offender.name == *name) {
        return finding(InvariantOutcome::Holds, "named".to_owned());
    }
    let Some(peak) = history.peak().filter(is_over) else {
        return finding(InvariantOutcome::Holds, "never seen over the request".to_owned());
    };
    // A running container always has a working set, so without a request it was over the request at
    // the event. With a request, it may have been within the request for a moment.
    let usage = evidence.event.at.and_then(|at| {
        history.cached_at(at).or_else(|| history.minimum_around(at).filter(|_| request.is_zero()))
    });
    match usage.filter(is_over) {
        Some(bytes) => {
            let usage = Quantity::from_bytes(bytes);
            finding(InvariantOutcome::Violated, format!("not named, with a usage of {usage} at the event"))
        }
        None => {
            let peak = Quantity::from_bytes(peak);
            let observed = format!("not named; samples show up to {peak}, the usage at the event is unknown");
            finding(InvariantOutcome::Unproven, observed)
        }
    }
}

fn check_threshold(evidence: &EventEvidence<'_>, message: &NodePressure) -> Vec<Finding> {
    let Some(clause) = &message.threshold else { return vec![] };
    let thresholds = resolve_thresholds(evidence, message.resource, clause);
    vec![check_available(clause, &thresholds), check_configured(clause, &thresholds)]
}

/// The configured thresholds of a resource, in the units of the message.
struct ResolvedThresholds {
    /// The quantities, as the kubelet prints them.
    quantities: Vec<String>,
    /// False if a threshold is a percentage of an unknown capacity.
    is_complete: bool,
    /// The amount that must be available for the threshold of the message not to be met.
    needed: Quantity,
}

fn resolve_thresholds(
    evidence: &EventEvidence<'_>,
    resource: Resource,
    clause: &ThresholdClause,
) -> ResolvedThresholds {
    let quantity = clause.quantity.to_string();
    let mut thresholds =
        ResolvedThresholds { quantities: vec![], is_complete: true, needed: clause.quantity.clone() };
    let configured = evidence.thresholds.iter().filter(|threshold| threshold.signal.resource() == resource);
    for (threshold, capacity) in configured
        .flat_map(|threshold| capacities(evidence, threshold).into_iter().map(move |one| (threshold, one)))
    {
        let Some(resolved) = threshold.value.resolve(capacity.as_ref()) else {
            thresholds.is_complete = false;
            continue;
        };
        let resolved = resolved.to_string();
        let min_reclaim =
            threshold.min_reclaim.as_ref().and_then(|reclaim| reclaim.resolve(capacity.as_ref()));
        // A met threshold stays met until its minimum reclaim is available as well, which the
        // message does not contain.
        if let Some(min_reclaim) = min_reclaim.filter(|_| resolved == quantity) {
            thresholds.needed = thresholds.needed.max(clause.quantity.clone() + &min_reclaim);
        }
        if !thresholds.quantities.contains(&resolved) {
            thresholds.quantities.push(resolved);
        }
    }
    thresholds
}

fn check_available(clause: &ThresholdClause, thresholds: &ResolvedThresholds) -> Finding {
    let needed = &thresholds.needed;
    Finding::proven(
        Invariant::AvailableIsBelowTheThreshold,
        clause.available < *needed,
        format!("less than {needed}"),
        clause.available.to_string(),
    )
}

fn check_configured(clause: &ThresholdClause, thresholds: &ResolvedThresholds) -> Finding {
    let ResolvedThresholds { quantities, is_complete, .. } = thresholds;
    let quantity = clause.quantity.to_string();
    let outcome = if quantities.contains(&quantity) {
        InvariantOutcome::Holds
    } else if quantities.is_empty() || !is_complete {
        InvariantOutcome::Unproven
    } else {
        InvariantOutcome::Violated
    };
    let expected =
        if quantities.is_empty() { "a configured threshold".to_owned() } else { quantities.join(" or ") };
    Finding::new(Invariant::ThresholdIsConfigured, outcome, expected, quantity)
}

/// Returns the capacities that percentages of a threshold may refer to, or `None` alone if no
/// sample has one. The capacity of `allocatableMemory.available` changes when the kubelet sets the
/// limit of the pods' cgroup.
fn capacities(evidence: &EventEvidence<'_>, threshold: &Threshold) -> Vec<Option<Quantity>> {
    let mut found: Vec<Option<Quantity>> = Vec::new();
    for sample in evidence.samples {
        let observed = Observation::from_node_stats(threshold.signal, &sample.node);
        let capacity = observed.and_then(|observed| observed.capacity);
        if capacity.is_some() && !found.contains(&capacity) {
            found.push(capacity);
        }
    }
    if found.is_empty() { vec![None] } else { found }
}

fn check_usage_in_summary(evidence: &EventEvidence<'_>, message: &NodePressure) -> Vec<Finding> {
    let EventEvidence { pod, samples, .. } = evidence;
    let of_containers = message.containers.iter().map(|offender| {
        let history = UsageHistory::of_container(samples, pod, &offender.name, message.resource);
        check_usage(evidence, message.resource, offender, &history)
    });
    let of_pod = message.pod.iter().map(|offender| {
        check_usage(evidence, message.resource, offender, &UsageHistory::of_pod(samples, pod))
    });
    of_containers.chain(of_pod).collect()
}

fn check_usage(
    evidence: &EventEvidence<'_>,
    resource: Resource,
    offender: &Offender,
    history: &UsageHistory,
) -> Finding {
    let Offender { name, usage, .. } = offender;
    let bytes = usage.value();
    let node_memory = evidence.samples.iter().find_map(|sample| sample.node.memory.as_ref()?.capacity());
    let capacity = node_memory.filter(|_| resource == Resource::Memory);
    let cached =
        evidence.event.at.and_then(|at| history.cached_at(at).or_else(|| history.constant_around(at)));
    let (outcome, expected) = if history.contains(bytes) {
        (InvariantOutcome::Holds, "a usage in the Summary".to_owned())
    } else if let Some(cached) = cached {
        let cached = Quantity::from_bytes(cached);
        (InvariantOutcome::Violated, format!("{cached}, as measured before and after"))
    } else if let Some(capacity) = capacity.filter(|capacity| bytes > *capacity) {
        (InvariantOutcome::Violated, format!("at most the node's {}", Quantity::from_bytes(capacity)))
    } else {
        (InvariantOutcome::Unproven, "a usage in the Summary, with samples too rare to show it".to_owned())
    };
    let (expected, observed) = (format!("{name}: {expected}"), format!("{name}: {usage}"));
    Finding::new(Invariant::UsageIsInTheSummary, outcome, expected, observed)
}
