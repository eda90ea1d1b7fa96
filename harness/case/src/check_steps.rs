//! Checks of the steps, node changes and assertions of a case.

use serde_json::{Map, Value};

use crate::assertion::Assertion;
use crate::checks::Checker;
use crate::positions::PathSegment;
use crate::values::Name;
use crate::yaml_path;

/// Prefix of the labels, annotations and taints that evictlab adds to a node.
pub const LABEL_PREFIX: &str = "evictlab.dev/";

impl Checker<'_> {
    /// Checks that additions to a node have the domain of the harness, so that they can be found
    /// and removed.
    pub(crate) fn check_node(&mut self) {
        for name in self.case.node.capacity.keys() {
            self.check_domain(yaml_path!["node", "capacity", name.as_str()], name);
        }
        for (at, step) in self.case.steps.iter().enumerate() {
            if let Some(taint) = &step.taint {
                self.check_domain(yaml_path!["do", at, "taint", "key"], &taint.key);
                if !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&taint.effect.as_str()) {
                    let note = "valid: NoSchedule, PreferNoSchedule, NoExecute";
                    self.report(
                        yaml_path!["do", at, "taint", "effect"],
                        format!("unknown taint effect {:?}", taint.effect),
                        note,
                    );
                }
            }
            if let Some(key) = &step.untaint {
                self.check_domain(yaml_path!["do", at, "untaint"], key);
            }
        }
    }

    fn check_domain(&mut self, path: &[PathSegment], name: &str) {
        if !name.starts_with(LABEL_PREFIX) {
            let note = format!("it must begin with {LABEL_PREFIX}");
            self.report(
                path,
                format!("`{name}` is outside of the domain of evictlab and would not be removed"),
                note,
            );
        }
    }

    pub(crate) fn check_steps(&mut self) {
        let mut created: Vec<String> = vec![];
        for (at, step) in self.case.steps.iter().enumerate() {
            let actions = step.actions();
            if let [_, second, ..] = actions.as_slice() {
                self.report(
                    yaml_path!["do", at, *second],
                    "the step has two actions",
                    "split it into two steps",
                );
            }
            if actions.is_empty() && step.when.is_none() && step.wait.is_none() {
                self.report(
                    yaml_path!["do", at],
                    "the step does nothing",
                    "state `when`, `wait` or an action",
                );
            }
            if step.answer.is_some() && step.create.is_none() && step.delete.is_none() && step.evict.is_none()
            {
                let note = "only `create`, `delete` and `evict` have one";
                self.report(yaml_path!["do", at, "answer"], "the step has no answer of the API", note);
            }
            if let Some(object) = &step.create {
                let name = object.get("metadata").and_then(|metadata| metadata.get("name")?.as_str());
                created.extend(name.map(str::to_owned));
                self.check_kind(yaml_path!["do", at, "create"], object);
            }
            let references = [
                ("delete", step.delete.as_ref().map(|deletion| &deletion.pod)),
                ("evict", step.evict.as_ref()),
                ("read-logs", step.read_logs.as_ref()),
            ];
            for (field, pod) in references {
                let Some(pod) = pod.filter(|pod| !created.iter().any(|name| pod.as_str() == name)) else {
                    continue;
                };
                self.check_pod_reference(yaml_path!["do", at, field], pod);
            }
        }
        for (at, object) in self.case.objects.iter().enumerate() {
            self.check_kind(yaml_path!["objects", at], object);
        }
        for (at, pod) in self.case.expect.may_be_evicted.iter().enumerate() {
            self.check_pod_reference(yaml_path!["expect", "may-be-evicted", at], pod);
        }
    }

    fn check_pod_reference(&mut self, path: &[PathSegment], pod: &Name) {
        if self.containers_of(pod).is_none() {
            self.report_unknown_pod(path, pod);
        }
    }

    fn check_kind(&mut self, path: &[PathSegment], object: &Map<String, Value>) {
        for field in ["apiVersion", "kind"] {
            if object.get(field).and_then(Value::as_str).is_none() {
                self.report(path, format!("the object has no `{field}`"), "an object of any kind is allowed");
            }
        }
    }

    pub(crate) fn check_assertions(&mut self) {
        let lists: Vec<(Vec<PathSegment>, &[Assertion])> =
            std::iter::once((yaml_path!["expect", "that"].to_vec(), &self.case.expect.that[..]))
                .chain(
                    self.case
                        .known_bugs
                        .iter()
                        .enumerate()
                        .map(|(at, bug)| (yaml_path!["known-bugs", at, "that"].to_vec(), &bug.that[..])),
                )
                .collect();
        for (path, assertions) in lists {
            for (at, assertion) in assertions.iter().enumerate() {
                let is_same = |other: &&Assertion| {
                    other.what == assertion.what
                        && other.kubelet == assertion.kubelet
                        && other.cgroup == assertion.cgroup
                };
                if assertions[..at].iter().any(|other| is_same(&other)) {
                    let path = [&path[..], yaml_path![at, "what"]].concat();
                    self.report(&path, format!("duplicate assertion {:?}", assertion.what), "");
                }
            }
        }
        if self.case.expect.rate.is_none() && self.case.known_bugs.iter().any(|bug| bug.sometimes) {
            self.report(yaml_path!["known-bugs"], "`sometimes` needs `expect.rate`", "");
        }
        if self.case.expect.rate.as_ref().is_some_and(|rate| rate.runs == 0) {
            self.report(yaml_path!["expect", "rate", "runs"], "`runs` must be at least 1", "");
        }
    }
}
