//! Deadline of a case: the longest time that its observation may take.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::schema::Case;

/// Time for the pods to start, the kubelet to evict and the containers to terminate.
const BASE: Duration = Duration::from_secs(120);

impl Case {
    /// Returns the maximum time from the first pod to the end of the observation on a fast node:
    /// the stated `deadline`, or the sum of all times that the case states and two minutes.
    ///
    /// A stated `timeout` counts twice, for the last progress before it may be as late.
    pub fn deadline(&self) -> Duration {
        if let Some(deadline) = self.deadline {
            return deadline.get();
        }
        let pressure = self.pressure.iter().flat_map(|pressure| [pressure.ramp, pressure.soft_grace]);
        let waits = self.steps.iter().map(|step| step.wait);
        let stated = pressure.chain(waits).chain([self.timeout, self.timeout]);
        let stated: Duration = stated.flatten().map(|duration| duration.get()).sum();
        BASE + stated + self.longest_grace_period()
    }

    /// Returns the longest `terminationGracePeriodSeconds` of the pods and of pod templates.
    fn longest_grace_period(&self) -> Duration {
        let created = self.created_objects();
        let manifests = self.pods.iter().chain(&self.objects).chain(created);
        let seconds = manifests.filter_map(grace_period_seconds).max();
        Duration::from_secs(seconds.unwrap_or(0))
    }
}

/// Returns `terminationGracePeriodSeconds` of a pod, or of the pod template of a workload.
fn grace_period_seconds(manifest: &Map<String, Value>) -> Option<u64> {
    let spec = manifest.get("spec")?;
    let of_template = || spec.get("template")?.get("spec")?.get("terminationGracePeriodSeconds");
    spec.get("terminationGracePeriodSeconds").or_else(of_template)?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deadline(more: &str) -> u64 {
        let case: Case =
            serde_saphyr::from_str(&format!("name: a\nabout: b\nexpect: {{}}\n{more}")).expect("a case");
        case.deadline().as_secs()
    }

    #[test]
    fn the_deadline_follows_from_the_times_that_the_case_states() {
        assert_eq!(deadline(""), 120);
        assert_eq!(deadline("deadline: 30s"), 30);
        assert_eq!(deadline("pressure: {signal: memory.available, ramp: 15s, soft-grace: 20s}"), 155);
        assert_eq!(deadline("do: [{wait: 10s, about: a}, {wait: 5s, about: b}]"), 135);
        assert_eq!(deadline("timeout: 4m"), 600);
        assert_eq!(deadline("pods: [{spec: {terminationGracePeriodSeconds: 25}}, {spec: {}}]"), 145);
        let template = "{kind: Deployment, spec: {template: {spec: {terminationGracePeriodSeconds: 7}}}}";
        assert_eq!(deadline(&format!("objects: [{template}]")), 127);
    }
}
