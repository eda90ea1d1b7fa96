//! Execution of a case's steps.

use evictlab_case::{
    Action, ApiRequest, ContainerCommand, Name, NodeChange, ObjectKind, Step, Taint, TaintEffect, has_kind,
};
use evictlab_cluster::kubelet_config::{self, merge_fields};
use evictlab_cluster::workload::{GracePeriod, Namespace, Placement, StageError, object_manifest};
use evictlab_evidence::{
    ApiAnswer, CommandOutput, ContainerStatusExt, LiveState, Observations, Recorded, RecordedPod, StepAnswer,
};
use evictlab_judge::Phase;
use k8s_openapi::api::core::v1::Taint as ApiTaint;
use serde_json::{Map, Value};

use crate::case_runner::error::{CaseError, describe_container};
use crate::case_runner::observation::logs::LogReader;
use crate::case_runner::observation::read_budget::{READ_TIMEOUT, ReadBudget};
use crate::case_runner::observation::step_queue::describe_step;
use crate::case_runner::runner::CaseRunner;
use crate::node_setup::changes::create_static_pod;

/// Namespace and pods of the case, for changes of the node.
#[derive(Clone, Copy)]
struct StepScope<'a> {
    namespace: &'a Namespace,
    placement: &'a Placement<'a>,
    live: &'a LiveState,
}

impl CaseRunner<'_> {
    /// Executes a step. A rejection by the API server is an error unless the case keeps the answer.
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
                let request = with_api_names(request, live);
                let result = self.send(&request, namespace, placement, live, observations).await;
                record_answer(step.answer.as_ref(), result, observations)
            }
            Action::Node(change) => {
                let scope = StepScope { namespace, placement, live };
                self.change_node(change, scope, &mut observations.kubelet_config_overrides).await
            }
            Action::Exec(command) => {
                let result = self.run_command(command, live).await?;
                match &step.answer {
                    Some(name) => {
                        observations.answers.insert(name.to_string(), StepAnswer::Command(result));
                    }
                    None if result.code == 0 => {}
                    None => return Err(CaseError::command(command, &result)),
                }
                Ok(())
            }
            Action::ReadLogs(pod_name) => {
                let (client, mut budget) = (self.run_node.node.client(), ReadBudget::new(READ_TIMEOUT));
                let mut reader =
                    LogReader { client, namespace: &namespace.name, budget: &mut budget, observations };
                self.cancel.run_until_cancelled(reader.read_pod(pod_name.as_str(), live)).await;
                Ok(())
            }
        }
    }

    async fn send(
        &self,
        request: &ApiRequest,
        namespace: &Namespace,
        placement: &Placement<'_>,
        live: &LiveState,
        observations: &mut Observations,
    ) -> Result<(), CaseError> {
        match request {
            ApiRequest::Create(manifest) => {
                let is_pod = has_kind(manifest, "Pod");
                let manifest = object_manifest(manifest, placement);
                if is_pod {
                    let created = namespace.create_pod(&manifest).await?;
                    observations.pods_created.push(Recorded::decode(created)?);
                } else {
                    namespace.create_object(&manifest).await?;
                }
            }
            ApiRequest::Patch(patch) => {
                namespace.patch_object(&patch.object(), &Value::Object(patch.patch.clone())).await?;
            }
            ApiRequest::Resize(resize) => {
                let pod = live.pods.get(resize.pod.as_str());
                let pod = pod.ok_or_else(|| CaseError::NoPodToResize(resize.pod.to_string()))?;
                let status = self.run_node.node.object().await?.status.unwrap_or_default();
                namespace.resize_pod(pod, resize, &status.allocatable.unwrap_or_default()).await?;
            }
            ApiRequest::Delete(deletion) => {
                let grace_period = deletion.grace_period.map(|grace| GracePeriod::from(grace.get()));
                namespace.delete_object(&deletion.object, grace_period).await?;
            }
            ApiRequest::Evict(pod) => namespace.evict_pod(pod.as_str()).await?,
        }
        Ok(())
    }

    /// Changes the node. `config` is what the configuration of the kubelet has beside the original
    /// one; as in a drop-in file of the kubelet (KEP-3983), the maps of a step are merged into it.
    async fn change_node(
        &self,
        change: &NodeChange,
        StepScope { namespace, placement, live }: StepScope<'_>,
        config: &mut Map<String, Value>,
    ) -> Result<(), CaseError> {
        let node = &self.run_node.node;
        match change {
            NodeChange::Taint(taint) => {
                node.taint(&api_taint(taint)).await?;
            }
            NodeChange::Untaint(key) => node.untaint(key).await?,
            NodeChange::Drain => {
                node.cordon(true).await?;
                for pod in live.pods.values() {
                    match namespace.evict_pod(pod.name()).await {
                        Ok(()) => {}
                        // A pod that a PodDisruptionBudget protects (429) stays, and one may have
                        // gone.
                        Err(StageError::Rejected { status, .. }) if matches!(status.code, 404 | 429) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            NodeChange::Uncordon => node.cordon(false).await?,
            NodeChange::Pause => node.backend().set_paused(true).await?,
            NodeChange::Resume => node.backend().set_paused(false).await?,
            NodeChange::Configure(changes) => {
                merge_fields(config, changes);
                kubelet_config::configure(node, config).await?;
            }
            NodeChange::RestartKubelet => kubelet_config::restart(node).await?,
            NodeChange::LoadImage(image) => {
                let image = (self.run_node.image_names())(image);
                node.backend().load_image(&image).await?;
            }
            NodeChange::CreateStaticPod(pod) => create_static_pod(node, pod, placement).await?,
            NodeChange::DeleteStaticPod(name) => node.backend().delete_static_pod(name.as_str()).await?,
        }
        Ok(())
    }

    /// Runs a command in a running container of a pod.
    async fn run_command(
        &self,
        command: &ContainerCommand,
        live: &LiveState,
    ) -> Result<CommandOutput, CaseError> {
        let pod = live.pods.get(command.pod.as_str());
        let id = pod.and_then(|pod| running_container_id(pod, command.container.as_ref()));
        let id = id.ok_or_else(|| CaseError::NotRunning(describe_container(command)))?;
        let output = tokio::select! {
            biased;
            output = self.run_node.node.backend().exec(id, &command.command) => output?,
            () = self.cancel.cancelled() => return Err(CaseError::Interrupted),
        };
        Ok(CommandOutput { code: output.code, stdout: output.stdout, stderr: output.stderr })
    }
}

/// Returns the ID of a running container in its runtime; by default of the first regular one.
fn running_container_id<'a>(pod: &'a RecordedPod, container: Option<&Name>) -> Option<&'a str> {
    let first = || Some(pod.spec.as_ref()?.containers.first()?.name.as_str());
    let name = container.map(Name::as_str).or_else(first)?;
    let status = pod.container_statuses().find(|status| status.name == name && status.is_running())?;
    status.container_id.as_deref()?.split_once("://").map(|(_, id)| id)
}

/// Returns a taint of a case as one of the API.
fn api_taint(taint: &Taint) -> ApiTaint {
    let effect = match taint.effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    };
    ApiTaint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: effect.to_owned(),
        ..ApiTaint::default()
    }
}

/// Replaces the name of a pod in the case by that of the API, which the API server may have
/// completed.
fn with_api_names(request: &ApiRequest, live: &LiveState) -> ApiRequest {
    let mut request = request.clone();
    let name = match &mut request {
        ApiRequest::Evict(pod) => Some(pod),
        ApiRequest::Patch(patch) if patch.kind == ObjectKind::Pod => Some(&mut patch.name),
        ApiRequest::Delete(deletion) if deletion.object.kind == ObjectKind::Pod => {
            Some(&mut deletion.object.name)
        }
        _ => None,
    };
    if let Some(name) = name
        && let Some(pod) = live.pods.get(name.as_str())
        && let Ok(api_name) = pod.name().parse()
    {
        *name = api_name;
    }
    request
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
        Err(CaseError::Stage(StageError::Rejected { status, .. })) => {
            ApiAnswer { code: status.code, reason: status.reason, message: status.message }
        }
        Err(error) => return Err(error),
    };
    observations.answers.insert(name.to_string(), StepAnswer::Api(answer));
    Ok(())
}
