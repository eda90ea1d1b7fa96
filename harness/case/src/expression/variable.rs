//! The variables of expressions.

use std::fmt;

/// A variable of expressions. `cases/README.md` describes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variable {
    /// Answers of steps, by the name that a step states.
    Answers,
    /// cgroup version of the node.
    Cgroup,
    /// Configuration of the kubelet.
    Configz,
    /// Evictions that the kubelet counted during the case.
    Counted,
    /// Pods as they were created, by name.
    Created,
    /// Events of the case.
    Events,
    /// Evictions in their order, with the content of their messages.
    Evictions,
    /// States of each pod during the case.
    History,
    /// Images that the node listed during the case.
    Images,
    /// Version of the kubelet.
    Kubelet,
    /// Lines of the kubelet's log.
    KubeletLog,
    /// Logs of containers, by pod and container.
    Logs,
    /// Metrics of the kubelet.
    Metrics,
    /// Minor version of the kubelet.
    Minor,
    /// The node.
    Node,
    /// States of the node during the case.
    NodeHistory,
    /// Objects of the case, by name.
    Objects,
    /// Pods of the case, including those that controllers created.
    PodList,
    /// Statistics of pods in the last sample, by name.
    PodStats,
    /// Pods of the case, by name.
    Pods,
    /// Samples of the Summary during the case.
    Samples,
    /// Statistics of containers in the last sample.
    Stats,
    /// The Summary before the case.
    SummaryBefore,
    /// Seconds since the first pod was created.
    T,
}

impl Variable {
    /// All variables, in the order of their names.
    pub const ALL: [Self; 24] = [
        Self::Answers,
        Self::Cgroup,
        Self::Configz,
        Self::Counted,
        Self::Created,
        Self::Events,
        Self::Evictions,
        Self::History,
        Self::Images,
        Self::Kubelet,
        Self::KubeletLog,
        Self::Logs,
        Self::Metrics,
        Self::Minor,
        Self::Node,
        Self::NodeHistory,
        Self::Objects,
        Self::PodList,
        Self::PodStats,
        Self::Pods,
        Self::Samples,
        Self::Stats,
        Self::SummaryBefore,
        Self::T,
    ];

    /// Returns the variable with this name in expressions.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variable| variable.as_str() == name)
    }

    /// Returns the name in expressions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::Cgroup => "cgroup",
            Self::Configz => "configz",
            Self::Counted => "counted",
            Self::Created => "created",
            Self::Events => "events",
            Self::Evictions => "evictions",
            Self::History => "history",
            Self::Images => "images",
            Self::Kubelet => "kubelet",
            Self::KubeletLog => "kubeletLog",
            Self::Logs => "logs",
            Self::Metrics => "metrics",
            Self::Minor => "minor",
            Self::Node => "node",
            Self::NodeHistory => "nodeHistory",
            Self::Objects => "objects",
            Self::PodList => "podList",
            Self::PodStats => "podStats",
            Self::Pods => "pods",
            Self::Samples => "samples",
            Self::Stats => "stats",
            Self::SummaryBefore => "summaryBefore",
            Self::T => "t",
        }
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_variables_are_listed_once_in_the_order_of_their_names() {
        let names = Variable::ALL.map(Variable::as_str);
        assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
        assert!(Variable::ALL.into_iter().enumerate().all(|(index, variable)| variable as usize == index));
    }
}
