//! Admission of pods under node pressure (`managerImpl.Admit`).

use evictlab_rules::message::EvictionMessage;
use evictlab_rules::pod::{Pod, QosClass, SYSTEM_CRITICAL_PRIORITY};
use evictlab_rules::ranking::{AdmitAttributes, admission_rejection};
use evictlab_rules::threshold::NodeCondition;
use k8s_openapi::api::core::v1::Taint;
use serde::Deserialize;
use serde_json::Value;

use crate::defect::{Defect, Defects};
use crate::kubelet::state::Kubelet;
use crate::resource::ObjectExt;
use crate::resource::scheduling::NodeConstraints;

/// Taint of a node under memory pressure.
const MEMORY_PRESSURE_TAINT: &str = "node.kubernetes.io/memory-pressure";

impl Kubelet {
    /// Returns the pressure conditions that the eviction manager reports.
    pub fn conditions(&self) -> &[NodeCondition] {
        self.eviction.manager.as_ref().map_or(&[], |manager| manager.conditions())
    }

    /// Returns the message with which a pod is rejected under a pressure condition; `None` if it is
    /// admitted.
    pub(crate) fn rejection_under_pressure(&self, pod: &Value) -> Option<String> {
        let conditions = self.conditions_for_admission();
        if conditions.is_empty() {
            return None;
        }
        let applicant = Pod::deserialize(pod).ok()?;
        let attributes = AdmitAttributes {
            qos: applicant.qos_class(),
            critical: self.counts_as_critical(&applicant),
            tolerates_memory_pressure: tolerates_memory_pressure(pod, &self.options.defects)
                && (!self.has(Defect::AdmissionIgnoresTolerationOfAll) || names_memory_pressure(pod))
                || self.has(Defect::AdmissionAcceptsOtherToleration) && tolerates_no_schedule(pod),
        };
        let message = admission_rejection(&conditions, attributes);
        self.rejection_with_defects(message, &conditions, &attributes).map(|message| message.to_string())
    }

    /// Returns whether admission admits a pod under any condition.
    fn counts_as_critical(&self, pod: &Pod) -> bool {
        let is_cluster_critical = pod.priority() == SYSTEM_CRITICAL_PRIORITY;
        let is_spared = pod.has_critical_priority() || !self.has(Defect::AdmissionRejectsStatic);
        pod.is_critical()
            && is_spared
            && !self.has(Defect::AdmissionRejectsCritical)
            && !(is_cluster_critical && self.has(Defect::AdmissionRejectsClusterCritical))
    }

    /// Returns the conditions that admission considers.
    fn conditions_for_admission(&self) -> Vec<NodeCondition> {
        let is_ignored = |condition: &NodeCondition| match condition {
            NodeCondition::MemoryPressure => false,
            NodeCondition::DiskPressure => self.has(Defect::AdmissionIgnoresDisk),
            NodeCondition::PidPressure => self.has(Defect::AdmissionIgnoresPids),
        };
        let manager = self.eviction.manager.as_ref().filter(|_| self.has(Defect::AdmissionIgnoresTransition));
        let has_ended =
            |condition: &NodeCondition| manager.is_some_and(|manager| !manager.is_under(*condition));
        let counts = |condition: &NodeCondition| !is_ignored(condition) && !has_ended(condition);
        self.conditions().iter().copied().filter(counts).collect()
    }

    /// Returns the rejection of a kubelet whose admission has defects.
    fn rejection_with_defects(
        &self,
        message: Option<EvictionMessage>,
        conditions: &[NodeCondition],
        pod: &AdmitAttributes,
    ) -> Option<EvictionMessage> {
        let AdmitAttributes { qos, critical, tolerates_memory_pressure } = *pod;
        let memory_only = conditions == [NodeCondition::MemoryPressure];
        let is_best_effort = qos == QosClass::BestEffort;
        let has_memory = conditions.contains(&NodeCondition::MemoryPressure);
        let has_disk = conditions.contains(&NodeCondition::DiskPressure);
        let is_admitted = if memory_only {
            self.has(Defect::AdmissionAdmitsBestEffort)
        } else {
            self.has(Defect::AdmissionDiskSparesBurstable) && !is_best_effort
                || self.has(Defect::AdmissionMemoryHidesDisk) && has_memory && !is_best_effort
                || self.has(Defect::AdmissionMemoryHidesPids) && has_memory && !has_disk && !is_best_effort
                || self.has(Defect::AdmissionDiskSparesTolerant) && tolerates_memory_pressure
        };
        let is_rejected = memory_only
            && !critical
            && (self.has(Defect::AdmissionRejectsBurstable) && qos == QosClass::Burstable
                || self.has(Defect::AdmissionRejectsGuaranteed) && qos == QosClass::Guaranteed
                || self.has(Defect::AdmissionIgnoresToleration) && is_best_effort);
        let rejected = || EvictionMessage::Rejected { conditions: conditions.to_vec(), in_status: false };
        let mut message = if is_rejected { Some(rejected()) } else { message.filter(|_| !is_admitted) };
        if self.has(Defect::AdmissionNamesFirstCondition)
            && let Some(EvictionMessage::Rejected { conditions, .. }) = &mut message
        {
            conditions.truncate(1);
        }
        message
    }
}

/// Returns whether a pod tolerates any taint of the effect `NoSchedule`.
fn tolerates_no_schedule(pod: &Value) -> bool {
    pod.spec().items("tolerations").any(|toleration| toleration.text("effect") == "NoSchedule")
}

/// Returns whether a toleration of a pod names the memory-pressure taint.
fn names_memory_pressure(pod: &Value) -> bool {
    pod.spec().items("tolerations").any(|toleration| toleration.text("key") == MEMORY_PRESSURE_TAINT)
}

/// Returns whether a pod tolerates the memory-pressure taint, which has no value.
fn tolerates_memory_pressure(pod: &Value, defects: &Defects) -> bool {
    let effect = if defects.has(Defect::AdmissionTolerationOfNoExecute) { "NoExecute" } else { "NoSchedule" };
    let taint =
        Taint { key: MEMORY_PRESSURE_TAINT.to_owned(), effect: effect.to_owned(), ..Taint::default() };
    NodeConstraints::of(pod).tolerates(&taint)
}
