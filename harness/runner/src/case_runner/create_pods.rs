//! Creation of a case's objects and pods.

use std::time::Duration;

use evictlab_case::{Case, PodPlacement};
use evictlab_cluster::workload::{
    Namespace, Placement, StageError, has_pod_template, object_manifest, pod_manifest,
};
use evictlab_evidence::{Observations, Recorded};
use evictlab_fault::Fault;
use evictlab_judge::Phase;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use tokio::time::Instant;

use crate::case_runner::error::{CaseError, describe_rejection};
use crate::case_runner::guard::MARGIN;
use crate::case_runner::observation::observer::Observer;
use crate::case_runner::observation::watch::watch_case;
use crate::case_runner::runner::{CaseRunner, Execution, NodeSpeed, ObservationResult};
use crate::node_access::pod_bounds::PodBounds;
use crate::node_access::privilege::MAX_GRACE_PERIOD;
use crate::node_setup::changes::set_up_node;
use crate::pressure::ramp::Ramp;

/// Time that a case needs to delete its pods after its deadline, at most; at the end of it, also
/// pods with a grace period have ended.
const CLEANUP_TIME: Duration = MAX_GRACE_PERIOD.duration();

/// Returns the time after which the kubelet begins to end the pods of a case: each has its grace
/// period left.
fn lifetime(case: &Case, speed: NodeSpeed) -> Duration {
    let grace = PodBounds::of(case).longest_grace;
    speed.deadline(case) + CLEANUP_TIME.saturating_sub(grace.duration())
}

impl CaseRunner<'_> {
    /// Creates the case's objects and pods and observes them until the case ends.
    pub(super) async fn create_and_observe(
        &self,
        namespace: &Namespace,
        ramp: Option<&Ramp>,
        speed: NodeSpeed,
        execution: &mut Execution,
    ) -> Result<ObservationResult, CaseError> {
        let node = &self.run_node.node;
        let case = &self.case.case;
        let updates = watch_case(node.client(), &namespace.name, &node.name);
        let environment = ramp.map(|ramp| ramp.environment().to_vec()).unwrap_or_default();
        let priority_classes = self.create_priority_classes(namespace).await?;
        let runtime_classes = self.create_runtime_classes(namespace).await?;
        let tolerations = match case.placed {
            PodPlacement::Bound => vec![],
            PodPlacement::Scheduled => node.tolerations().await?,
        };
        let lifetime = self.run_node.policy.as_ref().map(|_| lifetime(case, speed));
        let expiry = self.create_expiry(namespace, lifetime).await?;
        let placement = Placement {
            namespace: &namespace.name,
            node: &node.name,
            placed: case.placed,
            tolerations: &tolerations,
            priority_classes: &priority_classes,
            runtime_classes: &runtime_classes,
            environment: &environment,
            default_limits: self.run_node.policy.is_some() && case.pressure.is_none(),
            memory_limit: self.memory_limit(),
            active_deadline: lifetime,
            expiry: expiry.as_ref(),
            image: &**self.run_node.image_names(),
        };
        if let Some(ramp) = ramp {
            self.report_step(Phase::CreatePods, ramp.to_string());
        }
        set_up_node(node, case, &placement).await?;
        for manifest in &case.objects {
            namespace.create_object(&object_manifest(manifest, &placement)).await?;
        }
        self.inject_faults(namespace)?;
        let began = Instant::now();
        self.create_pods(namespace, &placement, &mut execution.observations).await?;
        execution.phase = Phase::Observe;
        let observer = Observer::new(self, namespace, &placement, began, speed);
        observer.run(updates, &mut execution.observations).await
    }

    /// Returns the memory limit of containers without one on a node that evictlab does not manage:
    /// the kernel enforces it before the guard sees what they take.
    fn memory_limit(&self) -> Option<u64> {
        let policy = self.run_node.policy.as_ref()?;
        Some(policy.max_pressure_bytes().saturating_add(MARGIN))
    }

    /// Creates the owner of the case's objects with pod templates, if there are any and the cluster
    /// is to end them after a lifetime.
    async fn create_expiry(
        &self,
        namespace: &Namespace,
        lifetime: Option<Duration>,
    ) -> Result<Option<OwnerReference>, CaseError> {
        let case = &self.case.case;
        let has_templates = case.objects.iter().chain(case.created_objects()).any(has_pod_template);
        match lifetime.filter(|_| has_templates) {
            Some(lifetime) => Ok(Some(namespace.create_expiry(lifetime).await?)),
            None => Ok(None),
        }
    }

    /// Creates the case's priority classes. Returns the name in the case and the name in the
    /// cluster.
    async fn create_priority_classes(
        &self,
        namespace: &Namespace,
    ) -> Result<Vec<(String, String)>, CaseError> {
        let mut names = vec![];
        for (name, value) in &self.case.case.priority_classes {
            let created = namespace.create_priority_class(name.as_str(), *value).await?;
            names.push((name.to_string(), created));
        }
        Ok(names)
    }

    /// Creates the case's runtime classes, as [`Self::create_priority_classes`].
    async fn create_runtime_classes(
        &self,
        namespace: &Namespace,
    ) -> Result<Vec<(String, String)>, CaseError> {
        let mut names = vec![];
        for (name, overhead) in &self.case.case.runtime_classes {
            let amounts = overhead
                .iter()
                .map(|(resource, amount)| (resource.as_str().to_owned(), Quantity(amount.to_string())));
            let created = namespace.create_runtime_class(name.as_str(), amounts.collect()).await?;
            names.push((name.to_string(), created));
        }
        Ok(names)
    }

    fn inject_faults(&self, namespace: &Namespace) -> Result<(), CaseError> {
        for faults in [self.faults, &self.case.case.faults] {
            if !faults.is_empty() {
                let names: Vec<_> = faults.iter().map(Fault::name).collect();
                self.report_step(Phase::CreatePods, format!("injecting faults: {}", names.join(", ")));
                self.run_node.node.backend().inject_faults(faults, &namespace.name)?;
            }
        }
        Ok(())
    }

    async fn create_pods(
        &self,
        namespace: &Namespace,
        placement: &Placement<'_>,
        observations: &mut Observations,
    ) -> Result<(), CaseError> {
        for (index, pod) in self.case.case.pods.iter().enumerate() {
            match namespace.create_pod(&pod_manifest(pod, placement)).await {
                Ok(created) => observations.pods_created.push(Recorded::decode(created)?),
                Err(StageError::Rejected { object, status, .. }) => {
                    let problem =
                        self.case.pod_rejection_problem(index, &object, &describe_rejection(&status));
                    return Err(CaseError::ApiRejected(problem.to_string()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_have_their_grace_period_before_the_end_of_the_cleanup() {
        let speed = NodeSpeed {
            container_start_duration: Duration::ZERO,
            extra_timeout: Duration::ZERO,
            ramp_duration: Duration::ZERO,
        };
        let rows = [
            ("terminationGracePeriodSeconds: 100,", 20),
            ("", 90),
            ("terminationGracePeriodSeconds: 5000,", 0),
        ];
        for (grace, after_deadline) in rows {
            let case: Case = serde_saphyr::from_str(&format!(
                "{{name: a, about: b, expect: {{}}, pods: [{{spec: {{{grace} containers: [{{name: c}}]}}}}]}}"
            ))
            .unwrap();
            let expected = speed.deadline(&case) + Duration::from_secs(after_deadline);
            assert_eq!(lifetime(&case, speed), expected, "{grace}");
        }
    }
}
