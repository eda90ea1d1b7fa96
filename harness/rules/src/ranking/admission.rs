//! Admission to a node under pressure: `managerImpl.Admit`.

use crate::message::EvictionMessage;
use crate::pod::QosClass;
use crate::threshold::NodeCondition;

/// Attributes of a pod that admission depends on.
#[derive(Clone, Copy, Debug)]
pub struct AdmitAttributes {
    /// QoS class.
    pub qos: QosClass,
    /// True for a critical pod, [`Pod::is_critical`](crate::pod::Pod::is_critical).
    pub critical: bool,
    /// True if the pod tolerates `node.kubernetes.io/memory-pressure:NoSchedule`.
    pub tolerates_memory_pressure: bool,
}

/// Returns the message of the rejection by a node with these conditions, or `None` if the node
/// admits the pod.
///
/// Critical pods are always admitted. Under memory pressure alone, so is every pod that is not
/// BestEffort or that tolerates the taint. The message has the form of the event; `status.message`
/// begins with `Pod was rejected: `.
pub fn admission_rejection(conditions: &[NodeCondition], pod: AdmitAttributes) -> Option<EvictionMessage> {
    let memory_only = conditions == [NodeCondition::MemoryPressure];
    let admitted = conditions.is_empty()
        || pod.critical
        || memory_only && (pod.qos != QosClass::BestEffort || pod.tolerates_memory_pressure);
    (!admitted).then(|| EvictionMessage::Rejected { conditions: conditions.to_vec(), in_status: false })
}
