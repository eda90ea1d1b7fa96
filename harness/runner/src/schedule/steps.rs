//! The steps of a case: when each is due, and doing it.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::awaited::Awaited;
use super::case::{CaseError, Run};
use crate::case::Step;
use crate::cel::Scope;
use crate::cluster::NodeError;
use crate::judge::Phase;
use crate::observe::{self, Observations, Watched};
use crate::stage::{Namespace, Placement, StageError, object};
use crate::tune;

/// The steps of a case, and how far it has come.
pub(super) struct Script<'a> {
    steps: &'a [Step],
    /// What the next step waits for.
    when: Option<Awaited<'a>>,
    /// Since when it only waits for its time.
    since: Option<Instant>,
}

impl<'a> Script<'a> {
    pub(super) fn new(steps: &'a [Step]) -> Self {
        let when = steps.first().and_then(|step| step.when.as_ref());
        Self { steps, when: when.map(Awaited::new), since: None }
    }

    /// The next step, if its time has come, after these variables may have changed.
    pub(super) fn due(&mut self, changed: &[&str], scope: &Scope<'_>) -> Option<&'a Step> {
        let (step, rest) = self.steps.split_first()?;
        if self.since.is_none() && !self.when.as_mut().is_none_or(|when| when.holds(changed, scope)) {
            return None;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < step.wait.map_or(Duration::ZERO, |wait| wait.get()) {
            return None;
        }
        *self = Self::new(rest);
        Some(step)
    }

    /// Whether a step is left.
    pub(super) fn is_left(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Whether the next step only waits for its time.
    pub(super) fn waits(&self) -> bool {
        self.since.is_some()
    }

    /// The step that is waited for.
    pub(super) fn waited_for(&self) -> Option<String> {
        let step = self.steps.first()?;
        let about = step.about.clone().unwrap_or_else(|| named(step));
        Some(match &step.when {
            Some(when) => format!("{about}, when {when}"),
            None => about,
        })
    }
}

fn named(step: &Step) -> String {
    let actions = step.actions();
    if actions.is_empty() { "going on".to_owned() } else { actions.join(", ") }
}

impl Run<'_> {
    /// Does a step. What the API refuses is an error, unless the case keeps the answer.
    pub(super) async fn step_done(
        &self,
        step: &Step,
        namespace: &Namespace,
        placement: &Placement<'_>,
        watched: &Watched,
        seen: &mut Observations,
    ) -> Result<(), CaseError> {
        if !step.actions().is_empty() {
            self.step(Phase::Observe, step.about.clone().unwrap_or_else(|| named(step)));
        }
        let answer = match self.asked_of_api(step, namespace, placement, seen).await {
            Ok(()) => json!({"code": 200, "reason": "", "message": ""}),
            Err(StageError::Refused { object, status }) => {
                if step.answer.is_none() {
                    return Err(StageError::Refused { object, status }.into());
                }
                json!({"code": status.code, "reason": status.reason, "message": status.message})
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(name) = &step.answer {
            seen.answers.insert(name.to_string(), answer);
        }
        let overrides = seen.kubelet_config_overrides.clone();
        self.done_to_node(step, namespace, watched, &overrides).await?;
        if let Some(pod) = &step.read_logs
            && let Some(pod) = watched.pods.get(pod.as_str())
        {
            let logs = observe::logs(self.leased.node.client(), &namespace.name, pod).await;
            seen.container_logs.insert(observe::name_of(pod), Value::Object(logs));
        }
        Ok(())
    }

    async fn asked_of_api(
        &self,
        step: &Step,
        namespace: &Namespace,
        placement: &Placement<'_>,
        seen: &mut Observations,
    ) -> Result<(), StageError> {
        if let Some(manifest) = &step.create {
            let manifest = object(manifest, placement);
            if manifest["kind"] == "Pod" {
                seen.pods_created.push(namespace.create_pod(&manifest).await?);
            } else {
                namespace.create_object(&manifest).await?;
            }
        }
        if let Some(deletion) = &step.delete {
            let grace = deletion.grace_period.map(|grace| grace.get().as_secs() as u32);
            namespace.delete_pod(deletion.pod.as_str(), grace).await?;
        }
        if let Some(pod) = &step.evict {
            namespace.evict_pod(pod.as_str()).await?;
        }
        Ok(())
    }

    async fn done_to_node(
        &self,
        step: &Step,
        namespace: &Namespace,
        watched: &Watched,
        overrides: &Map<String, Value>,
    ) -> Result<(), CaseError> {
        let node = &self.leased.node;
        if let Some(taint) = &step.taint {
            node.taint(&json!({"key": taint.key, "value": taint.value, "effect": taint.effect})).await?;
        }
        if let Some(key) = &step.untaint {
            node.untaint(key).await?;
        }
        if step.drain {
            node.cordon(true).await?;
            for pod in watched.pods.keys() {
                match namespace.evict_pod(pod).await {
                    // A pod that a budget holds back stays; the case says what is to become of it.
                    Ok(()) | Err(StageError::Refused { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if step.uncordon {
            node.cordon(false).await?;
        }
        if step.pause || step.resume {
            node.machine().pause(step.pause).await?;
        }
        if let Some(more) = &step.configure {
            let mut all = overrides.clone();
            all.extend(more.clone());
            tune::tune(node, &all).await?;
        }
        Ok(())
    }

    /// What the case needs of its node before its pods: memory, resources, static pods.
    pub(super) async fn set_up(&self, placement: &Placement<'_>) -> Result<(), NodeError> {
        let (node, case) = (&self.leased.node, &self.case.case);
        if let Some(memory) = &case.node.memory {
            let bytes = u64::try_from(memory.quantity().value()).unwrap_or(0);
            node.machine().limit_memory(Some(bytes)).await?;
        }
        if !case.node.capacity.is_empty() {
            let of = |(name, amount): (&String, &crate::case::QuantityText)| {
                (name.clone(), json!(amount.as_str()))
            };
            node.advertise(&case.node.capacity.iter().map(of).collect()).await?;
        }
        if !case.static_pods.is_empty() {
            let pods: Vec<Value> =
                case.static_pods.iter().map(|pod| crate::stage::static_pod(pod, placement)).collect();
            node.machine().static_pods(&pods).await?;
        }
        Ok(())
    }

    /// Takes back what the case did to its node by steps and before its pods. Called also when it was interrupted.
    pub(super) async fn taken_back(&self) -> Result<(), NodeError> {
        let (node, case) = (&self.leased.node, &self.case.case);
        if case.steps.iter().any(|step| step.pause) {
            node.machine().pause(false).await?;
        }
        if case.node.memory.is_some() {
            node.machine().limit_memory(None).await?;
        }
        if !case.static_pods.is_empty() {
            node.machine().static_pods(&[]).await?;
        }
        if case.steps.iter().any(Step::changes_node) || !case.node.capacity.is_empty() {
            node.clean(case.steps.iter().any(|step| step.drain)).await?;
        }
        Ok(())
    }
}
