//! The known bug of a case that applies to a kubelet.

use evictlab_case::{Case, KnownBug};
use evictlab_rules::{CgroupVersion, KubeletVersion};

/// Returns the case's known bug that a kubelet has. `cgroup` is the cgroup version of its node; a
/// bug of one version applies to a node of an unknown version.
pub fn known_bug<'a>(
    case: &'a Case,
    kubelet: &KubeletVersion,
    cgroup: Option<CgroupVersion>,
) -> Option<&'a KnownBug> {
    let applies = |bug: &&KnownBug| includes(bug.cgroup, cgroup) && bug.kubelet.matches(kubelet);
    case.known_bugs.iter().find(applies)
}

/// Returns the label of a known bug: its upstream reference, or its description.
pub(crate) fn bug_label(bug: &KnownBug) -> String {
    let upstream = bug.upstream.as_ref().map(ToString::to_string);
    upstream.or_else(|| bug.about.clone()).unwrap_or_else(|| "a known bug".to_owned())
}

/// Returns whether something that is stated for a cgroup version, or for all, applies to a node of
/// this version, or of an unknown one.
pub(crate) fn includes(stated: Option<CgroupVersion>, own: Option<CgroupVersion>) -> bool {
    stated.is_none_or(|stated| own.is_none_or(|own| own == stated))
}
