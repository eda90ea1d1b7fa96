//! The steps of a case.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

use crate::action::{Action, ApiRequest, ContainerCommand, Deletion, NodeChange, ObjectPatch, Resize, Taint};
use crate::expression::Expression;
use crate::values::{DurationText, Name};

/// A step. It waits until `when` holds, then for the time `wait`, then runs its action. A step
/// without an action only waits.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "StepFields")]
pub struct Step {
    /// Purpose of the step, shown while the case runs.
    pub about: Option<String>,
    /// Name under which `answers` keeps the answer of the API.
    pub answer: Option<Name>,
    /// Condition to wait for.
    pub when: Option<Expression>,
    /// Time to wait after `when` holds.
    pub wait: Option<DurationText>,
    /// The action.
    pub action: Option<Action>,
}

impl Step {
    /// Returns the object that the step creates.
    pub fn created_object(&self) -> Option<&Map<String, Value>> {
        match &self.action {
            Some(Action::Api(ApiRequest::Create(object))) => Some(object),
            _ => None,
        }
    }

    /// Returns the static pod that the step creates.
    pub fn created_static_pod(&self) -> Option<&Map<String, Value>> {
        match &self.action {
            Some(Action::Node(NodeChange::CreateStaticPod(pod))) => Some(pod),
            _ => None,
        }
    }

    /// Returns the command that the step runs in a container.
    pub fn exec(&self) -> Option<&ContainerCommand> {
        match &self.action {
            Some(Action::Exec(command)) => Some(command),
            _ => None,
        }
    }

    /// Returns the resize that the step requests.
    pub fn resize(&self) -> Option<&Resize> {
        match &self.action {
            Some(Action::Api(ApiRequest::Resize(resize))) => Some(resize),
            _ => None,
        }
    }

    /// Returns the step's change of the node.
    pub fn node_change(&self) -> Option<&NodeChange> {
        match &self.action {
            Some(Action::Node(change)) => Some(change),
            _ => None,
        }
    }
}

/// A step. It waits until `when` holds, then for the time `wait`, then runs its action. A step
/// without an action only waits.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Step")]
struct StepFields {
    /// Purpose of the step, shown while the case runs.
    #[serde(default)]
    about: Option<String>,
    /// Name under which `answers` keeps the answer of the API, `{code, reason, message}`, with the
    /// code 200 or 201 on success; of `exec`, `{code, stdout, stderr}` with the exit status.
    #[serde(default)]
    answer: Option<Name>,
    /// Condition to wait for.
    #[serde(default)]
    when: Option<Expression>,
    /// Time to wait after `when` holds.
    #[serde(default)]
    wait: Option<DurationText>,
    /// Creates an object of any kind, such as a pod, in the namespace of the case.
    #[serde(default)]
    create: Option<Map<String, Value>>,
    /// Changes an object in the namespace of the case by a JSON merge patch.
    #[serde(default)]
    patch: Option<ObjectPatch>,
    /// Changes the CPU and memory of a running container in place (`pods/resize`, Kubernetes 1.33
    /// and later).
    #[serde(default)]
    resize: Option<Resize>,
    /// Deletes a pod, or another object in the namespace of the case.
    #[serde(default)]
    delete: Option<Deletion>,
    /// Evicts a pod through the API (`pods/eviction`).
    #[serde(default)]
    evict: Option<Name>,
    /// Adds a taint to the node.
    #[serde(default)]
    taint: Option<Taint>,
    /// Removes the taints with this key from the node.
    #[serde(default)]
    untaint: Option<String>,
    /// Cordons the node and evicts the pods of the case through the API, as `kubectl drain` does.
    #[serde(default, deserialize_with = "only_true")]
    #[schemars(schema_with = "only_true_schema", skip_serializing_if = "std::ops::Not::not")]
    drain: bool,
    /// Uncordons the node.
    #[serde(default, deserialize_with = "only_true")]
    #[schemars(schema_with = "only_true_schema", skip_serializing_if = "std::ops::Not::not")]
    uncordon: bool,
    /// Pauses all processes of the node (`docker pause`).
    #[serde(default, deserialize_with = "only_true")]
    #[schemars(schema_with = "only_true_schema", skip_serializing_if = "std::ops::Not::not")]
    pause: bool,
    /// Resumes a paused node.
    #[serde(default, deserialize_with = "only_true")]
    #[schemars(schema_with = "only_true_schema", skip_serializing_if = "std::ops::Not::not")]
    resume: bool,
    /// Restarts the kubelet with these fields of its configuration changed, in addition to those
    /// of the case.
    #[serde(default)]
    configure: Option<Map<String, Value>>,
    /// Restarts the kubelet with its present configuration; containers continue to run.
    #[serde(default, deserialize_with = "only_true")]
    #[schemars(schema_with = "only_true_schema", skip_serializing_if = "std::ops::Not::not")]
    restart_kubelet: bool,
    /// Reads the logs of the containers of a pod into `logs`; the logs of an evicted pod may be
    /// lost.
    #[serde(default)]
    read_logs: Option<Name>,
    /// Runs a command in a running container of a pod, as `kubectl exec` does, and waits for its
    /// end. An exit status other than 0 is an error, unless `answer` keeps it.
    #[serde(default)]
    exec: Option<ContainerCommand>,
    /// Pulls or loads an image into the node; the image is not pinned.
    #[serde(default)]
    load_image: Option<String>,
    /// Creates a static pod: places a manifest in the `staticPodPath` of the node, as
    /// `static-pods` does before the pods are created.
    #[serde(default)]
    create_static_pod: Option<Map<String, Value>>,
    /// Deletes a static pod of the case: removes its manifest from the node.
    #[serde(default)]
    delete_static_pod: Option<Name>,
}

/// Deserializes the value of an action without parameters, which can only be `true`: a step without
/// the action omits the key.
fn only_true<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let is_true = bool::deserialize(deserializer)?;
    is_true.then_some(true).ok_or_else(|| de::Error::custom("the only value is `true`: omit the key instead"))
}

fn only_true_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "boolean", "const": true })
}

impl TryFrom<StepFields> for Step {
    type Error = MultipleActionsError;

    fn try_from(fields: StepFields) -> Result<Self, MultipleActionsError> {
        let StepFields { about, answer, when, wait, .. } = fields;
        let stated = [
            fields.create.map(|object| Action::Api(ApiRequest::Create(object))),
            fields.patch.map(|patch| Action::Api(ApiRequest::Patch(patch))),
            fields.resize.map(|resize| Action::Api(ApiRequest::Resize(resize))),
            fields.delete.map(|deletion| Action::Api(ApiRequest::Delete(deletion))),
            fields.evict.map(|pod| Action::Api(ApiRequest::Evict(pod))),
            fields.taint.map(|taint| Action::Node(NodeChange::Taint(taint))),
            fields.untaint.map(|key| Action::Node(NodeChange::Untaint(key))),
            fields.drain.then_some(Action::Node(NodeChange::Drain)),
            fields.uncordon.then_some(Action::Node(NodeChange::Uncordon)),
            fields.pause.then_some(Action::Node(NodeChange::Pause)),
            fields.resume.then_some(Action::Node(NodeChange::Resume)),
            fields.configure.map(|changes| Action::Node(NodeChange::Configure(changes))),
            fields.restart_kubelet.then_some(Action::Node(NodeChange::RestartKubelet)),
            fields.load_image.map(|image| Action::Node(NodeChange::LoadImage(image))),
            fields.create_static_pod.map(|pod| Action::Node(NodeChange::CreateStaticPod(pod))),
            fields.delete_static_pod.map(|name| Action::Node(NodeChange::DeleteStaticPod(name))),
            fields.read_logs.map(Action::ReadLogs),
            fields.exec.map(Action::Exec),
        ];
        let mut stated = stated.into_iter().flatten();
        let action = stated.next();
        match (&action, stated.next()) {
            (Some(first), Some(second)) => {
                Err(MultipleActionsError { first: first.field(), second: second.field() })
            }
            _ => Ok(Self { about, answer, when, wait, action }),
        }
    }
}

impl JsonSchema for Step {
    fn schema_name() -> Cow<'static, str> {
        StepFields::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        StepFields::json_schema(generator)
    }
}

/// A step has more than one action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the step has two actions, `{first}` and `{second}`: split it into two steps")]
pub struct MultipleActionsError {
    pub(crate) first: &'static str,
    pub(crate) second: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::GOOD;
    use crate::parse;

    #[test]
    fn a_step_has_the_action_that_it_states() {
        type IsExpected = fn(Option<Action>) -> bool;
        let is_expected: [(&str, IsExpected); 10] = [
            ("{evict: p}", |action| matches!(action, Some(Action::Api(ApiRequest::Evict(_))))),
            ("{drain: true}", |action| matches!(action, Some(Action::Node(NodeChange::Drain)))),
            ("{untaint: a}", |action| action == Some(Action::Node(NodeChange::Untaint("a".to_owned())))),
            ("{read-logs: p}", |action| matches!(action, Some(Action::ReadLogs(_)))),
            ("{exec: {pod: p, command: [ls]}}", |action| matches!(action, Some(Action::Exec(_)))),
            ("{load-image: 'stress:1'}", |action| {
                action == Some(Action::Node(NodeChange::LoadImage("stress:1".to_owned())))
            }),
            ("{create-static-pod: {metadata: {name: p}}}", |action| {
                matches!(action, Some(Action::Node(NodeChange::CreateStaticPod(_))))
            }),
            ("{delete-static-pod: p}", |action| {
                matches!(action, Some(Action::Node(NodeChange::DeleteStaticPod(_))))
            }),
            ("{resize: {pod: p, requests: {memory: 64Mi}}}", |action| {
                matches!(action, Some(Action::Api(ApiRequest::Resize(_))))
            }),
            ("{wait: 3s}", |action| action.is_none()),
        ];
        for (yaml, is_expected) in is_expected {
            let step: Step = serde_saphyr::from_str(yaml).unwrap();
            assert!(is_expected(step.action), "{yaml}");
        }
    }

    #[test]
    fn an_action_without_parameters_is_only_true() {
        for action in ["drain", "uncordon", "pause", "resume", "restart-kubelet"] {
            let read =
                |value: &str| serde_saphyr::from_str::<Step>(&format!("{{wait: 1s, {action}: {value}}}"));
            assert_eq!(read("true").unwrap().action.unwrap().field(), action);
            let error = read("false").unwrap_err().to_string();
            assert!(error.contains("the only value is `true`: omit the key instead"), "{action}: {error}");
            assert!(read("").is_err() && read("null").is_err() && read("1").is_err(), "{action}");
        }
    }

    /// The API has whole seconds; half a second would become 0, which deletes a pod at once.
    #[test]
    fn grace_periods_are_whole_seconds() {
        let pressure_pod = "pressure: {signal: memory.available, pod: {name: hog, grace-period: 500ms}}\n";
        for (place, added) in [
            ("expect:\n", "do:\n  - delete: {pod: alloc, grace-period: 500ms}\n"),
            ("pressure: {signal: memory.available, ramp: 15s}\n", pressure_pod),
        ] {
            let rest = if place == "expect:\n" { place } else { "" };
            let text = GOOD.replace(place, &format!("{added}{rest}"));
            let problems = parse("suite", "suite/good.yaml", "good.yaml", text.as_bytes()).unwrap_err();
            assert!(problems.to_string().contains("it must be in whole seconds"), "{problems}");
        }
    }

    /// Steps can change what the case states or has created before.
    #[test]
    fn steps_change_and_delete_objects() {
        let steps = concat!(
            "objects:\n",
            "  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}\n",
            "do:\n",
            "  - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: late}}\n",
            "  - {patch: {kind: Deployment, name: web, patch: {spec: {replicas: 3}}}, answer: scaled}\n",
            "  - delete: {kind: ConfigMap, name: late}\n",
            "  - delete: {kind: Pod, name: alloc, grace-period: 1s}\n",
            "  - {restart-kubelet: true, about: restarting the kubelet}\n",
        );
        let text = GOOD.replace("expect:\n", &format!("{steps}expect:\n"));
        let case = parse("suite", "suite/good.yaml", "good.yaml", text.as_bytes()).unwrap();
        let fields: Vec<_> =
            case.case.steps.iter().filter_map(|step| Some(step.action.as_ref()?.field())).collect();
        assert_eq!(fields, ["create", "patch", "delete", "delete", "restart-kubelet"]);
        assert_eq!(case.case.node_changes().collect::<Vec<_>>(), [&NodeChange::RestartKubelet]);
    }
}
