//! Admission while a node condition is held: `managerImpl.Admit`.

use crate::message::EvictionMessage;
use crate::pod::Qos;
use crate::threshold::NodeCondition;

/// What admission asks of a pod.
#[derive(Clone, Copy, Debug)]
pub struct Applicant {
    /// Its class.
    pub qos: Qos,
    /// Whether it is critical.
    pub critical: bool,
    /// Whether it tolerates `node.kubernetes.io/memory-pressure:NoSchedule`.
    pub tolerates_memory_pressure: bool,
}

/// Why a node that reports these conditions does not admit the pod, as the event says it (`status.message` has
/// `Pod was rejected: ` before it); none if it does.
pub fn rejection(conditions: &[NodeCondition], pod: Applicant) -> Option<EvictionMessage> {
    let memory_only = conditions == [NodeCondition::MemoryPressure];
    let admitted = conditions.is_empty()
        || pod.critical
        || memory_only && (pod.qos != Qos::BestEffort || pod.tolerates_memory_pressure);
    (!admitted).then(|| EvictionMessage::Rejected { conditions: conditions.to_vec(), in_status: false })
}
