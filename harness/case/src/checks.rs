//! Checks of a case beyond its syntax: references resolve, and the parts fit together.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use crate::action::{Action, NodeChange};
use crate::kubelet_fields::config_mistakes;
use crate::located_pod_specs::case_name;
use crate::manifest_types::{CONTAINER_LISTS, containers_of};
use crate::positions::PathSegment;
use crate::pressure::PressureMechanism;
use crate::problem::did_you_mean;
use crate::schema::Case;
use crate::values::Name;
use crate::yaml_path;

/// A problem, and the path of the value that has it.
pub(crate) struct PathProblem {
    pub(crate) path: Vec<PathSegment>,
    pub(crate) message: String,
    pub(crate) note: String,
    /// Word of the value that the problem is about.
    pub(crate) word: Option<String>,
}

/// A variable that the harness sets in the containers of a case with pressure.
static GROWTH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\$[({]?(STEP|PAUSE|TOTAL|STEPS|STEP_BYTES|PAUSE_SECONDS|TOTAL_BYTES)\b").ok()
});

/// Checks a case; `stem` is the file name without its extension.
pub(crate) fn check(case: &Case, stem: &str) -> Vec<PathProblem> {
    let mut checker = Checker { case, pods: vec![], findings: vec![] };
    if case.name != *stem {
        let what = format!("the case is named `{}`, but its file `{stem}.yaml`", case.name);
        checker.report(yaml_path!["name"], what, "both must be equal");
    }
    checker.check_labels();
    checker.check_pods();
    checker.check_manifests();
    checker.check_ephemeral_containers();
    checker.check_pressure();
    checker.check_growth();
    checker.check_expect();
    checker.check_known_bugs();
    checker.check_node();
    checker.check_kubelet_config();
    checker.check_steps();
    checker.check_assertions();
    checker.check_expressions();
    checker.findings
}

/// A pod of the case, with the names of its containers and volumes.
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) containers: BTreeSet<String>,
    pub(crate) volumes: BTreeSet<String>,
}

pub(crate) struct Checker<'a> {
    pub(crate) case: &'a Case,
    pub(crate) pods: Vec<Pod>,
    findings: Vec<PathProblem>,
}

impl Checker<'_> {
    pub(crate) fn report(
        &mut self,
        path: &[PathSegment],
        message: impl Into<String>,
        note: impl Into<String>,
    ) {
        let (message, note) = (message.into(), note.into());
        self.findings.push(PathProblem { path: path.to_vec(), message, note, word: None });
    }

    /// Reports a problem with a word of a value.
    pub(crate) fn report_word(
        &mut self,
        path: &[PathSegment],
        word: &str,
        message: impl Into<String>,
        note: impl Into<String>,
    ) {
        self.report(path, message, note);
        if let Some(finding) = self.findings.last_mut() {
            finding.word = Some(word.to_owned());
        }
    }

    /// Checks the fields of the kubelet's configuration, of the case and of steps.
    fn check_kubelet_config(&mut self) {
        let case = self.case;
        let of_case = (yaml_path!["kubelet-config"].to_vec(), &case.kubelet_config);
        let steps = case.steps.iter().enumerate();
        let of_steps = steps.filter_map(|(at, step)| match step.node_change() {
            Some(NodeChange::Configure(config)) => Some((yaml_path!["do", at, "configure"].to_vec(), config)),
            _ => None,
        });
        for (path, config) in std::iter::once(of_case).chain(of_steps) {
            for mistake in config_mistakes(config) {
                let at = join(&path, &mistake.path);
                match mistake.key {
                    Some(key) => self.report_word(&at, &key, mistake.message, mistake.note),
                    None => self.report(&at, mistake.message, mistake.note),
                }
            }
        }
    }

    /// Checks labels by the rules of Ginkgo: a label filter could not select others.
    fn check_labels(&mut self) {
        for (at, label) in self.case.labels.iter().enumerate() {
            let reserved = |c: char| "&|!,()/".contains(c);
            if label.trim().is_empty()
                || label.contains(reserved)
                || label.starts_with(':')
                || label.ends_with(':')
            {
                let note = "a label must not contain & | ! , ( ) or /, nor begin or end with `:`";
                self.report(yaml_path!["labels", at], format!("invalid label {label:?}"), note);
            }
        }
    }

    fn check_pods(&mut self) {
        let case = self.case;
        let creates_pod = case.created_objects().next().is_some();
        if case.pods.is_empty() && case.objects.is_empty() && case.static_pods.is_empty() && !creates_pod {
            self.report(yaml_path!["pods"], "the case has no pod", "");
        }
        for (at, manifest) in self.case.pods.iter().enumerate() {
            for (field, valid) in [("apiVersion", "v1"), ("kind", "Pod")] {
                if manifest.get(field).is_some_and(|value| value != valid) {
                    self.report(
                        yaml_path!["pods", at, field],
                        format!("`{field}` of a pod must be `{valid}`"),
                        "",
                    );
                }
            }
            let name = self.check_pod_name(at, manifest);
            let containers = self.check_containers(at, manifest);
            let volumes = item_names(manifest.get("spec").and_then(|spec| spec.get("volumes")))
                .map(str::to_owned)
                .collect();
            if let Some(name) = name {
                self.pods.push(Pod { name, containers, volumes });
            }
        }
        let created = case.created_objects();
        for manifest in created.filter(|manifest| manifest.get("kind").is_some_and(|kind| kind == "Pod")) {
            let name = case_name(manifest);
            let spec = manifest.get("spec").and_then(Value::as_object);
            let containers = spec.into_iter().flat_map(containers_of);
            let containers =
                containers.filter_map(|(_, _, container)| Some(container.get("name")?.as_str()?.to_owned()));
            let containers = containers.collect();
            let volumes = item_names(spec.and_then(|spec| spec.get("volumes"))).map(str::to_owned).collect();
            self.pods.extend(name.map(|name| Pod { name: name.to_owned(), containers, volumes }));
        }
    }

    fn check_pod_name(&mut self, at: usize, manifest: &Map<String, Value>) -> Option<String> {
        let Some(name) = case_name(manifest) else {
            let note = "state `name`, or `generateName` for a name that the API server completes";
            self.report(yaml_path!["pods", at, "metadata"], "the pod has no `metadata.name`", note);
            return None;
        };
        let stated =
            |field: &str| manifest.get("metadata").is_some_and(|metadata| metadata.get(field).is_some());
        let field = if stated("name") { "name" } else { "generateName" };
        let path = yaml_path!["pods", at, "metadata", field];
        if stated("name") && stated("generateName") {
            let note = "the API server ignores `generateName` beside `name`";
            self.report(path, "the pod has both a `name` and a `generateName`", note);
        }
        if let Err(error) = name.parse::<Name>() {
            self.report(path, error.to_string(), "");
        } else if self.pods.iter().any(|pod| pod.name == name) {
            self.report(path, format!("two pods are named `{name}`"), "");
        }
        Some(name.to_owned())
    }

    fn check_containers(&mut self, at: usize, manifest: &Map<String, Value>) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let spec = manifest.get("spec");
        let empty = vec![];
        for list in CONTAINER_LISTS {
            let containers = spec.and_then(|spec| spec.get(list));
            if containers.is_some_and(|containers| !containers.is_array()) {
                self.report(yaml_path!["pods", at, "spec", list], format!("`{list}` must be a list"), "");
            }
            let containers = containers.and_then(Value::as_array).unwrap_or(&empty);
            if list == "containers" && containers.is_empty() {
                self.report(yaml_path!["pods", at, "spec", list], "the pod has no containers", "");
            }
            for (item, container) in containers.iter().enumerate() {
                let path = yaml_path!["pods", at, "spec", list, item];
                self.add_container(&mut names, path, container.get("name"));
            }
        }
        names
    }

    /// Rejects text that is not the name of an image: it reaches containers, nodes and scripts.
    pub(crate) fn check_image(&mut self, path: &[PathSegment], image: Option<&Value>) {
        if let Some(image) = image.and_then(Value::as_str) {
            self.check_image_name(&join(path, yaml_path!["image"]), image);
        }
    }

    pub(crate) fn check_image_name(&mut self, path: &[PathSegment], image: &str) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._/:@-".contains(c);
        if !(image.starts_with(|c: char| c.is_ascii_alphanumeric()) && image.chars().all(is_part)) {
            self.report(
                path,
                format!("invalid image name {image:?}"),
                "examples: agnhost:2.52, registry.k8s.io/pause:3.10",
            );
        }
    }

    fn add_container(&mut self, names: &mut BTreeSet<String>, path: &[PathSegment], name: Option<&Value>) {
        let Some(name) = name.and_then(Value::as_str) else {
            return self.report(path, "the container has no name", "");
        };
        let path = join(path, yaml_path!["name"]);
        if let Err(error) = name.parse::<Name>() {
            self.report(&path, error.to_string(), "");
        } else if !names.insert(name.to_owned()) {
            self.report(&path, format!("two containers of the pod are named `{name}`"), "");
        }
    }

    fn check_ephemeral_containers(&mut self) {
        for (at, ephemeral) in self.case.ephemeral_containers.iter().enumerate() {
            let path = yaml_path!["ephemeral-containers", at];
            let Some(pod) = self.pods.iter().position(|pod| ephemeral.pod == *pod.name) else {
                self.report_unknown_pod(&join(path, yaml_path!["pod"]), &ephemeral.pod);
                continue;
            };
            let mut names = std::mem::take(&mut self.pods[pod].containers);
            self.add_container(
                &mut names,
                &join(path, yaml_path!["container"]),
                ephemeral.container.get("name"),
            );
            self.pods[pod].containers = names;
        }
    }

    /// Checks that one container uses the growth variables in a case with pressure, and none in a
    /// case without: the variables are not set there. Pods that meet a reservation can have sizes of
    /// their own.
    fn check_growth(&mut self) {
        let Some(variable) = GROWTH.as_ref() else { return };
        let growing = growing_containers(self.case, variable);
        match (self.case.pressure.as_ref().map(|pressure| pressure.by), growing.as_slice()) {
            (Some(PressureMechanism::KubeReserved), []) => {}
            (Some(PressureMechanism::Threshold), []) => {
                let note = "let one container use it, such as args: [stress, --mem-total, $(TOTAL), …]";
                self.report(yaml_path!["pressure"], "no container uses $(TOTAL) or $(TOTAL_BYTES)", note);
            }
            (Some(_), [_, more @ ..]) => {
                for path in more {
                    self.report(
                        path,
                        "more than one container grows",
                        "only one container may use $(TOTAL) and the like",
                    );
                }
            }
            (None, growing) => {
                for path in growing {
                    let note = "$(TOTAL) and the like are only set in a case with `pressure`";
                    self.report(path, "the container grows, but the case has no `pressure`", note);
                }
            }
        }
    }

    pub(crate) fn containers_of(&self, pod: &Name) -> Option<BTreeSet<String>> {
        self.pods.iter().find(|one| *pod == *one.name).map(|pod| pod.containers.clone())
    }

    pub(crate) fn report_unknown_pod(&mut self, path: &[PathSegment], pod: &Name) {
        if self.pods.len() < self.case.pods.len() {
            return; // The pod may be one whose missing name is already reported.
        }
        let names: Vec<_> = self.pods.iter().map(|pod| pod.name.as_str()).collect();
        let note = did_you_mean(pod.as_str(), names.iter().copied())
            .unwrap_or_else(|| format!("pods of the case: {}", names.join(", ")));
        self.report(path, format!("the case has no pod `{pod}`"), note);
    }

    pub(crate) fn check_known(
        &mut self,
        kind: &str,
        path: &[PathSegment],
        name: &Name,
        known: &BTreeSet<String>,
        pod: &Name,
    ) {
        if known.contains(name.as_str()) {
            return;
        }
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        let note = did_you_mean(name.as_str(), known.iter().copied())
            .unwrap_or_else(|| format!("{kind}s of the pod: {}", known.join(", ")));
        self.report(path, format!("the pod `{pod}` has no {kind} `{name}`"), note);
    }
}

/// Returns the paths of the manifests that use a growth variable.
fn growing_containers(case: &Case, variable: &Regex) -> Vec<Vec<PathSegment>> {
    let mut growing = vec![];
    for (at, manifest) in case.pods.iter().enumerate() {
        let spec = manifest.get("spec").and_then(Value::as_object);
        for (list, item, container) in spec.into_iter().flat_map(containers_of) {
            if variable.is_match(&container.to_string()) {
                growing.push(yaml_path!["pods", at, "spec", list, item, "name"].to_vec());
            }
        }
    }
    for (at, ephemeral) in case.ephemeral_containers.iter().enumerate() {
        if ephemeral.container.values().any(|value| variable.is_match(&value.to_string())) {
            growing.push(yaml_path!["ephemeral-containers", at, "container", "name"].to_vec());
        }
    }
    let other_manifests = [("objects", &case.objects), ("static-pods", &case.static_pods)];
    for (list, manifests) in other_manifests {
        for (at, manifest) in manifests.iter().enumerate() {
            if variable.is_match(&Value::Object(manifest.clone()).to_string()) {
                growing.push(yaml_path![list, at].to_vec());
            }
        }
    }
    for (at, step) in case.steps.iter().enumerate() {
        if step
            .created_object()
            .is_some_and(|object| variable.is_match(&Value::Object(object.clone()).to_string()))
        {
            growing.push(yaml_path!["do", at, "create"].to_vec());
        }
        if let Some(Action::Exec(exec)) = &step.action
            && exec.command.iter().any(|word| variable.is_match(word))
        {
            growing.push(yaml_path!["do", at, "exec", "command"].to_vec());
        }
    }
    growing
}

/// Returns a path with further segments.
pub(crate) fn join(path: &[PathSegment], more: &[PathSegment]) -> Vec<PathSegment> {
    [path, more].concat()
}

/// Returns the names of the items of a list in a manifest.
pub(crate) fn item_names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(|item| item.get("name")?.as_str())
}

#[cfg(test)]
mod tests {
    use crate::fixtures::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[
            (
                "eviction settings with which no kubelet starts",
                "expect:\n",
                "kubelet-config:\n  evictionHard: {nodefs.available: lots}\ndo:\n  - {configure: {evictionSoftGracePeriod: {nodefs.available: soon}}}\nexpect:\n",
            ),
            ("invalid label", "Feature:Eviction", "Feature/Eviction"),
            ("invalid image name", "image: agnhost:2.52", "image: \"a'; touch b; '\""),
            ("name of another file", "name: good", "name: better"),
            ("a second pod that grows", "ramp: 15s", "pod: {name: hog}"),
            ("pod without name", "metadata: {name: alloc}", "metadata: {}"),
            ("another kind", "- metadata: {name: alloc}", "- kind: Deployment\n    metadata: {name: alloc}"),
            ("container twice", "name: side,", "name: el1,"),
            ("no containers", "      containers:\n", "      contaners:\n"),
            ("nothing grows", "$(TOTAL)", "1Gi"),
            ("two grow", "restartPolicy: Always", "command: [sh, -c, \"echo $TOTAL_BYTES\"]"),
            ("grows without pressure", "pressure: {signal: memory.available, ramp: 15s}\n", ""),
            ("a name and a generated name", "{name: alloc}", "{name: alloc, generateName: alloc-}"),
        ]));
    }
}
