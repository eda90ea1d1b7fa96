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
    let applies = |bug: &&KnownBug| applies_to_cgroup(bug.cgroup, cgroup) && bug.kubelet.matches(kubelet);
    case.known_bugs.iter().find(applies)
}

/// Returns the label of a known bug: its upstream reference, or its description.
pub(crate) fn bug_label(bug: &KnownBug) -> String {
    let upstream = bug.upstream.as_ref().map(ToString::to_string);
    upstream.or_else(|| bug.about.clone()).unwrap_or_else(|| "a known bug".to_owned())
}

/// Returns whether a known bug or an assertion for a cgroup version applies to a node. `stated` is
/// `None` for both versions, `node` for an unknown version.
pub(crate) fn applies_to_cgroup(stated: Option<CgroupVersion>, node: Option<CgroupVersion>) -> bool {
    stated.is_none_or(|stated| node.is_none_or(|node| node == stated))
}
