//! Execution of a case's steps.

use evictlab_case::{Action, ApiRequest, Name, NodeChange, Step};
use evictlab_cluster::kubelet_config;
use evictlab_cluster::workload::{Namespace, Placement, StageError, object_manifest};
use evictlab_evidence::{ApiAnswer, LiveState, Observations, Recorded};
use evictlab_judge::Phase;
use serde_json::{Map, Value, json};

use crate::case_runner::error::CaseError;
use crate::case_runner::runner::CaseRunner;
use crate::case_runner::step_queue::describe_step;
use crate::observation::logs::container_logs;

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
        let Some(action) = &step.action else { return Ok(()) };
        self.report_step(Phase::Observe, describe_step(step));
        match action {
            Action::Api(request) => {
                let result = send(request, namespace, placement, observations).await;
                record_answer(step.answer.as_ref(), result, observations)
            }
            Action::Node(change) => {
                let config = &observations.kubelet_config_overrides;
                self.change_node(change, namespace, live, config).await
            }
            Action::ReadLogs(pod_name) => {
                if let Some(pod) = live.pods.get(pod_name.as_str()) {
                    let read = container_logs(self.leased.node.client(), &namespace.name, pod).await;
                    observations.missing.extend(read.missing);
                    observations.container_logs.insert(pod.case_name().to_owned(), read.logs);
                }
                Ok(())
            }
        }
    }

    async fn change_node(
        &self,
        change: &NodeChange,
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
            NodeChange::RestartKubelet => kubelet_config::restart(node).await?,
        }
        Ok(())
    }
}

async fn send(
    request: &ApiRequest,
    namespace: &Namespace,
    placement: &Placement<'_>,
    observations: &mut Observations,
) -> Result<(), CaseError> {
    match request {
        ApiRequest::Create(manifest) => {
            let manifest = object_manifest(manifest, placement);
            if manifest.get("kind").is_some_and(|kind| kind == "Pod") {
                let created = namespace.create_pod(&manifest).await?;
                observations.pods_created.push(Recorded::decode(created)?);
            } else {
                namespace.create_object(&manifest).await?;
            }
        }
        ApiRequest::Patch(patch) => {
            namespace.patch_object(&patch.object(), &Value::Object(patch.patch.clone())).await?;
        }
        ApiRequest::Delete(deletion) => {
            let grace_period = deletion.grace_period.map(|grace| grace.get().as_secs() as u32);
            namespace.delete_object(&deletion.object, grace_period).await?;
        }
        ApiRequest::Evict(pod) => namespace.evict_pod(pod.as_str()).await?,
    }
    Ok(())
}

/// Stores the API server's answer under the step's `answer` name, if any.
fn record_answer(
    name: Option<&Name>,
    result: Result<(), CaseError>,
    observations: &mut Observations,
) -> Result<(), CaseError> {
    let Some(name) = name else { return result };
    let answer = match result {
        Ok(()) => ApiAnswer { code: 200, ..ApiAnswer::default() },
        Err(CaseError::Stage(StageError::Refused { status, .. })) => {
            ApiAnswer { code: status.code, reason: status.reason, message: status.message }
        }
        Err(error) => return Err(error),
    };
    observations.answers.insert(name.to_string(), answer);
    Ok(())
}
