//! Checks of pod specs that the API server would reject, wherever the manifests contain them.

use std::collections::BTreeSet;

use evictlab_rules::quantity::Quantity;
use serde_json::{Map, Value};

use super::checker::{Checker, item_names, join};
use crate::manifest_types::{SYSTEM_PRIORITY_CLASSES, containers_of};
use crate::positions::PathSegment;
use crate::problem::did_you_mean;
use crate::yaml_path;

/// Resources of containers without a domain. Others have one, or begin with `hugepages-`.
const CONTAINER_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Values of fields of a pod spec or a container.
const VALUES: [(&str, &[&str]); 3] = [
    ("restartPolicy", &["Always", "OnFailure", "Never"]),
    ("imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
    ("dnsPolicy", &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]),
];

impl Checker<'_> {
    /// Finds the pod specs in a manifest, at any depth, and checks them.
    pub(crate) fn check_pod_specs(&mut self, path: &[PathSegment], manifest: &Value) {
        let claims = manifest.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
        let names =
            claims.into_iter().flatten().filter_map(|claim| claim.pointer("/metadata/name")?.as_str());
        self.check_pod_specs_in(path, manifest, &names.collect());
    }

    /// `claims`: names of the volumes that a StatefulSet adds to its pods.
    fn check_pod_specs_in(&mut self, path: &[PathSegment], value: &Value, claims: &BTreeSet<&str>) {
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.check_pod_specs_in(&join(path, yaml_path![at]), item, claims);
                }
            }
            Value::Object(fields) if fields.get("containers").is_some_and(Value::is_array) => {
                self.check_pod_spec(path, fields, claims);
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.check_pod_specs_in(&join(path, yaml_path![name.as_str()]), value, claims);
                }
            }
            _ => {}
        }
    }

    fn check_pod_spec(&mut self, path: &[PathSegment], spec: &Map<String, Value>, claims: &BTreeSet<&str>) {
        self.check_values(path, spec);
        self.check_priority_class(path, spec);
        self.check_runtime_class(path, spec);
        let volumes: BTreeSet<&str> = item_names(spec.get("volumes")).chain(claims.iter().copied()).collect();
        for (at, volume) in list(spec, "volumes") {
            let medium = volume.get("emptyDir").and_then(|dir| dir.get("medium")).and_then(Value::as_str);
            let is_known = |medium: &str| ["", "Memory"].contains(&medium) || medium.starts_with("HugePages");
            if let Some(medium) = medium.filter(|medium| !is_known(medium)) {
                let path = join(path, yaml_path!["volumes", at, "emptyDir", "medium"]);
                self.report(&path, format!("unknown medium {medium:?}"), "valid: Memory, HugePages");
            }
        }
        for (field, at, container) in containers_of(spec) {
            if let Some(container) = container.as_object() {
                self.check_container(&join(path, yaml_path![field, at]), container, &volumes);
            }
        }
    }

    fn check_container(
        &mut self,
        path: &[PathSegment],
        container: &Map<String, Value>,
        volumes: &BTreeSet<&str>,
    ) {
        match container.get("image") {
            None => self.report(path, "the container has no image", "such as agnhost:2.52"),
            image => self.check_image(path, image),
        }
        self.check_values(path, container);
        if let Some(resources) = container.get("resources").and_then(Value::as_object) {
            self.check_resources(&join(path, yaml_path!["resources"]), resources);
        }
        let mut mount_paths = BTreeSet::new();
        for (at, mount) in list(container, "volumeMounts") {
            let path = join(path, yaml_path!["volumeMounts", at]);
            let text = |field: &str| mount.get(field).and_then(Value::as_str);
            if let Some(name) = text("name").filter(|name| !volumes.contains(name)) {
                let note = did_you_mean(name, volumes.iter().copied()).unwrap_or_default();
                self.report(
                    &join(&path, yaml_path!["name"]),
                    format!("the pod has no volume `{name}`"),
                    note,
                );
            }
            if let Some(mount_path) = text("mountPath").filter(|mount_path| !mount_paths.insert(*mount_path))
            {
                let message = format!("two volumes are mounted at {mount_path}");
                self.report(&join(&path, yaml_path!["mountPath"]), message, "");
            }
        }
    }

    fn check_resources(&mut self, path: &[PathSegment], resources: &Map<String, Value>) {
        for field in ["requests", "limits"] {
            let amounts = resources.get(field).and_then(Value::as_object);
            for name in amounts.into_iter().flat_map(Map::keys) {
                let is_known = CONTAINER_RESOURCES.contains(&name.as_str())
                    || name.contains('/')
                    || name.starts_with("hugepages-");
                if !is_known {
                    let note = did_you_mean(name, CONTAINER_RESOURCES).unwrap_or_default();
                    let path = join(path, yaml_path![field, name.as_str()]);
                    self.report(&path, format!("unknown resource `{name}`"), note);
                }
            }
        }
        let amount = |field: &str, name: &str| -> Option<Quantity> {
            resources.get(field)?.get(name)?.as_str()?.parse().ok()
        };
        let requests = resources.get("requests").and_then(Value::as_object);
        for name in requests.into_iter().flat_map(Map::keys) {
            if let (Some(request), Some(limit)) = (amount("requests", name), amount("limits", name))
                && request > limit
            {
                let message = format!("the request of {name} is larger than its limit, {limit}");
                self.report(&join(path, yaml_path!["requests", name.as_str()]), message, "");
            }
        }
    }

    fn check_values(&mut self, path: &[PathSegment], fields: &Map<String, Value>) {
        for (field, valid) in VALUES {
            let value = fields.get(field).and_then(Value::as_str);
            if let Some(value) = value.filter(|value| !valid.contains(value)) {
                let path = join(path, yaml_path![field]);
                self.report(
                    &path,
                    format!("unknown `{field}` {value:?}"),
                    format!("valid: {}", valid.join(", ")),
                );
            }
        }
    }

    fn check_priority_class(&mut self, path: &[PathSegment], spec: &Map<String, Value>) {
        let own = self.case.priority_classes.keys().map(|name| name.as_str());
        let known: BTreeSet<&str> = own.chain(SYSTEM_PRIORITY_CLASSES).collect();
        let class = spec.get("priorityClassName").and_then(Value::as_str).filter(|class| !class.is_empty());
        if let Some(class) = class.filter(|class| !known.contains(class)) {
            let note = did_you_mean(class, known.iter().copied())
                .unwrap_or_else(|| format!("state it in `priority-classes`: {{{class}: 1000}}"));
            let path = join(path, yaml_path!["priorityClassName"]);
            self.report(&path, format!("the case has no priority class `{class}`"), note);
        }
    }

    fn check_runtime_class(&mut self, path: &[PathSegment], spec: &Map<String, Value>) {
        let known: Vec<&str> = self.case.runtime_classes.keys().map(|name| name.as_str()).collect();
        let class = spec.get("runtimeClassName").and_then(Value::as_str);
        if let Some(class) = class.filter(|class| !known.contains(class)) {
            let note = did_you_mean(class, known.iter().copied())
                .unwrap_or_else(|| format!("state it in `runtime-classes`: {{{class}: {{memory: 64Mi}}}}"));
            let path = join(path, yaml_path!["runtimeClassName"]);
            self.report(&path, format!("the case has no runtime class `{class}`"), note);
        }
    }
}

/// Returns the items of a list that are maps, with their indices.
fn list<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = (usize, &'a Map<String, Value>)> {
    let items = fields.get(name).and_then(Value::as_array).into_iter().flatten().enumerate();
    items.filter_map(|(at, item)| Some((at, item.as_object()?)))
}

#[cfg(test)]
mod tests {
    use crate::fixtures::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[
            (
                "an invalid image of a template",
                "expect:\n",
                "objects:\n  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: a, image: \"a b\"}]}}}}\nexpect:\n",
            ),
            ("no image", "        - name: el1\n          image: agnhost:2.52\n", "        - name: el1\n"),
            ("a restart policy", "      volumes:\n", "      restartPolicy: never\n      volumes:\n"),
            ("a priority class", "      volumes:\n", "      priorityClassName: high\n      volumes:\n"),
            ("a runtime class", "      volumes:\n", "      runtimeClassName: padded\n      volumes:\n"),
            ("a medium", "emptyDir: {}", "emptyDir: {medium: memory}"),
            (
                "a request over its limit",
                "          args: [stress",
                "          resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}\n          args: [stress",
            ),
            (
                "numbers as a request over its limit",
                "          args: [stress",
                "          resources: {requests: {cpu: 2}, limits: {cpu: 1}}\n          args: [stress",
            ),
            (
                "a mount of no volume beside a claim of a StatefulSet",
                "expect:\n",
                "objects:\n  - {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {volumeClaimTemplates: [{metadata: {name: disk}}], template: {spec: {containers: [{name: a, image: a, volumeMounts: [{name: disk, mountPath: /a}, {name: dsk, mountPath: /b}]}]}}}}\nexpect:\n",
            ),
            (
                "an unknown resource",
                "          args: [stress",
                "          resources: {limits: {memroy: 1Gi}}\n          args: [stress",
            ),
            (
                "mounts of no volume and twice at a path",
                "          args: [stress",
                "          volumeMounts: [{name: dat, mountPath: /a}, {name: data, mountPath: /a}]\n          args: [stress",
            ),
        ]));
    }
}
