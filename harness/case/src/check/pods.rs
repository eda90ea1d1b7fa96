//! Checks of the names of pods and their containers.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::checker::{Checker, PodNames, item_names, join};
use crate::case_name::case_name;
use crate::manifest_types::{CONTAINER_LISTS, containers_of, has_kind};
use crate::positions::PathSegment;
use crate::values::Name;
use crate::yaml_path;

impl Checker<'_> {
    /// Checks the names of the case's pods and containers, and collects them for the other checks.
    pub(crate) fn check_pods(&mut self) {
        let case = self.case;
        let creates_pod = case.created_objects().next().is_some();
        let has_static_pod = case.all_static_pods().next().is_some();
        if case.pods.is_empty() && case.objects.is_empty() && !has_static_pod && !creates_pod {
            self.report(yaml_path!["pods"], "the case has no pod", "");
        }
        for (at, manifest) in case.pods.iter().enumerate() {
            let path = yaml_path!["pods", at];
            self.check_kind_of_pod(path, manifest);
            self.check_pod_name(path, manifest);
            self.check_containers(path, manifest);
            self.pods.extend(pod_names(manifest));
        }
        let created = case.created_objects().filter(|manifest| has_kind(manifest, "Pod"));
        self.pods.extend(created.filter_map(pod_names));
        for (at, manifest) in case.static_pods.iter().enumerate() {
            self.check_static_pod(yaml_path!["static-pods", at], manifest);
        }
        for (at, step) in case.steps.iter().enumerate() {
            if let Some(manifest) = step.created_static_pod() {
                self.check_static_pod(yaml_path!["do", at, "create-static-pod"], manifest);
            }
        }
    }

    /// Checks a static pod, whose manifest the kubelet reads from a file.
    fn check_static_pod(&mut self, path: &[PathSegment], manifest: &Map<String, Value>) {
        self.check_kind_of_pod(path, manifest);
        let name = manifest.get("metadata").and_then(|metadata| metadata.get("name"));
        if name.and_then(Value::as_str).is_some() {
            self.check_pod_name(path, manifest);
        } else {
            let note = "state `name`: the kubelet does not generate one";
            self.report(path, "the static pod has no `metadata.name`", note);
        }
        self.check_containers(path, manifest);
        self.pods.extend(pod_names(manifest));
    }

    fn check_kind_of_pod(&mut self, path: &[PathSegment], manifest: &Map<String, Value>) {
        for (field, valid) in [("apiVersion", "v1"), ("kind", "Pod")] {
            if manifest.get(field).is_some_and(|value| value != valid) {
                let message = format!("`{field}` of a pod must be `{valid}`");
                self.report(&join(path, yaml_path![field]), message, "");
            }
        }
    }

    fn check_pod_name(&mut self, path: &[PathSegment], manifest: &Map<String, Value>) {
        let Some(name) = case_name(manifest) else {
            let note = "state `name`, or `generateName` for a name that the API server completes";
            self.report(&join(path, yaml_path!["metadata"]), "the pod has no `metadata.name`", note);
            return;
        };
        let stated =
            |field: &str| manifest.get("metadata").is_some_and(|metadata| metadata.get(field).is_some());
        let field = if stated("name") { "name" } else { "generateName" };
        let path = &join(path, yaml_path!["metadata", field]);
        if stated("name") && stated("generateName") {
            let note = "the API server ignores `generateName` beside `name`";
            self.report(path, "the pod has both a `name` and a `generateName`", note);
        }
        if let Err(error) = name.parse::<Name>() {
            self.report(path, error.to_string(), "");
        } else if self.pods.iter().any(|pod| pod.name == name) {
            self.report(path, format!("two pods are named `{name}`"), "");
        }
    }

    fn check_containers(&mut self, path: &[PathSegment], manifest: &Map<String, Value>) {
        let mut names = BTreeSet::new();
        let spec = manifest.get("spec");
        let empty = vec![];
        for list in CONTAINER_LISTS {
            let containers = spec.and_then(|spec| spec.get(list));
            if containers.is_some_and(|containers| !containers.is_array()) {
                self.report(&join(path, yaml_path!["spec", list]), format!("`{list}` must be a list"), "");
            }
            let containers = containers.and_then(Value::as_array).unwrap_or(&empty);
            if list == "containers" && containers.is_empty() {
                self.report(&join(path, yaml_path!["spec", list]), "the pod has no containers", "");
            }
            for (item, container) in containers.iter().enumerate() {
                let path = join(path, yaml_path!["spec", list, item]);
                self.add_container(&mut names, &path, container.get("name"));
            }
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

    pub(crate) fn check_ephemeral_containers(&mut self) {
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
}

/// Returns the names of a pod, its containers and its volumes; `None` if the pod has no name.
fn pod_names(manifest: &Map<String, Value>) -> Option<PodNames> {
    let name = case_name(manifest)?.to_owned();
    let spec = manifest.get("spec").and_then(Value::as_object);
    let containers = spec.into_iter().flat_map(containers_of);
    let containers = containers
        .filter_map(|(_, _, container)| Some(container.get("name")?.as_str()?.to_owned()))
        .collect();
    let volumes = item_names(spec.and_then(|spec| spec.get("volumes"))).map(str::to_owned).collect();
    Some(PodNames { name, containers, volumes })
}

#[cfg(test)]
mod tests {
    use crate::fixtures::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[
            ("pod without name", "metadata: {name: alloc}", "metadata: {}"),
            ("another kind", "- metadata: {name: alloc}", "- kind: Deployment\n    metadata: {name: alloc}"),
            ("container twice", "name: side,", "name: el1,"),
            ("no containers", "      containers:\n", "      contaners:\n"),
            (
                "a static pod with a generated name",
                "expect:\n",
                "static-pods:\n  - {metadata: {generateName: web-}, spec: {containers: [{name: a, image: 'a:1'}]}}\nexpect:\n",
            ),
            (
                "a static pod with the name of a pod",
                "expect:\n",
                "do:\n  - create-static-pod: {kind: Pod, metadata: {name: alloc}, spec: {containers: [{name: a, image: 'a:1'}]}}\nexpect:\n",
            ),
            (
                "a static pod without containers, of another kind",
                "expect:\n",
                "do:\n  - create-static-pod: {kind: Job, metadata: {name: Web}, spec: {}}\nexpect:\n",
            ),
            ("a name and a generated name", "{name: alloc}", "{name: alloc, generateName: alloc-}"),
        ]));
    }
}
