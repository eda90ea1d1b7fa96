//! Admission while the node is under pressure: `managerImpl.Admit`.

use evictlab_rules::pod::Pod;
use evictlab_rules::ranking::{Applicant, rejection};
use evictlab_rules::threshold::NodeCondition;
use serde::Deserialize;
use serde_json::Value;

use super::Kubelet;

impl Kubelet {
    /// The pressure conditions that the eviction manager holds.
    pub fn conditions(&self) -> &[NodeCondition] {
        self.eviction.manager.as_ref().map_or(&[], |manager| manager.conditions())
    }

    /// Why a pod may not start on a node that has a pressure condition.
    pub fn rejects(&self, pod: &Value) -> Option<String> {
        let conditions = self.conditions();
        if conditions.is_empty() {
            return None;
        }
        let applicant = Pod::deserialize(pod).ok()?;
        let applicant = Applicant {
            qos: applicant.qos(),
            critical: applicant.is_critical(),
            tolerates_memory_pressure: tolerates_memory_pressure(pod),
        };
        rejection(conditions, applicant).map(|message| message.to_string())
    }
}

/// Whether one of the tolerations covers the taint, which has no value (`Toleration.ToleratesTaint`).
fn tolerates_memory_pressure(pod: &Value) -> bool {
    const KEY: &str = "node.kubernetes.io/memory-pressure";
    let text = |toleration: &Value, field: &str| toleration[field].as_str().unwrap_or_default().to_owned();
    pod["spec"]["tolerations"].as_array().into_iter().flatten().any(|toleration| {
        let (key, effect) = (text(toleration, "key"), text(toleration, "effect"));
        let exists = text(toleration, "operator") == "Exists";
        (effect.is_empty() || effect == "NoSchedule")
            && (key == KEY || key.is_empty() && exists)
            && (exists || text(toleration, "value").is_empty())
    })
}
