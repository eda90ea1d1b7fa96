//! Checks of the expected outcome, and of the outcomes with known bugs.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use evictlab_rules::threshold::Resource;
use evictlab_rules::{CgroupVersion, KubeletVersion};

use super::checker::{Checker, PodNames, join};
use crate::case_name::case_name;
use crate::expect::ExpectedMessage;
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
        let is_checked = |pod: &PodNames| !expect.may_be_evicted.iter().any(|name| *name == *pod.name);
        let checks_evictions = expect.evicted.is_stated() && self.pods.iter().any(is_checked);
        if expect.has_only_evictions() && !checks_evictions {
            let note =
                "state `evicted: []` if none of the pods is evicted, or what the case observes in `that`";
            self.report(yaml_path!["expect"], "`expect` states nothing that can fail", note);
        }
    }

    /// Checks the expected outcome of the case.
    pub(crate) fn check_expect(&mut self) {
        let expect = &self.case.expect;
        self.check_can_fail();
        self.check_oom_killed();
        self.check_pod_names(yaml_path!["expect", "evicted"], &expect.evicted);
        let rejected = expect.rejected.as_deref().unwrap_or_default();
        self.check_rejected(yaml_path!["expect", "rejected"], rejected);
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
            if stated {
                self.check_has_eviction(yaml_path!["expect", field], field, &expect.evicted);
            }
        }
        if let (Some(least), Some(most)) = (expect.killed_after, expect.killed_within)
            && least.get() > most.get()
        {
            let message = format!("`killed-after` {least} is later than `killed-within` {most}");
            self.report(yaml_path!["expect", "killed-after"], message, "");
        }
        if expect.api_rejection.is_some() && self.case.ephemeral_containers.is_empty() {
            self.report(
                yaml_path!["expect", "refused"],
                "`refused` needs an ephemeral container, but the case has none",
                "",
            );
        }
        self.check_summary();
    }

    /// Checks that the pods and containers of `expect.summary` are those of the case.
    fn check_summary(&mut self) {
        for (pod, containers) in &self.case.expect.summary {
            let path = yaml_path!["expect", "summary", pod.as_str()];
            let Some(known) = self.containers_of(pod) else {
                self.report_unknown_pod(path, pod);
                continue;
            };
            if self.is_static_pod(pod) {
                let note = "the Summary has it under the name of its mirror pod: check `samples` in `that`";
                self.report(path, format!("`{pod}` is a static pod"), note);
            }
            for (at, container) in containers.iter().enumerate() {
                self.check_known("container", &join(path, yaml_path![at]), container, &known, pod);
            }
        }
    }

    /// Checks that `expect.oom-killed` names containers of the case.
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

    /// Checks that each known bug states an outcome and a source, that no earlier bugs hide it, and
    /// that its outcome fits that of the case, from which it inherits what it does not state.
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
            if let Some(earlier) = hiding_bugs(&self.case.known_bugs, at) {
                let message = format!("the known bug is hidden by {}", list_bugs(&earlier));
                let note = "the first known bug that applies counts: state the narrower range first";
                self.report(path, message, note);
            }
            self.check_outcome_of_bug(path, bug);
        }
    }

    /// Checks the pods, the message and the time of the kill of a known bug. `killed-after`
    /// replaces both bounds of the case, so that it may be later than `expect.killed-within`.
    fn check_outcome_of_bug(&mut self, path: &[PathSegment], bug: &KnownBug) {
        let evicted = bug.evicted.as_ref().unwrap_or(&self.case.expect.evicted);
        if let Some(instead) = &bug.evicted {
            self.check_pod_names(&join(path, yaml_path!["evicted"]), instead);
        }
        if let Some(instead) = &bug.rejected {
            self.check_rejected(&join(path, yaml_path!["rejected"]), instead);
            if self.case.expect.rejected.is_none() {
                let note = "without it, a rejection makes the case inconclusive";
                self.report(path, "`rejected` of a known bug needs `expect.rejected`", note);
            }
        }
        if let Some(message) = &bug.message {
            self.check_message(&join(path, yaml_path!["message"]), message, evicted.first());
        }
        if bug.killed_after.is_some() {
            self.check_has_eviction(&join(path, yaml_path!["killed-after"]), "killed-after", evicted);
        }
    }

    /// Checks that the outcome with this field has an evicted pod, to which the field applies.
    fn check_has_eviction(&mut self, path: &[PathSegment], field: &str, evicted: &[Name]) {
        if evicted.is_empty() {
            self.report(path, format!("`{field}` needs an eviction, but `evicted` is empty"), "");
        }
    }

    fn is_static_pod(&self, name: &Name) -> bool {
        self.case.all_static_pods().any(|manifest| case_name(manifest) == Some(name.as_str()))
    }

    /// Checks that pods that the kubelet rejects can be observed.
    fn check_rejected(&mut self, path: &[PathSegment], pods: &[Name]) {
        self.check_pod_names(path, pods);
        for (at, pod) in pods.iter().enumerate() {
            if self.is_static_pod(pod) {
                let note = "the kubelet creates no mirror pod of it: check its event in `that`";
                self.report(&join(path, yaml_path![at]), format!("`{pod}` is a static pod"), note);
            }
        }
    }

    /// Checks that a list names pods of the case, each once.
    fn check_pod_names(&mut self, path: &[PathSegment], pods: &[Name]) {
        for (at, pod) in pods.iter().enumerate() {
            if self.containers_of(pod).is_none() {
                self.report_unknown_pod(&join(path, yaml_path![at]), pod);
            } else if pods[..at].contains(pod) {
                self.report(&join(path, yaml_path![at]), format!("duplicate pod `{pod}`"), "");
            }
        }
    }

    /// Checks that the content of a message fits the pressure of the case, and the containers and
    /// volumes of `pod`, the first evicted pod.
    fn check_message(&mut self, path: &[PathSegment], message: &ExpectedMessage, pod: Option<&Name>) {
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

    /// Checks that a message is about the resource that is under pressure.
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

/// If earlier bugs together cover every kubelet of this bug, returns their indexes: of each
/// kubelet, the first bug that applies.
fn hiding_bugs(bugs: &[KnownBug], at: usize) -> Option<BTreeSet<usize>> {
    let patches: BTreeSet<u32> = bugs
        .iter()
        .flat_map(|bug| bug.kubelet.patch_bounds())
        .map(|patch| u32::try_from(patch).unwrap_or(u32::MAX))
        .collect();
    let kubelets = MINORS.flat_map(|minor| {
        let version = KubeletVersion::from_minor(minor);
        patches.iter().map(move |patch| KubeletVersion { patch: *patch, ..version.clone() })
    });
    let nodes = kubelets
        .flat_map(|kubelet| [CgroupVersion::V1, CgroupVersion::V2].map(|cgroup| (kubelet.clone(), cgroup)));
    let applies = |bug: &KnownBug, (kubelet, cgroup): &(KubeletVersion, CgroupVersion)| {
        bug.kubelet.matches(kubelet) && bug.cgroup.is_none_or(|of_bug| of_bug == *cgroup)
    };
    let (bug, earlier) = (bugs.get(at)?, &bugs[..at]);
    let mut hiding = BTreeSet::new();
    for node in nodes.filter(|node| applies(bug, node)) {
        hiding.insert(earlier.iter().position(|earlier| applies(earlier, &node))?);
    }
    (!hiding.is_empty()).then_some(hiding)
}

/// Lists bugs by their numbers, from 1: `known bugs 1, 2 and 4`.
fn list_bugs(indexes: &BTreeSet<usize>) -> String {
    let mut numbers: Vec<String> = indexes.iter().map(|index| (index + 1).to_string()).collect();
    let last = numbers.pop().unwrap_or_default();
    match numbers.as_slice() {
        [] => format!("known bug {last}"),
        others => format!("known bugs {} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{GOOD, errors_of_changes};
    use crate::parse;

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
            (
                "a known bug that two others hide",
                "known-bugs:\n  - kubelet: \"<1.32\"",
                "known-bugs:\n  - {kubelet: \"<1.31\", about: No message., evicted: []}\n  - {kubelet: \">=1.31, <1.33\", about: No message., evicted: []}\n  - kubelet: \"<1.33\"",
            ),
            (
                "a known bug with a time of the kill, but without an eviction",
                "    message: {containers: {el1: {}}}\n",
                "    evicted: []\n    killed-after: 3s\n",
            ),
            (
                "a static pod that is rejected, or in the Summary",
                "expect:\n",
                "static-pods:\n  - {metadata: {name: web}, spec: {containers: [{name: a, image: 'a:1'}]}}\nexpect:\n  rejected: [web, alloc]\n  summary: {web: [a]}\n",
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
            (&["kubelet: '<1.33'", "kubelet: '<1.32'"][..], &[0][..]),
            (&["kubelet: '<1.32'", "kubelet: '<1.33'"], &[]),
            (&["kubelet: '>=1.29, <1.32'", "kubelet: '>=1.27'"], &[]),
            (&["kubelet: '<1.31'", "kubelet: '>=1.31'", "kubelet: '>=1.27'"], &[0, 1]),
            (&["kubelet: '<1.31'", "kubelet: '>=1.31, <1.33'", "kubelet: '<1.33'"], &[0, 1]),
            (&["kubelet: '<1.33'", "kubelet: '>=1.31, <1.34'", "kubelet: '<1.33'"], &[0]),
            (&["kubelet: '<1.31'", "kubelet: '>=1.32'", "kubelet: '>=1.27'"], &[]),
            // Ranges that differ by the patch version.
            (&["kubelet: '<1.29.3'", "kubelet: '=1.29'"], &[]),
            (&["kubelet: '>=1.29.3, <1.30'", "kubelet: '=1.29'"], &[]),
            (&["kubelet: '=1.29.4'", "kubelet: '=1.29'"], &[]),
            (&["kubelet: '=1.29'", "kubelet: '=1.29.4'"], &[0][..]),
            // Ranges that differ by the cgroup version.
            (&["kubelet: '<1.33', cgroup: v1", "kubelet: '<1.33'"], &[]),
            (&["kubelet: '<1.33'", "kubelet: '<1.33', cgroup: v1"], &[0][..]),
            (&["kubelet: '<1.33', cgroup: v1", "kubelet: '<1.33', cgroup: v2"], &[]),
        ] {
            let bugs = bugs(ranges);
            let found = hiding_bugs(&bugs, bugs.len() - 1).unwrap_or_default();
            assert_eq!(found, BTreeSet::from_iter(hiding.iter().copied()), "{ranges:?}");
        }
    }

    #[test]
    fn bugs_are_listed_by_their_numbers() {
        for (indexes, text) in [
            (&[0][..], "known bug 1"),
            (&[0, 1], "known bugs 1 and 2"),
            (&[0, 1, 3], "known bugs 1, 2 and 4"),
        ] {
            assert_eq!(list_bugs(&BTreeSet::from_iter(indexes.iter().copied())), text);
        }
    }

    /// An expectation that cannot fail is an error at its line.
    #[test]
    fn an_expectation_must_be_able_to_fail() {
        let (before, _) = GOOD.split_once("expect:").unwrap();
        let parsed = |expect: &str| {
            let text = format!("{before}{expect}");
            parse("suite", "suite/good.yaml", "good.yaml", text.as_bytes()).map_err(|error| error.to_string())
        };
        for expect in [
            "expect: {}",
            "expect: {may-be-evicted: [alloc]}",
            "expect: {evicted: [], may-be-evicted: [alloc]}",
        ] {
            let error = parsed(expect).unwrap_err();
            assert!(error.contains("`expect` states nothing that can fail"), "{error}");
            assert!(error.contains("good.yaml:18:1") && error.contains("state `evicted: []`"), "{error}");
        }
        for expect in ["expect: {evicted: []}", "expect: {that: [{what: a, value: size(events) > 0}]}"] {
            assert!(parsed(expect).is_ok(), "{expect}");
        }
    }
}
