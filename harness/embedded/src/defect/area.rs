//! Parts of the kubelet.

use std::fmt;

/// Part of the kubelet that a defect is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// Texts and figures of eviction messages.
    Message,
    /// Annotations of Evicted events.
    Annotations,
    /// Order of eviction.
    Ranking,
    /// Grace periods of evicted pods.
    Grace,
    /// Hooks, order and grace periods of the containers of a pod that ends.
    Termination,
    /// Evaluation of thresholds, minimum reclaim, transition period.
    Threshold,
    /// Node conditions, and the taints that follow from them.
    Conditions,
    /// Admission of pods under pressure.
    Admission,
    /// Critical and static pods.
    Critical,
    /// Limits of local storage.
    Limits,
    /// Deletion of dead containers and unused images.
    Reclaim,
    /// The metric `kubelet_evictions`.
    Metrics,
    /// Events.
    Events,
    /// Status of evicted pods.
    Status,
    /// The condition `DisruptionTarget`.
    Disruption,
    /// `oom_score_adj` of containers.
    Oom,
    /// Preemption for critical pods.
    Preemption,
    /// Statistics in the Summary.
    Summary,
    /// Memory notifications of cgroup v1.
    Notifier,
    /// `podPidsLimit`, and the process IDs of the node.
    PidLimit,
    /// Container logs: their directories and rotation.
    Logs,
}

impl Area {
    /// Returns whether only kubelets on cgroup v1 show the defects of this area.
    pub fn needs_cgroup_v1(self) -> bool {
        self == Self::Notifier
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&kebab_case(&format!("{self:?}")))
    }
}

/// Converts the name of a variant to kebab case.
pub(super) fn kebab_case(name: &str) -> String {
    let mut kebab = String::with_capacity(name.len() + 8);
    for (place, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && place > 0 {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}
