//! The types of a case file. The JSON Schema of case files is generated from them.

use std::collections::{BTreeMap, BTreeSet};

use evictlab_fault::Fault;
use evictlab_rules::CgroupVersion;
use evictlab_rules::invariant::Invariant;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::action::{NodeChange, ResizableResource, Resize};
use crate::assertion::Assertion;
use crate::expect::{Expect, ExpectedMessage};
use crate::expression::{Expression, KeysRead, Variable};
use crate::manifest_types::containers_of;
use crate::node_setup::{NodeSetup, PodPlacement};
use crate::positions::PathSegment;
use crate::pressure::Pressure;
use crate::step::Step;
use crate::values::{DurationText, KubeletRequirement, Name, QuantityText, Upstream};
use crate::yaml_path;

/// Default of the kubelet's `maxPods`: more replicas do not start on a node.
const MAX_PODS: u64 = 110;

/// One behaviour of the kubelet: the pods and the pressure on a node, and the expected outcome.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Case {
    /// Name of the case; must equal the file name without `.yaml`.
    pub name: Name,
    /// The behaviour that the case verifies, in one sentence.
    pub about: String,
    /// Conclusion to draw if the case fails.
    #[serde(default)]
    pub when_it_fails: Option<String>,
    /// Ginkgo labels, such as `Serial`, `Disruptive`, `Slow`, `Feature:Eviction`.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Upstream issues and pull requests that the case covers.
    #[serde(default)]
    pub upstream: Vec<Upstream>,
    /// Kubelet versions that the case applies to; skipped on others.
    #[serde(default)]
    pub kubelet: KubeletRequirement,
    /// cgroup version that the case applies to; skipped on the other.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupVersion>,
    /// Node pressure that the case creates; absent for a case without pressure.
    #[serde(default)]
    pub pressure: Option<Pressure>,
    /// Fields merged into the KubeletConfiguration of the node during the case.
    #[serde(default)]
    pub kubelet_config: Map<String, Value>,
    /// Changes to the node during the case.
    #[serde(default)]
    pub node: NodeSetup,
    /// Values of priority classes, by name. Pods refer to them in `priorityClassName`; evictlab
    /// creates them under unique names.
    #[serde(default)]
    pub priority_classes: BTreeMap<Name, i32>,
    /// Overheads of runtime classes, by name: CPU and memory of each pod that refers to the class
    /// in `runtimeClassName`. Their handler is `runc`; evictlab creates them under unique names.
    #[serde(default)]
    pub runtime_classes: BTreeMap<Name, BTreeMap<ResizableResource, QuantityText>>,
    /// Static pods: manifests placed in the `staticPodPath` of the node.
    #[serde(default)]
    pub static_pods: Vec<Map<String, Value>>,
    /// Objects of any kind, created before the pods, such as a Deployment or a
    /// PodDisruptionBudget.
    #[serde(default)]
    pub objects: Vec<Map<String, Value>>,
    /// Assignment of the pods to the node.
    #[serde(default)]
    pub placed: PodPlacement,
    /// Pod manifests, as for `kubectl create`; `apiVersion` and `kind` are optional.
    #[serde(default)]
    pub pods: Vec<Map<String, Value>>,
    /// Ephemeral containers, added when all containers of their pod run.
    #[serde(default)]
    pub ephemeral_containers: Vec<EphemeralContainer>,
    /// Steps that run in order once the pods are created.
    #[serde(default, rename = "do")]
    pub steps: Vec<Step>,
    /// Condition that ends the case, evaluated once all steps are done. The default is that
    /// everything in `expect` that can be awaited was observed.
    #[serde(default)]
    pub until: Option<Expression>,
    /// Faults to inject, timed from the creation of the first pod. They need an embedded cluster;
    /// on other clusters the case is skipped.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// Condition that must hold at least once, such as `stats.writer.el1.rootfs.usedBytes >
    /// 20000000` in a case about a limit of 20M; otherwise the case is `inconclusive`.
    #[serde(default)]
    pub trigger: Option<Expression>,
    /// Expected outcome.
    pub expect: Expect,
    /// Known bugs, with the outcome on kubelets that have them. The first one that applies to a
    /// kubelet counts.
    #[serde(default)]
    pub known_bugs: Vec<KnownBug>,
    /// Maximum time without progress before the case ends; the default is 40s. Longer on slow
    /// nodes.
    #[serde(default)]
    pub timeout: Option<DurationText>,
    /// Maximum time from the first pod to the end of the case, with or without progress; longer on
    /// slow nodes. The default is two minutes and all times that the case states: ramp, grace
    /// periods, waits and twice the timeout.
    #[serde(default)]
    pub deadline: Option<DurationText>,
    /// Reason why no defect of a kubelet can fail the case, for a case that checks an API server or
    /// a controller. Without a reason, `evictlab mutants run` expects the case to kill a mutant.
    #[serde(default, rename = "no-mutant")]
    pub no_mutant_reason: Option<String>,
    /// Reason why the embedded cluster cannot predict the verdict on real kubelets. If stated, the
    /// case is skipped there.
    #[serde(default, rename = "on-a-model")]
    pub model_skip_reason: Option<String>,
}

impl Case {
    /// Returns all expressions of the case.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.located_expressions().into_iter().map(|(_, expression)| expression)
    }

    /// Returns all expressions of the case with their paths.
    pub(crate) fn located_expressions(&self) -> Vec<(Vec<PathSegment>, &Expression)> {
        let mut all = Vec::new();
        for (field, expression) in [("until", &self.until), ("trigger", &self.trigger)] {
            all.extend(expression.iter().map(|expression| (yaml_path![field].to_vec(), expression)));
        }
        for (at, step) in self.steps.iter().enumerate() {
            all.extend(step.when.iter().map(|when| (yaml_path!["do", at, "when"].to_vec(), when)));
        }
        for (at, assertion) in self.expect.that.iter().enumerate() {
            all.push((yaml_path!["expect", "that", at, "value"].to_vec(), &assertion.value));
        }
        if let Some(rate) = &self.expect.rate {
            all.push((yaml_path!["expect", "rate", "of"].to_vec(), &rate.of));
        }
        for (at, bug) in self.known_bugs.iter().enumerate() {
            for (index, assertion) in bug.that.iter().enumerate() {
                all.push((yaml_path!["known-bugs", at, "that", index, "value"].to_vec(), &assertion.value));
            }
        }
        all
    }

    /// Adds the pod that `pressure.pod` describes to the pods of the case.
    pub(crate) fn add_pressure_pod(&mut self) {
        let Some(pressure) = &self.pressure else { return };
        let manifest = pressure.pod.as_ref().map(|pod| pod.manifest(pressure.signal));
        self.pods.extend(manifest);
    }

    /// Returns the objects that steps create.
    pub fn created_objects(&self) -> impl Iterator<Item = &Map<String, Value>> {
        self.steps.iter().filter_map(Step::created_object)
    }

    /// Returns the manifests of all static pods: those that exist before the pods, and those that
    /// steps create.
    pub fn all_static_pods(&self) -> impl Iterator<Item = &Map<String, Value>> {
        self.static_pods.iter().chain(self.steps.iter().filter_map(Step::created_static_pod))
    }

    /// Returns the resizes that steps request.
    pub fn resizes(&self) -> impl Iterator<Item = &Resize> {
        self.steps.iter().filter_map(Step::resize)
    }

    /// Returns whether the case waits for nothing: it has neither steps nor `until`, and expects no
    /// eviction, no rejected request and no containers in the Summary. Such a case ends when
    /// nothing changes any more.
    pub fn waits_for_nothing(&self) -> bool {
        let Expect { evicted, api_rejection, summary, .. } = &self.expect;
        let waits = !evicted.is_empty() || api_rejection.is_some() || !summary.is_empty();
        !waits && self.until.is_none() && self.steps.is_empty()
    }

    /// Returns the changes of the node that steps make.
    pub fn node_changes(&self) -> impl Iterator<Item = &NodeChange> {
        self.steps.iter().filter_map(Step::node_change)
    }

    /// Returns the number of containers that start before the pressure: those of pods, of static
    /// pods and of the replicas of objects, and ephemeral containers. Containers that steps create
    /// are not included.
    pub fn container_count(&self) -> usize {
        let pods = self.initial_pod_specs().into_iter().filter(|pod| pod.is_completed);
        let containers =
            pods.map(|pod| containers_of(pod.spec).count() * pod.replicas.min(MAX_PODS) as usize);
        containers.sum::<usize>() + self.ephemeral_containers.len()
    }

    /// Returns the names of the kubelet's metrics that expressions read.
    pub fn metrics_read(&self) -> KeysRead {
        let reads = self.expressions().map(|expression| expression.keys_read(Variable::Metrics));
        reads.fold(KeysRead::Keys(BTreeSet::new()), KeysRead::union)
    }

    /// Returns whether any expression reads the variable.
    pub fn references(&self, variable: Variable) -> bool {
        self.expressions().any(|expression| expression.references(variable))
    }
}

/// Returns the JSON Schema (draft 2020-12) of case files, for editors and other tools.
pub fn json_schema() -> Value {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Case>();
    let mut schema = schema.to_value();
    unwrap_descriptions(&mut schema);
    schema
}

/// Joins the lines of all descriptions, which doc comments wrap at the width of the source.
pub fn unwrap_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(description)) = fields.get_mut("description") {
                *description = description.replace("\n\n", " ").replace('\n', " ");
            }
            fields.values_mut().for_each(unwrap_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(unwrap_descriptions),
        _ => {}
    }
}

/// An ephemeral container to add to a pod of the case.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EphemeralContainer {
    /// Name of the pod.
    pub pod: Name,
    /// Manifest of the container.
    pub container: Map<String, Value>,
}

/// Outcome on kubelets with a known bug. Fields that are not stated are as in `expect`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KnownBug {
    /// Kubelet versions that have the bug.
    pub kubelet: KubeletRequirement,
    /// cgroup version with which they have the bug; by default both.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupVersion>,
    /// Upstream issue or pull request. A bug without one has an `about`.
    #[serde(default)]
    pub upstream: Option<Upstream>,
    /// Description of the bug in one sentence.
    #[serde(default)]
    pub about: Option<String>,
    /// Pods that are evicted instead; `message` applies to the first one.
    #[serde(default)]
    pub evicted: Option<Vec<Name>>,
    /// Content of the message instead. Fields that are not stated are as in `expect.message`.
    #[serde(default)]
    pub message: Option<ExpectedMessage>,
    /// Pods that the kubelet rejects at admission instead.
    #[serde(default)]
    pub rejected: Option<Vec<Name>>,
    /// Minimum time from the Evicted event to the end of the last container of the pod, instead of
    /// `killed-after` and `killed-within` of `expect`.
    #[serde(default)]
    pub killed_after: Option<DurationText>,
    /// Assertions on kubelets with the bug. An assertion replaces the one in `expect` with the same
    /// `what`; others are added.
    #[serde(default)]
    pub that: Vec<Assertion>,
    /// The bug is intermittent: the property that `expect.rate` counts does not hold every time.
    #[serde(default)]
    pub sometimes: bool,
    /// Invariants that a kubelet without the bug violates under this version's rules. Required
    /// while every later minor version has the bug, because the rules of a fixed kubelet are then
    /// unknown.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub fixed_violates: Vec<Invariant>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_that_start_before_the_pressure_are_counted() {
        let case: Case = serde_saphyr::from_str(
            "{name: a, about: b, expect: {evicted: []},
            pods: [{spec: {initContainers: [{name: i}], containers: [{name: one}]}}, {spec: {}}],
            static-pods: [{spec: {containers: [{name: two}]}}],
            objects: [
                {kind: Deployment, spec: {replicas: 3, template: {spec: {containers: [{name: a}, {name: b}]}}}},
                {kind: DaemonSet, spec: {template: {spec: {containers: [{name: c}]}}}},
                {kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: later}]}}}}}}],
            ephemeral-containers: [{pod: p, container: {name: debug}}],
            do: [{create: {kind: Pod, spec: {containers: [{name: later}]}}}]}",
        )
        .unwrap();
        assert_eq!(case.container_count(), 2 + 1 + 6 + 1 + 1);
        let scaled = "{name: a, about: b, expect: {evicted: []}, objects: [{kind: Job, \
            spec: {parallelism: 18446744073709551615, template: {spec: {containers: [{name: a}, {name: b}]}}}}]}";
        assert_eq!(serde_saphyr::from_str::<Case>(scaled).unwrap().container_count(), 220);
    }
}
