//! Who may run beside whom.

use std::time::Duration;

use crate::case::{Case, Signal, Step};

/// What a case needs for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nothing: it runs beside others on one node.
    Shared,
    /// The node, and its turn at the disk, which all nodes of a host share.
    Disk,
    /// The node: its kubelet is tuned for the case.
    Node,
    /// The host: every pod that starts or ends on any node changes what it counts.
    Host,
}

/// The class of a case, from what it does. A case that changes the kubelet's configuration, starves a node or has faults has the node for itself; where
/// all nodes are on one host (kind), disk and process ids are the host's. What cases without a turn at the disk write is much less than the way to
/// any threshold; processes they start by the hundred.
pub fn class(case: &Case, one_host: bool) -> Class {
    match &case.pressure {
        Some(pressure) => match pressure.signal {
            Signal::NodefsAvailable | Signal::NodefsInodesFree if one_host => Class::Disk,
            Signal::PidAvailable if one_host => Class::Host,
            _ => Class::Node,
        },
        // A kubelet that lets a pod live on evicts nobody else meanwhile.
        None if case.expect.killed_within.is_some() => Class::Node,
        None if changes_node(case) => Class::Node,
        // What neighbours do is counted and logged as well.
        None if case.speaks_of("counted") || case.speaks_of("kubeletLog") => Class::Node,
        None => Class::Shared,
    }
}

fn changes_node(case: &Case) -> bool {
    !case.kubelet_config.is_empty()
        || !case.faults.is_empty()
        || !case.static_pods.is_empty()
        || case.node.memory.is_some()
        || !case.node.capacity.is_empty()
        || case.steps.iter().any(Step::changes_node)
}

/// How often the plan is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// So many times.
    Times(u32),
    /// Until a verdict is neither passed nor reproduced nor skipped.
    UntilItFails,
    /// Once, and what told nothing (`inconclusive`, `error`) again, so many times in all.
    UntilTold(u32),
    /// Again and again on every node, no run waiting for another.
    Stress(Limit),
}

/// When stress is over. A run that was begun is let come to its end. None: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// So many runs of each case on each kubelet.
    pub runs: Option<u32>,
    /// No run begins later.
    pub time: Option<Duration>,
    /// At the first failure.
    pub failure: bool,
}

impl Repeat {
    /// Whether there is an attempt of this number, from 1; `failed` says whether any verdict so far was a failure.
    pub fn goes_on(self, attempt: u32, failed: bool) -> bool {
        match self {
            Self::Times(times) | Self::UntilTold(times) => attempt <= times,
            Self::UntilItFails => !failed,
            Self::Stress(_) => attempt == 1,
        }
    }
}

impl Limit {
    /// Whether there is a run of this number, from 1, after so long, with a failure or none so far.
    pub fn goes_on(self, attempt: u32, elapsed: Duration, failed: bool) -> bool {
        self.runs.is_none_or(|runs| attempt <= runs)
            && self.time.is_none_or(|time| elapsed < time)
            && !(self.failure && failed)
    }
}

/// How patient to be with a node that needs `start` for a container: a quick one needs 2 s or less.
pub fn patience(base: Duration, start: Duration) -> Duration {
    base.mul_f64((start.as_secs_f64() / 2.0).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_what_it_disturbs_for_itself() {
        let rows = [
            ("", true, Class::Shared),
            ("kubelet-config: {evictionMaxPodGracePeriod: 3}", true, Class::Node),
            ("pressure: {signal: memory.available}", true, Class::Node),
            ("faults: [{kubelet-restart: {}}]", false, Class::Node),
            ("expect: {killed-within: 30s}", true, Class::Node),
            ("pressure: {signal: nodefs.available}", true, Class::Disk),
            ("pressure: {signal: nodefs.inodesFree}", true, Class::Disk),
            ("pressure: {signal: pid.available}", true, Class::Host),
            ("pressure: {signal: nodefs.available}", false, Class::Node),
        ];
        for (more, one_host, expected) in rows {
            let text = format!("{{name: a, about: b, pods: [], expect: {{}}}}\n---\n{{{more}}}");
            let mut parts = serde_yaml::Deserializer::from_str(&text);
            let mut case: serde_json::Value = serde::Deserialize::deserialize(parts.next().unwrap()).unwrap();
            let more: serde_json::Value = serde::Deserialize::deserialize(parts.next().unwrap()).unwrap();
            for (key, value) in more.as_object().into_iter().flatten() {
                case[key] = value.clone();
            }
            assert_eq!(class(&serde_json::from_value(case).unwrap(), one_host), expected, "{more}");
        }
    }

    #[test]
    fn repeats_end() {
        assert!(Repeat::Times(2).goes_on(2, true) && !Repeat::Times(2).goes_on(3, false));
        assert!(Repeat::UntilItFails.goes_on(100, false) && !Repeat::UntilItFails.goes_on(2, true));
        assert!(Repeat::UntilTold(3).goes_on(3, true) && !Repeat::UntilTold(3).goes_on(4, true));
    }

    #[test]
    fn stress_ends() {
        let (early, late) = (Duration::from_secs(9), Duration::from_secs(10));
        let never = Limit::default();
        assert!(never.goes_on(u32::MAX, late, true));
        let runs = Limit { runs: Some(3), ..never };
        assert!(runs.goes_on(3, late, true) && !runs.goes_on(4, early, false));
        let time = Limit { time: Some(late), ..never };
        assert!(time.goes_on(9, early, true) && !time.goes_on(1, late, false));
        let failure = Limit { failure: true, ..never };
        assert!(failure.goes_on(9, late, false) && !failure.goes_on(9, early, true));
    }

    #[test]
    fn slow_nodes_get_more_patience() {
        let base = Duration::from_secs(40);
        assert_eq!(patience(base, Duration::from_millis(700)), base);
        assert_eq!(patience(base, Duration::from_secs(20)), base * 10);
    }
}
