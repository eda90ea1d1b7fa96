//! Whether a pod may start here (`pkg/kubelet/lifecycle/predicate.go`, and the scheduler's filters that it uses).

use std::collections::{BTreeMap, BTreeSet};

use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::Pod;
use serde_json::Value;

use super::Kubelet;
use super::worker::Worker;
use crate::machine::{Machine, PodUid};
use crate::registry::is_extended_resource;
use crate::store::Kind;
use crate::world::Ctx;

/// Why a pod may not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub reason: String,
    /// The event's message; the status says `Pod was rejected: ` before it.
    pub message: String,
}

/// Something of which too little is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shortage {
    pub resource: String,
    pub requested: i64,
    pub used: i64,
    pub capacity: i64,
}

/// Pods, and what they ask for, in the order in which the scheduler's fit looks at it.
const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

impl Kubelet {
    /// Whether a pod may start. A critical one has others killed for it: those are named.
    pub(super) fn admit(
        &mut self,
        worker: &Worker,
        machine: &mut Machine,
        ctx: &mut Ctx,
    ) -> Result<BTreeSet<PodUid>, Rejection> {
        if let Some(message) = self.rejects(&worker.object) {
            return Err(Rejection { reason: "Evicted".to_owned(), message });
        }
        let manifest = &worker.manifest;
        // Known to 1.28 but behind a gate that was off (SidecarContainers).
        if !self.identity.version.at_least(29)
            && let Some(container) = manifest.spec.init_containers.iter().find(|c| c.is_sidecar())
        {
            return Err(Rejection {
                reason: "InitContainerRestartPolicyForbidden".to_owned(),
                message: format!(
                    "Init container {:?} may not have a non-default restartPolicy",
                    container.name
                ),
            });
        }
        let Some(node) = ctx.store.get(Kind::Node, "", &self.identity.node).cloned() else {
            return Ok(BTreeSet::new());
        };
        let shortages = self.shortages(&manifest.pod, &node);
        let affine = matches_node(&manifest.spec.node_selector, &manifest.spec.affinity, &node);
        if manifest.pod.is_critical() && affine && !shortages.is_empty() {
            return self.preempt(worker, &shortages, machine, ctx);
        }
        if let Some(short) = shortages.first().filter(|_| !manifest.pod.is_critical()) {
            return Err(Rejection {
                reason: format!("OutOf{}", short.resource),
                message: format!(
                    "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}",
                    short.resource, short.requested, short.used, short.capacity
                ),
            });
        }
        if !affine {
            return Err(self.failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"));
        }
        if !tolerates(&worker.object["spec"]["tolerations"], &node["spec"]["taints"]) {
            return Err(self.failed("TaintToleration", "node(s) had taints that the pod didn't tolerate"));
        }
        Ok(BTreeSet::new())
    }

    /// What the filter said is told from 1.31.
    fn failed(&self, predicate: &str, why: &str) -> Rejection {
        let why = if self.identity.version.at_least(31) { format!(": {why}") } else { String::new() };
        Rejection { reason: predicate.to_owned(), message: format!("Predicate {predicate} failed{why}") }
    }

    fn shortages(&self, pod: &Pod, node: &Value) -> Vec<Shortage> {
        let allocatable = &node["status"]["allocatable"];
        let others: Vec<&Pod> = self
            .pods
            .workers
            .values()
            .filter(|worker| worker.is_active())
            .map(|worker| &worker.manifest.pod)
            .collect();
        let mut shortages = Vec::new();
        let there = i64::try_from(others.len()).unwrap_or(i64::MAX);
        let places = amount("pods", &allocatable["pods"]).unwrap_or(110);
        if there + 1 > places {
            let resource = "pods".to_owned();
            shortages.push(Shortage { resource, requested: 1, used: there, capacity: places });
        }
        // Those that the node does not have are not looked at (`removeMissingExtendedResources`).
        let spec = &pod.spec;
        let asked =
            spec.containers.iter().chain(&spec.init_containers).flat_map(|one| one.resources.requests.keys());
        let extended: BTreeSet<&str> =
            asked.map(String::as_str).filter(|name| is_extended_resource(name)).collect();
        for resource in RESOURCES.into_iter().chain(extended) {
            let requested = request(pod, resource);
            let Some(capacity) = amount(resource, &allocatable[resource]).filter(|_| requested > 0) else {
                continue;
            };
            let used = others.iter().map(|pod| request(pod, resource)).sum();
            if requested > capacity - used {
                let resource = resource.to_owned();
                shortages.push(Shortage { resource, requested, used, capacity });
            }
        }
        shortages
    }
}

/// What a pod asks for as the scheduler counts it, with sidecars; CPU in thousandths.
pub(super) fn request(pod: &Pod, resource: &str) -> i64 {
    let request = pod.request(&KubeletVersion::minor(34), resource);
    if resource == "cpu" { request.milli_value() } else { request.value() }
}

fn amount(resource: &str, quantity: &Value) -> Option<i64> {
    let quantity: evictlab_rules::quantity::Quantity = quantity.as_str()?.parse().ok()?;
    Some(if resource == "cpu" { quantity.milli_value() } else { quantity.value() })
}

/// Whether a node has the labels that a pod wants (`nodeSelector` and required node affinity).
fn matches_node(selector: &BTreeMap<String, String>, affinity: &Value, node: &Value) -> bool {
    let labels = &node["metadata"]["labels"];
    if selector.iter().any(|(key, value)| labels[key] != **value) {
        return false;
    }
    let required = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let Some(terms) = required["nodeSelectorTerms"].as_array() else { return true };
    terms.iter().any(|term| {
        let list = |field: &str| term[field].as_array().map_or(&[][..], Vec::as_slice);
        let (expressions, fields) = (list("matchExpressions"), list("matchFields"));
        // A term that says nothing matches nothing.
        (!expressions.is_empty() || !fields.is_empty())
            && expressions
                .iter()
                .all(|wanted| meets(wanted, labels[wanted["key"].as_str().unwrap_or_default()].as_str()))
            && fields.iter().all(|wanted| meets(wanted, node["metadata"]["name"].as_str()))
    })
}

fn meets(wanted: &Value, value: Option<&str>) -> bool {
    let values: Vec<&str> =
        wanted["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    match wanted["operator"].as_str().unwrap_or_default() {
        "In" => value.is_some_and(|value| values.contains(&value)),
        "NotIn" => value.is_none_or(|value| !values.contains(&value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number(value).zip(number(values.first().copied())).is_some_and(|(own, least)| own > least),
        "Lt" => number(value).zip(number(values.first().copied())).is_some_and(|(own, most)| own < most),
        _ => false,
    }
}

/// Whether a pod tolerates the taints that keep pods from running.
fn tolerates(tolerations: &Value, taints: &Value) -> bool {
    let tolerations = tolerations.as_array().map_or(&[][..], Vec::as_slice);
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    taints.as_array().into_iter().flatten().filter(|taint| taint["effect"] == "NoExecute").all(|taint| {
        tolerations.iter().any(|toleration| {
            let (key, effect) = (text(toleration, "key"), text(toleration, "effect"));
            let exists = toleration["operator"] == "Exists";
            (effect.is_empty() || effect == "NoExecute")
                && (key == text(taint, "key") || (key.is_empty() && exists))
                && (exists || text(toleration, "value") == text(taint, "value"))
        })
    })
}
