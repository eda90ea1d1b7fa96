//! Checks of what a case does to its node and in its steps, and of its facts.

use super::checks::Checker;
use super::positions::{Step as Way, way};
use super::{Fact, Name};
use crate::cluster::DOMAIN;

impl Checker<'_> {
    /// What is added to a node is called after the harness, so that it can be found and taken back.
    pub(super) fn node(&mut self) {
        for name in self.case.node.capacity.keys() {
            self.of_ours(way!["node", "capacity", name.as_str()], name);
        }
        for (at, step) in self.case.steps.iter().enumerate() {
            if let Some(taint) = &step.taint {
                self.of_ours(way!["do", at, "taint", "key"], &taint.key);
                if !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&taint.effect.as_str()) {
                    let note = "effects are NoSchedule, PreferNoSchedule and NoExecute";
                    self.find(
                        way!["do", at, "taint", "effect"],
                        format!("{:?} is no effect", taint.effect),
                        note,
                    );
                }
            }
            if let Some(key) = &step.untaint {
                self.of_ours(way!["do", at, "untaint"], key);
            }
        }
    }

    fn of_ours(&mut self, way: &[Way], name: &str) {
        if !name.starts_with(DOMAIN) {
            let note = format!("begin it with {DOMAIN}");
            self.find(way, format!("`{name}` could be somebody else's and would not be taken back"), note);
        }
    }

    pub(super) fn steps(&mut self) {
        let mut made: Vec<String> = vec![];
        for (at, step) in self.case.steps.iter().enumerate() {
            let actions = step.actions();
            if let [_, second, ..] = actions.as_slice() {
                self.find(way!["do", at, *second], "the step does two things", "make two steps of it");
            }
            if actions.is_empty() && step.when.is_none() && step.wait.is_none() {
                self.find(way!["do", at], "the step does nothing", "state `when`, `wait` or what is done");
            }
            if step.answer.is_some() && step.create.is_none() && step.delete.is_none() && step.evict.is_none()
            {
                let note = "`create`, `delete` and `evict` have one";
                self.find(way!["do", at, "answer"], "the step has no answer of the API", note);
            }
            if let Some(object) = &step.create {
                let name = object.get("metadata").and_then(|metadata| metadata.get("name")?.as_str());
                made.extend(name.map(str::to_owned));
                self.kind(way!["do", at, "create"], object);
            }
            let spoken_of = [
                ("delete", step.delete.as_ref().map(|deletion| &deletion.pod)),
                ("evict", step.evict.as_ref()),
                ("read-logs", step.read_logs.as_ref()),
            ];
            for (field, pod) in spoken_of {
                let Some(pod) = pod.filter(|pod| !made.iter().any(|made| pod.as_str() == made)) else {
                    continue;
                };
                self.pod_of_case(way!["do", at, field], pod);
            }
        }
        for (at, object) in self.case.objects.iter().enumerate() {
            self.kind(way!["objects", at], object);
        }
        for (at, pod) in self.case.expect.may_be_evicted.iter().enumerate() {
            self.pod_of_case(way!["expect", "may-be-evicted", at], pod);
        }
    }

    fn pod_of_case(&mut self, way: &[Way], pod: &Name) {
        if self.containers_of(pod).is_none() {
            self.no_such_pod(way, pod);
        }
    }

    fn kind(&mut self, way: &[Way], object: &serde_json::Map<String, serde_json::Value>) {
        for field in ["apiVersion", "kind"] {
            if object.get(field).and_then(serde_json::Value::as_str).is_none() {
                self.find(way, format!("the object has no `{field}`"), "it may be of any kind");
            }
        }
    }

    pub(super) fn facts(&mut self) {
        let lists: Vec<(Vec<Way>, &[Fact])> =
            std::iter::once((way!["expect", "that"].to_vec(), &self.case.expect.that[..]))
                .chain(
                    self.case
                        .known_bugs
                        .iter()
                        .enumerate()
                        .map(|(at, bug)| (way!["known-bugs", at, "that"].to_vec(), &bug.that[..])),
                )
                .collect();
        for (way, facts) in lists {
            for (at, fact) in facts.iter().enumerate() {
                let same = |other: &&Fact| {
                    other.what == fact.what && other.kubelet == fact.kubelet && other.cgroup == fact.cgroup
                };
                if facts[..at].iter().any(|other| same(&other)) {
                    let way = [&way[..], way![at, "what"]].concat();
                    self.find(&way, format!("two facts are called {:?}", fact.what), "");
                }
            }
        }
        if self.case.expect.rate.is_none() && self.case.known_bugs.iter().any(|bug| bug.sometimes) {
            self.find(way!["known-bugs"], "`sometimes` is about `expect.rate`, and there is none", "");
        }
        if self.case.expect.rate.as_ref().is_some_and(|rate| rate.runs == 0) {
            self.find(way!["expect", "rate", "runs"], "a case is run once or more", "");
        }
    }
}
