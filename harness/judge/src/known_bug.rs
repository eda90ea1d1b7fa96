//! The known bug of a case that applies to a kubelet.

use evictlab_case::{Case, Cgroup, KnownBug};
use evictlab_evidence::Observations;
use evictlab_rules::KubeletVersion;

/// Returns the case's known bug that a kubelet has. `cgroup` is the cgroup version of its node; a
/// bug of one version applies to a node of an unknown version.
pub fn known_bug<'a>(
    case: &'a Case,
    kubelet: &KubeletVersion,
    cgroup: Option<Cgroup>,
) -> Option<&'a KnownBug> {
    let applies = |bug: &&KnownBug| includes(bug.cgroup, cgroup) && bug.kubelet.matches(kubelet);
    case.known_bugs.iter().find(applies)
}

/// Reports whether something that is stated for a cgroup version, or for all, applies to a node of
/// this version, or of an unknown one.
pub(crate) fn includes(stated: Option<Cgroup>, own: Option<Cgroup>) -> bool {
    stated.is_none_or(|stated| own.is_none_or(|own| own == stated))
}

/// Returns the cgroup version of the observed node, if it is known.
pub(crate) fn observed_cgroup(observations: &Observations) -> Option<Cgroup> {
    [Cgroup::V1, Cgroup::V2].into_iter().find(|version| version.as_str() == observations.cgroup)
}
