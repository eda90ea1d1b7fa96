//! Evictions under node pressure.

use super::history::History;
use super::{Evidence, Finding, Invariant, Outcome};
use crate::message::{Annotations, NodePressure, Offender, candidates, pressure_eviction};
use crate::pod::Container;
use crate::quantity::Quantity;
use crate::threshold::{Observation, Resource};

pub(super) fn check(evidence: &Evidence<'_>, message: &NodePressure) -> Vec<Finding> {
    let mut findings = vec![annotations(evidence, message), pod_sentence(evidence, message)];
    findings.extend(named(evidence, message));
    findings.extend(figures(message));
    findings.extend(requests(evidence, message));
    findings.extend(complete(evidence, message));
    findings.extend(threshold(evidence, message));
    findings.extend(usages(evidence, message));
    findings
}

fn annotations(evidence: &Evidence<'_>, message: &NodePressure) -> Finding {
    let written = Annotations::of(message.resource, message.pod.as_ref(), &message.containers).write();
    let observed = &evidence.event.annotations;
    // A pod without stats is evicted without annotations, and then without offenders.
    let nobody = message.containers.is_empty() && message.pod.is_none();
    let holds = match Annotations::read(observed) {
        Ok(None) => nobody,
        Ok(Some(read)) => read.write() == written,
        Err(_) => false,
    };
    let observed = match Annotations::read(observed) {
        Err(error) => error.to_string(),
        Ok(_) => format!("{observed:?}"),
    };
    Finding::of(Invariant::AnnotationsMatchTheMessage, holds, format!("{written:?}"), observed)
}

fn pod_sentence(evidence: &Evidence<'_>, message: &NodePressure) -> Finding {
    let Evidence { version, pod, event, samples, .. } = evidence;
    let stats = samples.iter().rev().find_map(|sample| sample.pod(&pod.metadata.uid));
    let written = pressure_eviction(version, pod, stats, message.resource, None).message.pod;
    let who = |offender: &Option<Offender>| match offender {
        Some(Offender { name, request, .. }) => format!("Pod {name}, request is {request}"),
        None => "none".to_owned(),
    };
    let (expected, observed) = (who(&written), who(&message.pod));
    let outcome = match (written, &message.pod) {
        _ if expected == observed => Outcome::Holds,
        // Without stats the kubelet leaves the sentence out, and so does the reckoning here.
        (Some(_), None) if event.annotations.is_empty() => Outcome::Unproven,
        (None, Some(_))
            if stats.is_none_or(|stats| stats.working_set().is_none()) && version.at_least(34) =>
        {
            Outcome::Unproven
        }
        _ => Outcome::Violated,
    };
    Finding::new(Invariant::PodSentenceFollowsTheVersion, outcome, expected, observed)
}

fn named(evidence: &Evidence<'_>, message: &NodePressure) -> Option<Finding> {
    if message.containers.is_empty() {
        return None;
    }
    let may: Vec<_> = candidates(evidence.version, evidence.pod).map(|own| own.name.as_str()).collect();
    let names: Vec<_> = message.containers.iter().map(|offender| offender.name.as_str()).collect();
    let once = |name: &&str| names.iter().filter(|other| *other == name).count() == 1;
    let holds = names.iter().all(|name| may.contains(name) && once(name));
    let expected = format!("some of {}, each once", may.join(", "));
    Some(Finding::of(Invariant::OffendersAreCandidates, holds, expected, names.join(", ")))
}

fn figures(message: &NodePressure) -> impl Iterator<Item = Finding> {
    message.containers.iter().map(|Offender { name, usage, request }| {
        let expected = format!("{name}: more than {request}");
        Finding::of(Invariant::UsageExceedsRequest, usage > request, expected, format!("{name}: {usage}"))
    })
}

fn requests(evidence: &Evidence<'_>, message: &NodePressure) -> Vec<Finding> {
    let resource = message.resource.as_str();
    let finding = |offender: &Offender| {
        let own = candidates(evidence.version, evidence.pod).find(|own| own.name == offender.name)?;
        let own = printed_request(own, resource);
        let Offender { name, request, .. } = offender;
        let holds = own == request.to_string();
        Some(Finding::of(
            Invariant::RequestIsThePods,
            holds,
            format!("{name}: {own}"),
            format!("{name}: {request}"),
        ))
    };
    message.containers.iter().filter_map(finding).collect()
}

fn printed_request(container: &Container, resource: &str) -> String {
    container.request(resource).unwrap_or(&Quantity::ZERO).to_string()
}

fn complete(evidence: &Evidence<'_>, message: &NodePressure) -> Vec<Finding> {
    let Evidence { version, pod, event, samples, .. } = evidence;
    let resource = message.resource;
    // A pod without stats is evicted without any of this.
    if matches!(resource, Resource::Inodes | Resource::Pids) || event.annotations.is_empty() {
        return vec![];
    }
    let finding = |container: &Container| {
        let name = &container.name;
        let named = message.containers.iter().any(|offender| offender.name == *name);
        let request = container.request(resource.as_str()).cloned().unwrap_or(Quantity::ZERO);
        let over = |bytes: i64| Quantity::from_bytes(bytes) > request;
        let history = History::of_container(samples, pod, name, resource);
        let peak = history.peak().filter(|peak| over(*peak));
        let expected = format!("{name}: named if it was over {request}");
        let invariant = Invariant::OffendersAreComplete;
        if named || peak.is_none() {
            let observed =
                if named { format!("{name}: named") } else { format!("{name}: never seen over {request}") };
            return Finding::new(invariant, Outcome::Holds, expected, observed);
        }
        // Nobody runs with a working set of nothing; a request that is not nothing may have been kept for a moment.
        let sure = event.at.and_then(|at| {
            history.pinned(at).or_else(|| history.ran_through(at).filter(|_| request.is_zero()))
        });
        match sure.filter(|bytes| over(*bytes)) {
            Some(bytes) => {
                let observed =
                    format!("{name}: not named, at {} when the event was made", Quantity::from_bytes(bytes));
                Finding::new(invariant, Outcome::Violated, expected, observed)
            }
            None => {
                let peak = Quantity::from_bytes(peak.unwrap_or_default());
                let observed =
                    format!("{name}: not named; samples show up to {peak}, none of them surely at the event");
                Finding::new(invariant, Outcome::Unproven, expected, observed)
            }
        }
    };
    candidates(version, pod).map(finding).collect()
}

fn threshold(evidence: &Evidence<'_>, message: &NodePressure) -> Vec<Finding> {
    let Some(clause) = &message.threshold else { return vec![] };
    let configured =
        evidence.thresholds.iter().filter(|threshold| threshold.signal.resource() == message.resource);
    let given = clause.quantity.to_string();
    let mut texts = vec![];
    let mut unknown = false;
    // Once met, a threshold is met until as much more is left as its minimum reclaim; the message does not give that.
    let mut needed = vec![clause.quantity.clone()];
    for threshold in configured {
        let mut nodes = evidence.samples.iter().map(|sample| &sample.node);
        let capacity = nodes.find_map(|node| Observation::of(threshold.signal, node)?.capacity);
        match threshold.amount.of(capacity.as_ref()) {
            Some(quantity) => {
                let reclaim =
                    threshold.min_reclaim.as_ref().and_then(|reclaim| reclaim.of(capacity.as_ref()));
                if let Some(reclaim) = reclaim.filter(|_| quantity.to_string() == given) {
                    needed.push(clause.quantity.clone() + &reclaim);
                }
                texts.push(quantity.to_string());
            }
            None => unknown = true,
        }
    }
    let needed = needed.into_iter().max().unwrap_or_else(|| clause.quantity.clone());
    let below = Finding::of(
        Invariant::AvailableIsBelowTheThreshold,
        clause.available < needed,
        format!("less than {needed}"),
        clause.available.to_string(),
    );
    let outcome = match texts.contains(&given) {
        true => Outcome::Holds,
        false if texts.is_empty() || unknown => Outcome::Unproven,
        false => Outcome::Violated,
    };
    let expected =
        if texts.is_empty() { "what the node is configured with".to_owned() } else { texts.join(" or ") };
    vec![below, Finding::new(Invariant::ThresholdIsConfigured, outcome, expected, given)]
}

fn usages(evidence: &Evidence<'_>, message: &NodePressure) -> Vec<Finding> {
    let Evidence { pod, event, samples, .. } = evidence;
    let memory = samples.iter().find_map(|sample| sample.node.memory.as_ref()?.capacity());
    let capacity = memory.filter(|_| message.resource == Resource::Memory);
    let finding = |offender: &Offender, history: &History| {
        let Offender { name, usage, .. } = offender;
        let bytes = usage.value();
        let pinned = event.at.and_then(|at| history.pinned(at));
        let (outcome, expected) = if history.contains(bytes) {
            (Outcome::Holds, format!("{name}: a figure of the Summary"))
        } else if let Some(pinned) = pinned {
            (
                Outcome::Violated,
                format!("{name}: {}, as measured before and after", Quantity::from_bytes(pinned)),
            )
        } else if let Some(capacity) = capacity.filter(|capacity| bytes > *capacity) {
            (Outcome::Violated, format!("{name}: no more than the node's {}", Quantity::from_bytes(capacity)))
        } else {
            (
                Outcome::Unproven,
                format!("{name}: a figure of the Summary, of which too few samples were taken"),
            )
        };
        Finding::new(Invariant::UsageIsInTheSummary, outcome, expected, format!("{name}: {usage}"))
    };
    let of_containers = message.containers.iter().map(|offender| {
        finding(offender, &History::of_container(samples, pod, &offender.name, message.resource))
    });
    let of_pod = message.pod.iter().map(|offender| finding(offender, &History::of_pod(samples, pod)));
    of_containers.chain(of_pod).collect()
}
