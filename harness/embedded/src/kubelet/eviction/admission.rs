//! Admission of pods under node pressure (`managerImpl.Admit`).

use evictlab_rules::pod::Pod;
use evictlab_rules::ranking::{AdmitAttributes, admission_rejection};
use evictlab_rules::threshold::NodeCondition;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kubelet::state::Kubelet;
use crate::resource::scheduling;

impl Kubelet {
    /// Returns the pressure conditions that the eviction manager reports.
    pub fn conditions(&self) -> &[NodeCondition] {
        self.eviction.manager.as_ref().map_or(&[], |manager| manager.conditions())
    }

    /// Returns the reason why a pod is rejected under a pressure condition.
    pub fn rejects(&self, pod: &Value) -> Option<String> {
        let conditions = self.conditions();
        if conditions.is_empty() {
            return None;
        }
        let applicant = Pod::deserialize(pod).ok()?;
        let applicant = AdmitAttributes {
            qos: applicant.qos_class(),
            critical: applicant.is_critical(),
            tolerates_memory_pressure: tolerates_memory_pressure(pod),
        };
        admission_rejection(conditions, applicant).map(|message| message.to_string())
    }
}

/// Returns whether a pod tolerates the memory-pressure taint, which has no value.
fn tolerates_memory_pressure(pod: &Value) -> bool {
    let taint = json!({"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"});
    scheduling::find_toleration(&pod["spec"]["tolerations"], &taint).is_some()
}
