//! Checks of the names of pods and their containers.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::checker::{Checker, Pod, item_names, join};
use crate::located_pod_specs::case_name;
use crate::manifest_types::{CONTAINER_LISTS, containers_of};
use crate::positions::PathSegment;
use crate::values::Name;
use crate::yaml_path;

impl Checker<'_> {
    pub(crate) fn check_pods(&mut self) {
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
            ("a name and a generated name", "{name: alloc}", "{name: alloc, generateName: alloc-}"),
        ]));
    }
}
