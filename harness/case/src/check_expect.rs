//! Checks of the expected outcome, and of the outcomes with known bugs.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use evictlab_rules::threshold::Resource;
use evictlab_rules::{CgroupVersion, KubeletVersion};

use crate::checks::{Checker, Pod, join};
use crate::expect::Message;
use crate::positions::PathSegment;
use crate::problem::did_you_mean;
use crate::schema::KnownBug;
use crate::values::Name;
use crate::yaml_path;

/// Minor versions of kubelets in which the ranges of known bugs are compared.
const MINORS: RangeInclusive<u32> = 0..=99;

impl Checker<'_> {
    /// Checks that the expectation states anything that can fail.
    fn check_can_fail(&mut self) {
        let expect = &self.case.expect;
        let is_checked = |pod: &Pod| !expect.may_be_evicted.iter().any(|name| *name == *pod.name);
        let checks_evictions = expect.evicted.is_stated() && self.pods.iter().any(is_checked);
        if expect.has_only_evictions() && !checks_evictions {
            let note =
                "state `evicted: []` if none of the pods is evicted, or what the case observes in `that`";
            self.report(yaml_path!["expect"], "`expect` states nothing that can fail", note);
        }
    }

    fn check_oom_killed(&mut self) {
        let known: BTreeSet<&str> =
            self.pods.iter().flat_map(|pod| &pod.containers).map(String::as_str).collect();
        let names = self.case.expect.oom_killed.iter().flatten().enumerate();
        let unknown: Vec<_> = names.filter(|(_, name)| !known.contains(name.as_str())).collect();
        let reports: Vec<_> = unknown
            .into_iter()
            .map(|(at, name)| {
                let note = did_you_mean(name.as_str(), known.iter().copied());
                (at, name, note.unwrap_or_default())
            })
            .collect();
        for (at, name, note) in reports {
            let message = format!("no pod of the case has a container `{name}`");
            self.report(yaml_path!["expect", "oom-killed", at], message, note);
        }
    }

    pub(crate) fn check_expect(&mut self) {
        self.check_can_fail();
        self.check_oom_killed();
        let expect = &self.case.expect;
        self.check_evicted(yaml_path!["expect", "evicted"], &expect.evicted);
        self.check_evicted(yaml_path!["expect", "rejected"], expect.rejected.as_deref().unwrap_or_default());
        if let Some(message) = &expect.message {
            self.check_message(yaml_path!["expect", "message"], message, expect.evicted.first());
        }
        let needs_eviction = [
            ("witnesses", expect.witnesses.is_some()),
            ("annotations", expect.annotations.is_some()),
            ("disruption-target", expect.disruption_target.is_some()),
            ("killed-within", expect.killed_within.is_some()),
            ("killed-after", expect.killed_after.is_some()),
        ];
        for (field, stated) in needs_eviction {
            if stated && expect.evicted.is_empty() {
                self.report(
                    yaml_path!["expect", field],
                    format!("`{field}` needs an eviction, but `evicted` is empty"),
                    "",
                );
            }
        }
        if let (Some(least), Some(most)) = (expect.killed_after, expect.killed_within)
            && least.get() > most.get()
        {
            let message = format!("`killed-after` {least} is later than `killed-within` {most}");
            self.report(yaml_path!["expect", "killed-after"], message, "");
        }
        if expect.refused.is_some() && self.case.ephemeral_containers.is_empty() {
            self.report(
                yaml_path!["expect", "refused"],
                "`refused` needs an ephemeral container, but the case has none",
                "",
            );
        }
        for (pod, containers) in &expect.summary {
            let path = yaml_path!["expect", "summary", pod.as_str()];
            let Some(known) = self.containers_of(pod) else {
                self.report_unknown_pod(path, pod);
                continue;
            };
            for (at, container) in containers.iter().enumerate() {
                self.check_known("container", &join(path, yaml_path![at]), container, &known, pod);
            }
        }
    }

    pub(crate) fn check_known_bugs(&mut self) {
        for (at, bug) in self.case.known_bugs.iter().enumerate() {
            let path = yaml_path!["known-bugs", at];
            let has_pods = bug.evicted.is_some() || bug.rejected.is_some();
            let has_assertions = !bug.that.is_empty() || bug.sometimes;
            if !has_pods && bug.message.is_none() && bug.killed_after.is_none() && !has_assertions {
                let note = "state `evicted`, `rejected`, `message`, `killed-after`, `that` or `sometimes`";
                self.report(path, "the known bug does not state an outcome", note);
            }
            if bug.upstream.is_none() && bug.about.is_none() {
                let note = "state `upstream`, or `about` for a bug that is not reported upstream";
                self.report(path, "the known bug has neither `upstream` nor `about`", note);
            }
            if let Some(earlier) = hiding_bug(&self.case.known_bugs, at) {
                let message = format!("the known bug is hidden by known bug {}", earlier + 1);
                let note = "the first known bug that applies counts: state the narrower range first";
                self.report(path, message, note);
            }
            let evicted = bug.evicted.as_ref().unwrap_or(&self.case.expect.evicted);
            if let Some(instead) = &bug.evicted {
                self.check_evicted(&join(path, yaml_path!["evicted"]), instead);
            }
            if let Some(instead) = &bug.rejected {
                self.check_evicted(&join(path, yaml_path!["rejected"]), instead);
                if self.case.expect.rejected.is_none() {
                    let note = "without it, a rejection makes the case inconclusive";
                    self.report(path, "`rejected` of a known bug needs `expect.rejected`", note);
                }
            }
            if let Some(message) = &bug.message {
                self.check_message(&join(path, yaml_path!["message"]), message, evicted.first());
            }
        }
    }

    fn check_evicted(&mut self, path: &[PathSegment], pods: &[Name]) {
        for (at, pod) in pods.iter().enumerate() {
            if self.containers_of(pod).is_none() {
                self.report_unknown_pod(&join(path, yaml_path![at]), pod);
            } else if pods[..at].contains(pod) {
                self.report(&join(path, yaml_path![at]), format!("duplicate pod `{pod}`"), "");
            }
        }
    }

    fn check_message(&mut self, path: &[PathSegment], message: &Message, pod: Option<&Name>) {
        let Some(pod) = pod else {
            return self.report(path, "`message` needs an eviction, but `evicted` is empty", "");
        };
        if let Some(resource) = message.resource {
            self.check_resource(&join(path, yaml_path!["resource"]), resource);
        }
        let Some(containers) = self.containers_of(pod) else { return };
        for name in message.containers.iter().flat_map(|containers| containers.keys()) {
            self.check_known(
                "container",
                &join(path, yaml_path!["containers", name.as_str()]),
                name,
                &containers,
                pod,
            );
        }
        if let Some(limit) = &message.container_limit {
            let path = join(path, yaml_path!["container-limit", "container"]);
            self.check_known("container", &path, &limit.container, &containers, pod);
        }
        if let Some(limit) = &message.emptydir_limit {
            let volumes = self.pods.iter().find(|one| *pod == *one.name).map(|pod| pod.volumes.clone());
            let path = join(path, yaml_path!["emptydir-limit", "volume"]);
            self.check_known("volume", &path, &limit.volume, &volumes.unwrap_or_default(), pod);
        }
    }

    fn check_resource(&mut self, path: &[PathSegment], resource: Resource) {
        let under_pressure = self.case.pressure.as_ref().map(|pressure| pressure.signal.resource());
        match under_pressure {
            None => self.report(path, "`resource` needs a case with `pressure`", ""),
            Some(other) if other != resource => {
                self.report(path, "the signal under pressure belongs to another resource", "");
            }
            Some(_) => {}
        }
    }
}

/// Returns the index of an earlier bug if earlier bugs apply to all kubelets that have the bug: the
/// one that applies to the newest kubelet.
fn hiding_bug(bugs: &[KnownBug], at: usize) -> Option<usize> {
    let patches: BTreeSet<u64> = bugs.iter().flat_map(|bug| bug.kubelet.patch_bounds()).collect();
    let kubelets = MINORS.flat_map(|minor| {
        let version = KubeletVersion::from_minor(minor);
        patches.iter().map(move |patch| KubeletVersion { patch: *patch as u32, ..version.clone() })
    });
    let nodes = kubelets
        .flat_map(|kubelet| [CgroupVersion::V1, CgroupVersion::V2].map(|cgroup| (kubelet.clone(), cgroup)));
    let applies = |bug: &KnownBug, (kubelet, cgroup): &(KubeletVersion, CgroupVersion)| {
        bug.kubelet.matches(kubelet) && bug.cgroup.is_none_or(|of_bug| of_bug == *cgroup)
    };
    let (bug, earlier) = (bugs.get(at)?, &bugs[..at]);
    let mut hiding = None;
    for node in nodes.filter(|node| applies(bug, node)) {
        hiding = Some(earlier.iter().position(|earlier| applies(earlier, &node))?);
    }
    hiding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_tests::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[
            ("no such pod", "evicted: [alloc]", "evicted: [aloc]"),
            ("no such container is OOM-killed", "expect:\n", "expect:\n  oom-killed: [el2]\n"),
            ("no evicted pod", "evicted: [alloc]", "evicted: []"),
            ("no such container", "containers: {side:", "containers: {sidecar:"),
            ("no such container in a known bug", "{containers: {el1: {}}}", "{containers: {xx: {}}}"),
            ("no such volume", "resource: memory\n", "emptydir-limit: {volume: dat, limit: 1Mi}\n"),
            ("another resource", "resource: memory", "resource: pids"),
            (
                "a known bug without a description",
                "    upstream: kubernetes/kubernetes#124938\n    message",
                "    message",
            ),
            (
                "a hidden known bug",
                "known-bugs:\n",
                "known-bugs:\n  - {kubelet: \"<1.33\", about: No message., evicted: []}\n",
            ),
            ("a known bug without an outcome", "    message: {containers: {el1: {}}}\n", ""),
        ]));
    }

    #[test]
    fn a_bug_is_hidden_if_earlier_ones_apply_to_all_its_kubelets() {
        let bugs = |ranges: &[&str]| -> Vec<KnownBug> {
            let bug = |range: &&str| serde_saphyr::from_str(&format!("{{about: a, {range}}}")).unwrap();
            ranges.iter().map(bug).collect()
        };
        for (ranges, hiding) in [
            (&["kubelet: '<1.33'", "kubelet: '<1.32'"][..], Some(0)),
            (&["kubelet: '<1.32'", "kubelet: '<1.33'"], None),
            (&["kubelet: '>=1.29, <1.32'", "kubelet: '>=1.27'"], None),
            (&["kubelet: '<1.31'", "kubelet: '>=1.31'", "kubelet: '>=1.27'"], Some(1)),
            (&["kubelet: '<1.31'", "kubelet: '>=1.32'", "kubelet: '>=1.27'"], None),
            // Ranges that differ by the patch version.
            (&["kubelet: '<1.29.3'", "kubelet: '=1.29'"], None),
            (&["kubelet: '>=1.29.3, <1.30'", "kubelet: '=1.29'"], None),
            (&["kubelet: '=1.29.4'", "kubelet: '=1.29'"], None),
            (&["kubelet: '=1.29'", "kubelet: '=1.29.4'"], Some(0)),
            // Ranges that differ by the cgroup version.
            (&["kubelet: '<1.33', cgroup: v1", "kubelet: '<1.33'"], None),
            (&["kubelet: '<1.33'", "kubelet: '<1.33', cgroup: v1"], Some(0)),
            (&["kubelet: '<1.33', cgroup: v1", "kubelet: '<1.33', cgroup: v2"], None),
        ] {
            let bugs = bugs(ranges);
            assert_eq!(hiding_bug(&bugs, bugs.len() - 1), hiding, "{ranges:?}");
        }
    }
}
