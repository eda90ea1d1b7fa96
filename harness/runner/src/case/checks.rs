//! What a case file must be beyond its shape: what it speaks of is there, and it can mean something.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::positions::{Step, way};
use super::problem::did_you_mean;
use super::schema::{Case, Message, Resource};
use super::values::Name;

/// Something wrong, and the way to it.
pub(super) struct Finding {
    pub(super) way: Vec<Step>,
    pub(super) what: String,
    pub(super) note: String,
}

/// A variable that the harness puts into the containers of a case with pressure.
static GROWTH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\$[({]?(STEP|PAUSE|TOTAL|STEPS|STEP_BYTES|PAUSE_SECONDS|TOTAL_BYTES)\b").ok()
});

/// Checks a case whose shape is right; `stem` is its file's name without the extension.
pub(super) fn check(case: &Case, stem: &str) -> Vec<Finding> {
    let mut checker = Checker { case, pods: vec![], findings: vec![] };
    if case.name != *stem {
        let what = format!("the case is named `{}`, and its file `{stem}.yaml`", case.name);
        checker.find(way!["name"], what, "both must be the same");
    }
    checker.labels();
    checker.pods();
    checker.ephemeral_containers();
    checker.pressure();
    checker.growth();
    checker.expect();
    checker.known_bugs();
    checker.node();
    checker.steps();
    checker.facts();
    checker.findings
}

/// A pod's name and what is in it.
struct Pod {
    name: String,
    containers: BTreeSet<String>,
    volumes: BTreeSet<String>,
}

pub(super) struct Checker<'a> {
    pub(super) case: &'a Case,
    pods: Vec<Pod>,
    findings: Vec<Finding>,
}

impl Checker<'_> {
    pub(super) fn find(&mut self, way: &[Step], what: impl Into<String>, note: impl Into<String>) {
        self.findings.push(Finding { way: way.to_vec(), what: what.into(), note: note.into() });
    }

    /// Ginkgo's own rules: what a label filter could not select is no label.
    fn labels(&mut self) {
        for (at, label) in self.case.labels.iter().enumerate() {
            let reserved = |c: char| "&|!,()/".contains(c);
            if label.trim().is_empty()
                || label.contains(reserved)
                || label.starts_with(':')
                || label.ends_with(':')
            {
                let note = "a label is a word without & | ! , ( ) and /, or key:value";
                self.find(way!["labels", at], format!("{label:?} is no label"), note);
            }
        }
    }

    fn pods(&mut self) {
        let case = self.case;
        let made = case.steps.iter().any(|step| step.create.is_some());
        if case.pods.is_empty() && case.objects.is_empty() && case.static_pods.is_empty() && !made {
            self.find(way!["pods"], "a case needs a pod", "");
        }
        for (at, manifest) in self.case.pods.iter().enumerate() {
            for (field, only) in [("apiVersion", "v1"), ("kind", "Pod")] {
                if manifest.get(field).is_some_and(|value| value != only) {
                    self.find(way!["pods", at, field], format!("`{field}` of a pod is `{only}`"), "");
                }
            }
            let name = self.name_of_pod(at, manifest);
            let containers = self.containers_of_pod(at, manifest);
            let volumes =
                named(manifest.get("spec").and_then(|spec| spec.get("volumes"))).map(str::to_owned).collect();
            if let Some(name) = name {
                self.pods.push(Pod { name, containers, volumes });
            }
        }
        let made = case.steps.iter().filter_map(|step| step.create.as_ref());
        for manifest in made.filter(|manifest| manifest.get("kind").is_some_and(|kind| kind == "Pod")) {
            let name = manifest.get("metadata").and_then(|metadata| metadata.get("name")?.as_str());
            let of =
                |list: &str| named(manifest.get("spec").and_then(|spec| spec.get(list))).map(str::to_owned);
            let containers = of("initContainers").chain(of("containers")).collect();
            let volumes = of("volumes").collect();
            self.pods.extend(name.map(|name| Pod { name: name.to_owned(), containers, volumes }));
        }
    }

    fn name_of_pod(&mut self, at: usize, manifest: &Map<String, Value>) -> Option<String> {
        let Some(name) = manifest.get("metadata").and_then(|meta| meta.get("name")).and_then(Value::as_str)
        else {
            self.find(way!["pods", at, "metadata"], "the pod has no `metadata.name`", "");
            return None;
        };
        if let Err(why) = name.parse::<Name>() {
            self.find(way!["pods", at, "metadata", "name"], why.to_string(), "");
        } else if self.pods.iter().any(|pod| pod.name == name) {
            self.find(way!["pods", at, "metadata", "name"], format!("two pods are named `{name}`"), "");
        }
        Some(name.to_owned())
    }

    fn containers_of_pod(&mut self, at: usize, manifest: &Map<String, Value>) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let spec = manifest.get("spec");
        let empty = vec![];
        for list in ["initContainers", "containers"] {
            let containers = spec.and_then(|spec| spec.get(list));
            if containers.is_some_and(|containers| !containers.is_array()) {
                self.find(way!["pods", at, "spec", list], format!("`{list}` is a list"), "");
            }
            let containers = containers.and_then(Value::as_array).unwrap_or(&empty);
            if list == "containers" && containers.is_empty() {
                self.find(way!["pods", at, "spec", list], "the pod has no containers", "");
            }
            for (item, container) in containers.iter().enumerate() {
                let way = way!["pods", at, "spec", list, item];
                self.add_container(&mut names, way, container.get("name"));
            }
        }
        names
    }

    fn add_container(&mut self, names: &mut BTreeSet<String>, way: &[Step], name: Option<&Value>) {
        let Some(name) = name.and_then(Value::as_str) else {
            return self.find(way, "the container has no name", "");
        };
        let way = join(way, way!["name"]);
        if let Err(why) = name.parse::<Name>() {
            self.find(&way, why.to_string(), "");
        } else if !names.insert(name.to_owned()) {
            self.find(&way, format!("two containers of the pod are named `{name}`"), "");
        }
    }

    fn ephemeral_containers(&mut self) {
        for (at, ephemeral) in self.case.ephemeral_containers.iter().enumerate() {
            let way = way!["ephemeral-containers", at];
            let Some(pod) = self.pods.iter().position(|pod| ephemeral.pod == *pod.name) else {
                self.no_such_pod(&join(way, way!["pod"]), &ephemeral.pod);
                continue;
            };
            let mut names = std::mem::take(&mut self.pods[pod].containers);
            self.add_container(&mut names, &join(way, way!["container"]), ephemeral.container.get("name"));
            self.pods[pod].containers = names;
        }
    }

    /// One container grows in a case with pressure, and none in one without: there the variables do not exist.
    fn growth(&mut self) {
        let Some(variable) = GROWTH.as_ref() else { return };
        let mut growing = vec![];
        for (at, manifest) in self.case.pods.iter().enumerate() {
            for list in ["initContainers", "containers"] {
                let containers =
                    manifest.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array);
                for (item, container) in containers.into_iter().flatten().enumerate() {
                    if variable.is_match(&container.to_string()) {
                        growing.push(way!["pods", at, "spec", list, item, "name"].to_vec());
                    }
                }
            }
        }
        for (at, ephemeral) in self.case.ephemeral_containers.iter().enumerate() {
            if ephemeral.container.values().any(|value| variable.is_match(&value.to_string())) {
                growing.push(way!["ephemeral-containers", at, "container", "name"].to_vec());
            }
        }
        let elsewhere = [("objects", &self.case.objects), ("static-pods", &self.case.static_pods)];
        for (list, manifests) in elsewhere {
            for (at, manifest) in manifests.iter().enumerate() {
                if variable.is_match(&Value::Object(manifest.clone()).to_string()) {
                    growing.push(way![list, at].to_vec());
                }
            }
        }
        for (at, step) in self.case.steps.iter().enumerate() {
            if step.create.clone().is_some_and(|made| variable.is_match(&Value::Object(made).to_string())) {
                growing.push(way!["do", at, "create"].to_vec());
            }
        }
        match (&self.case.pressure, growing.as_slice()) {
            (Some(_), []) => {
                let note = "let one container use them, as in args: [stress, --mem-total, $(TOTAL), …]";
                self.find(way!["pressure"], "no container takes $(TOTAL) or $(TOTAL_BYTES)", note);
            }
            (Some(_), [_, more @ ..]) => {
                for way in more {
                    self.find(
                        way,
                        "two containers grow at once",
                        "$(TOTAL) and the like are for one container",
                    );
                }
            }
            (None, some) => {
                for way in some {
                    let note = "$(TOTAL) and the like have a value only where a case has `pressure`";
                    self.find(way, "the container grows, but nothing is under pressure", note);
                }
            }
        }
    }

    fn expect(&mut self) {
        let expect = &self.case.expect;
        self.evicted(way!["expect", "evicted"], &expect.evicted);
        if let Some(message) = &expect.message {
            self.message(way!["expect", "message"], message, expect.evicted.first());
        }
        let needs_eviction = [
            ("witnesses", expect.witnesses.is_some()),
            ("annotations", expect.annotations.is_some()),
            ("disruption-target", expect.disruption_target.is_some()),
            ("killed-within", expect.killed_within.is_some()),
        ];
        for (field, stated) in needs_eviction {
            if stated && expect.evicted.is_empty() {
                self.find(
                    way!["expect", field],
                    format!("`{field}` is about an eviction, and `evicted` is empty"),
                    "",
                );
            }
        }
        if expect.refused.is_some() && self.case.ephemeral_containers.is_empty() {
            self.find(
                way!["expect", "refused"],
                "`refused` is about an ephemeral container, and there is none",
                "",
            );
        }
        for (pod, containers) in &expect.summary {
            let way = way!["expect", "summary", pod.as_str()];
            let Some(known) = self.containers_of(pod) else {
                self.no_such_pod(way, pod);
                continue;
            };
            for (at, container) in containers.iter().enumerate() {
                self.known("container", &join(way, way![at]), container, &known, pod);
            }
        }
    }

    fn known_bugs(&mut self) {
        for (at, bug) in self.case.known_bugs.iter().enumerate() {
            let way = way!["known-bugs", at];
            let facts = !bug.that.is_empty() || bug.sometimes;
            if bug.evicted.is_none() && bug.message.is_none() && bug.killed_after.is_none() && !facts {
                let note = "state `evicted`, `message`, `killed-after`, `that` or `sometimes` as it is on these kubelets";
                self.find(way, "the known bug does not say what is seen", note);
            }
            let evicted = bug.evicted.as_ref().unwrap_or(&self.case.expect.evicted);
            if let Some(instead) = &bug.evicted {
                self.evicted(&join(way, way!["evicted"]), instead);
            }
            if let Some(message) = &bug.message {
                self.message(&join(way, way!["message"]), message, evicted.first());
            }
        }
    }

    fn evicted(&mut self, way: &[Step], pods: &[Name]) {
        for (at, pod) in pods.iter().enumerate() {
            if self.containers_of(pod).is_none() {
                self.no_such_pod(&join(way, way![at]), pod);
            } else if pods[..at].contains(pod) {
                self.find(&join(way, way![at]), format!("`{pod}` is there twice"), "");
            }
        }
    }

    fn message(&mut self, way: &[Step], message: &Message, pod: Option<&Name>) {
        let Some(pod) = pod else {
            return self.find(way, "a message is about an eviction, and `evicted` is empty", "");
        };
        if let Some(resource) = message.resource {
            self.resource(&join(way, way!["resource"]), resource);
        }
        let Some(containers) = self.containers_of(pod) else { return };
        for name in message.containers.iter().flat_map(|containers| containers.keys()) {
            self.known("container", &join(way, way!["containers", name.as_str()]), name, &containers, pod);
        }
        if let Some(limit) = &message.container_limit {
            let way = join(way, way!["container-limit", "container"]);
            self.known("container", &way, &limit.container, &containers, pod);
        }
        if let Some(limit) = &message.emptydir_limit {
            let volumes = self.pods.iter().find(|one| *pod == *one.name).map(|pod| pod.volumes.clone());
            let way = join(way, way!["emptydir-limit", "volume"]);
            self.known("volume", &way, &limit.volume, &volumes.unwrap_or_default(), pod);
        }
    }

    fn resource(&mut self, way: &[Step], resource: Resource) {
        let starved = self.case.pressure.as_ref().map(|pressure| pressure.signal.resource());
        match starved {
            None => self.find(way, "no resource is starved: the case has no `pressure`", ""),
            Some(starved) if starved != resource => {
                self.find(way, "the signal under pressure starves another resource", "");
            }
            Some(_) => {}
        }
    }

    pub(super) fn containers_of(&self, pod: &Name) -> Option<BTreeSet<String>> {
        self.pods.iter().find(|one| *pod == *one.name).map(|pod| pod.containers.clone())
    }

    pub(super) fn no_such_pod(&mut self, way: &[Step], pod: &Name) {
        if self.pods.len() < self.case.pods.len() {
            return; // It may be one of those whose name is missing, which has been said.
        }
        let names: Vec<_> = self.pods.iter().map(|pod| pod.name.as_str()).collect();
        let note = did_you_mean(pod.as_str(), names.iter().copied())
            .unwrap_or_else(|| format!("the case's pods: {}", names.join(", ")));
        self.find(way, format!("the case has no pod `{pod}`"), note);
    }

    fn known(&mut self, kind: &str, way: &[Step], name: &Name, known: &BTreeSet<String>, pod: &Name) {
        if known.contains(name.as_str()) {
            return;
        }
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        let note = did_you_mean(name.as_str(), known.iter().copied())
            .unwrap_or_else(|| format!("its {kind}s: {}", known.join(", ")));
        self.find(way, format!("the pod `{pod}` has no {kind} `{name}`"), note);
    }
}

/// A way, and on from its end.
fn join(way: &[Step], on: &[Step]) -> Vec<Step> {
    [way, on].concat()
}

/// The names of a manifest's list.
fn named(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(|item| item.get("name")?.as_str())
}
