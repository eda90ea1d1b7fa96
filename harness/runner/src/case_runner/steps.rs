//! Execution of a case's steps.

use evictlab_case::{Deletion, Name, Step, Taint};
use evictlab_cluster::kubelet_config;
use evictlab_cluster::workload::{Namespace, Placement, StageError, object_manifest};
use evictlab_evidence::{LiveState, Observations};
use evictlab_judge::Phase;
use serde_json::{Map, Value, json};

use crate::case_runner::error::CaseError;
use crate::case_runner::runner::CaseRunner;
use crate::case_runner::step_queue::describe_step;
use crate::observation::logs::container_logs;

/// Action of a step. The case's check rejects steps with several actions.
enum StepAction<'a> {
    /// A request to the API server, whose answer a case can keep.
    Api(ApiRequest<'a>),
    /// A change of the node.
    Node(NodeChange<'a>),
    /// Reads the logs of a pod's containers.
    ReadLogs(&'a Name),
    /// No action: the step only waits.
    Wait,
}

enum ApiRequest<'a> {
    Create(&'a Map<String, Value>),
    Delete(&'a Deletion),
    Evict(&'a Name),
}

enum NodeChange<'a> {
    Taint(&'a Taint),
    Untaint(&'a str),
    Drain,
    Uncordon,
    Pause,
    Resume,
    Configure(&'a Map<String, Value>),
}

impl<'a> StepAction<'a> {
    fn of(step: &'a Step) -> Self {
        if let Some(request) = ApiRequest::of(step) {
            Self::Api(request)
        } else if let Some(change) = NodeChange::of(step) {
            Self::Node(change)
        } else if let Some(pod) = &step.read_logs {
            Self::ReadLogs(pod)
        } else {
            Self::Wait
        }
    }
}

impl<'a> ApiRequest<'a> {
    fn of(step: &'a Step) -> Option<Self> {
        let create = step.create.as_ref().map(Self::Create);
        let delete = step.delete.as_ref().map(Self::Delete);
        create.or(delete).or(step.evict.as_ref().map(Self::Evict))
    }
}

impl<'a> NodeChange<'a> {
    fn of(step: &'a Step) -> Option<Self> {
        let of_node = step.taint.as_ref().map(Self::Taint).or(step.untaint.as_deref().map(Self::Untaint));
        let flags = [
            (step.drain, Self::Drain),
            (step.uncordon, Self::Uncordon),
            (step.pause, Self::Pause),
            (step.resume, Self::Resume),
        ];
        let flag = flags.into_iter().find_map(|(is_set, change)| is_set.then_some(change));
        of_node.or(flag).or(step.configure.as_ref().map(Self::Configure))
    }
}

impl CaseRunner<'_> {
    /// Executes a step. A refusal by the API server is an error unless the case keeps the answer.
    pub(super) async fn execute_step(
        &self,
        step: &Step,
        namespace: &Namespace,
        placement: &Placement<'_>,
        live: &LiveState,
        observations: &mut Observations,
    ) -> Result<(), CaseError> {
        let action = StepAction::of(step);
        if !matches!(action, StepAction::Wait) {
            self.report_step(Phase::Observe, describe_step(step));
        }
        match action {
            StepAction::Api(request) => {
                let result = send(&request, namespace, placement, observations).await;
                record_answer(step.answer.as_ref(), result, observations)
            }
            StepAction::Node(change) => {
                let config = &observations.kubelet_config_overrides;
                self.change_node(&change, namespace, live, config).await
            }
            StepAction::ReadLogs(pod_name) => {
                if let Some(pod) = live.pods.get(pod_name.as_str()) {
                    let read = container_logs(self.leased.node.client(), &namespace.name, pod).await;
                    let pod_name = evictlab_evidence::pod_name(pod);
                    observations.missing.extend(read.missing);
                    observations.container_logs.insert(pod_name, Value::Object(read.logs));
                }
                Ok(())
            }
            StepAction::Wait => Ok(()),
        }
    }

    async fn change_node(
        &self,
        change: &NodeChange<'_>,
        namespace: &Namespace,
        live: &LiveState,
        config: &Map<String, Value>,
    ) -> Result<(), CaseError> {
        let node = &self.leased.node;
        match change {
            NodeChange::Taint(taint) => {
                node.taint(&json!({"key": taint.key, "value": taint.value, "effect": taint.effect})).await?;
            }
            NodeChange::Untaint(key) => node.untaint(key).await?,
            NodeChange::Drain => {
                node.cordon(true).await?;
                for pod in live.pods.keys() {
                    match namespace.evict_pod(pod).await {
                        // A pod that a PodDisruptionBudget protects stays.
                        Ok(()) | Err(StageError::Refused { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            NodeChange::Uncordon => node.cordon(false).await?,
            NodeChange::Pause => node.backend().pause(true).await?,
            NodeChange::Resume => node.backend().pause(false).await?,
            NodeChange::Configure(changes) => {
                let mut config = config.clone();
                config.extend((*changes).clone());
                kubelet_config::configure(node, &config).await?;
            }
        }
        Ok(())
    }
}

async fn send(
    request: &ApiRequest<'_>,
    namespace: &Namespace,
    placement: &Placement<'_>,
    observations: &mut Observations,
) -> Result<(), StageError> {
    match request {
        ApiRequest::Create(manifest) => {
            let manifest = object_manifest(manifest, placement);
            if manifest.get("kind").is_some_and(|kind| kind == "Pod") {
                observations.pods_created.push(namespace.create_pod(&manifest).await?);
            } else {
                namespace.create_object(&manifest).await?;
            }
        }
        ApiRequest::Delete(deletion) => {
            let grace_period = deletion.grace_period.map(|grace| grace.get().as_secs() as u32);
            namespace.delete_pod(deletion.pod.as_str(), grace_period).await?;
        }
        ApiRequest::Evict(pod) => namespace.evict_pod(pod.as_str()).await?,
    }
    Ok(())
}

/// Stores the API server's answer under the step's `answer` name, if any.
fn record_answer(
    name: Option<&Name>,
    result: Result<(), StageError>,
    observations: &mut Observations,
) -> Result<(), CaseError> {
    let Some(name) = name else { return Ok(result?) };
    let answer = match result {
        Ok(()) => json!({"code": 200, "reason": "", "message": ""}),
        Err(StageError::Refused { status, .. }) => {
            json!({"code": status.code, "reason": status.reason, "message": status.message})
        }
        Err(error) => return Err(error.into()),
    };
    observations.answers.insert(name.to_string(), answer);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_the_action_that_it_states() {
        type IsExpected = fn(StepAction<'_>) -> bool;
        let is_expected: [(&str, IsExpected); 5] = [
            ("{evict: p}", |action| matches!(action, StepAction::Api(ApiRequest::Evict(_)))),
            ("{drain: true}", |action| matches!(action, StepAction::Node(NodeChange::Drain))),
            ("{untaint: a}", |action| matches!(action, StepAction::Node(NodeChange::Untaint("a")))),
            ("{read-logs: p}", |action| matches!(action, StepAction::ReadLogs(_))),
            ("{wait: 3s}", |action| matches!(action, StepAction::Wait)),
        ];
        for (yaml, is_expected) in is_expected {
            let step: Step = serde_yaml::from_str(yaml).unwrap();
            assert!(is_expected(StepAction::of(&step)), "{yaml}");
        }
    }
}
