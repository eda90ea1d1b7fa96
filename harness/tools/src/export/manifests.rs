//! The manifests of an exported case: the objects of a run, with all numbers filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use evictlab_api_types::ImageReference;
use regex::Regex;
use serde_json::{Map, Value, json};

use super::cluster::{ExportCluster, Worker};
use super::comment::comment;
use evictlab_case::{Case, LoadedCase};
use evictlab_cluster::workload::{Placement, object_manifest, pod_manifest};
use evictlab_runner::pressure::Ramp;

/// A variable in a container's command that Kubernetes expands: `$(STEP)`.
static EXPANSION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$\(([A-Z_]+)\)").expect("the pattern is valid"));
/// A variable that a shell expands: `$STEP`, `${STEP}`.
static SHELL_VARIABLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$\{?([A-Z_]+)").expect("the pattern is valid"));

/// Names and values of the variables of a case.
pub(crate) type RampVariables = [(&'static str, String)];

/// Returns the text of the file: objects for all workers, then the pods of each worker.
///
/// # Errors
///
/// Fields of the case cannot be written as YAML.
pub(crate) fn manifests(
    loaded: &LoadedCase,
    cluster: &ExportCluster<'_>,
    ramp: Option<&Ramp>,
    image: &dyn Fn(&str) -> String,
) -> Result<String, serde_yaml::Error> {
    let case = &loaded.case;
    let variables = ramp.map(|ramp| ramp.environment().to_vec()).unwrap_or_default();
    let mut text =
        comment(&format!("Objects of the evictlab case {} on {}.", loaded.id(), node_names(cluster)));
    if let Some(ramp) = ramp {
        text += &comment(&format!("The pod that grows takes {ramp}."));
    }
    let classes = case.priority_classes.iter().map(|(name, value)| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name.as_str()}, "value": value})
    });
    let runtime_classes = case.runtime_classes.iter().map(|(name, overhead)| {
        let amounts = overhead.iter().map(|(resource, amount)| (resource.as_str(), amount.to_string()));
        let overhead: BTreeMap<_, _> = amounts.collect();
        json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name.as_str()},
            "handler": "runc", "overhead": {"podFixed": overhead}})
    });
    let of_workers =
        cluster.workers.iter().flat_map(|worker| worker_objects(case, worker, &variables, image));
    let documents: Result<Vec<String>, _> = classes
        .chain(runtime_classes)
        .chain(of_workers)
        .map(|document| serde_yaml::to_string(&document))
        .collect();
    Ok(text + &documents?.join("---\n"))
}

fn node_names(cluster: &ExportCluster<'_>) -> String {
    let name = |worker: &Worker<'_>| format!("{} ({})", worker.node, worker.kubelet.version);
    cluster.workers.iter().map(name).collect::<Vec<_>>().join(" and ")
}

fn worker_objects(
    case: &Case,
    worker: &Worker<'_>,
    variables: &RampVariables,
    image: &dyn Fn(&str) -> String,
) -> Vec<Value> {
    let bound = Placement::bound(&worker.namespace, &worker.node, image);
    let placement = Placement { placed: case.placed, ..bound };
    let objects = case.objects.iter().map(|object| object_manifest(object, &placement));
    let pods = case.pods.iter().map(|pod| pod_manifest(pod, &placement));
    objects.chain(pods).map(|mut document| finalize(&mut document, variables)).collect()
}

/// Expands variables, removes defaults, and orders the fields as usual in manifests.
fn finalize(document: &mut Value, variables: &RampVariables) -> Value {
    each_container(document, &mut |container| {
        add_shell_variables(container, variables);
        remove_default_pull_policy(container);
    });
    expand_variables(document, variables);
    let mut ordered = Map::new();
    for field in ["apiVersion", "kind"] {
        ordered.insert(field.to_owned(), document[field].take());
    }
    for (field, value) in document.as_object_mut().into_iter().flatten() {
        ordered.entry(field.clone()).or_insert_with(|| value.take());
    }
    Value::Object(ordered)
}

/// Removes the pull policy of a container if it is the default of the image.
fn remove_default_pull_policy(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let default = ImageReference::parse(image).default_pull_policy();
    if container.get("imagePullPolicy").and_then(Value::as_str) == Some(default) {
        container.remove("imagePullPolicy");
    }
}

/// Visits all containers of a pod or pod template.
fn each_container(value: &mut Value, with: &mut impl FnMut(&mut Map<String, Value>)) {
    for (field, inner) in value.as_object_mut().into_iter().flatten() {
        match (field.as_str(), inner) {
            ("initContainers" | "containers", Value::Array(list)) => {
                list.iter_mut().filter_map(Value::as_object_mut).for_each(&mut *with);
            }
            (_, inner) => each_container(inner, with),
        }
    }
}

/// Adds the variables that the shell of a container reads as environment variables, which keep
/// their names in the script.
fn add_shell_variables(container: &mut Map<String, Value>, variables: &RampVariables) {
    let texts =
        ["command", "args"].into_iter().filter_map(|field| container.get(field)?.as_array()).flatten();
    let read: BTreeSet<&str> = texts
        .filter_map(Value::as_str)
        .flat_map(|text| SHELL_VARIABLE.captures_iter(text))
        .filter_map(|found| Some(found.get(1)?.as_str()))
        .collect();
    let mut all: Vec<Value> = variables
        .iter()
        .filter(|(name, _)| read.contains(name))
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    if !all.is_empty() {
        all.extend(container.get("env").and_then(Value::as_array).cloned().unwrap_or_default());
        container.insert("env".to_owned(), Value::Array(all));
    }
}

/// Replaces `$(NAME)` in all strings.
pub(crate) fn expand_variables(value: &mut Value, variables: &RampVariables) {
    match value {
        Value::String(text) => {
            *text = EXPANSION
                .replace_all(text, |found: &regex::Captures<'_>| {
                    let number = variables.iter().find(|(name, _)| *name == &found[1]);
                    number.map_or_else(|| found[0].to_owned(), |(_, number)| number.clone())
                })
                .into_owned();
        }
        Value::Array(list) => list.iter_mut().for_each(|item| expand_variables(item, variables)),
        Value::Object(map) => map.values_mut().for_each(|inner| expand_variables(inner, variables)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_default_pull_policies_are_removed() {
        for (image, policy, is_removed) in [
            ("busybox:1.36", "IfNotPresent", true),
            ("busybox", "IfNotPresent", false),
            ("localhost:5000/thing", "IfNotPresent", false),
            ("busybox:latest@sha256:00", "IfNotPresent", false),
            ("busybox:1.36", "Never", false),
        ] {
            let mut container = json!({"image": image, "imagePullPolicy": policy});
            remove_default_pull_policy(container.as_object_mut().unwrap());
            assert_eq!(container.get("imagePullPolicy").is_none(), is_removed, "{image} {policy}");
        }
    }
}
