//! The manifests of an exported case: what a run creates, with the numbers filled in.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::workers::{Cluster, Worker};
use crate::case::{Case, LoadedCase};
use crate::stage::{Placement, Ramp, manifest, object};

/// A variable as Kubernetes expands it in a container's command: `$(STEP)`.
static EXPANDED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\$\(([A-Z_]+)\)").ok());
/// A variable as a shell reads it: `$STEP`, `${STEP}`.
static READ: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\$\{?([A-Z_]+)").ok());

/// The numbers that stand for a case's variables.
pub type Numbers = [(&'static str, String)];

/// The file's text: what is for all workers, then for each worker its pods.
///
/// # Errors
/// The case's own fields are no YAML.
pub fn manifests(
    loaded: &LoadedCase,
    cluster: &Cluster<'_>,
    ramp: Option<&Ramp>,
    image: &dyn Fn(&str) -> String,
) -> Result<String, serde_yaml::Error> {
    let case = &loaded.case;
    let numbers = ramp.map(|ramp| ramp.environment().to_vec()).unwrap_or_default();
    let mut text = format!("# What evictlab's case {} puts on {}.\n", loaded.id(), nodes(cluster));
    if let Some(ramp) = ramp {
        text += &format!("# The pod that grows takes {ramp}.\n");
    }
    let classes = case.priority_classes.iter().map(|(name, value)| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name.as_str()}, "value": value})
    });
    let of_workers = cluster.workers.iter().flat_map(|worker| of_worker(case, worker, &numbers, image));
    let documents: Result<Vec<String>, _> =
        classes.chain(of_workers).map(|document| serde_yaml::to_string(&document)).collect();
    Ok(text + &documents?.join("---\n"))
}

fn nodes(cluster: &Cluster<'_>) -> String {
    let of = |worker: &Worker<'_>| format!("{} ({})", worker.node, worker.kubelet.version);
    cluster.workers.iter().map(of).collect::<Vec<_>>().join(" and ")
}

fn of_worker(
    case: &Case,
    worker: &Worker<'_>,
    numbers: &Numbers,
    image: &dyn Fn(&str) -> String,
) -> Vec<Value> {
    let bound = Placement::bound(&worker.namespace, &worker.node, image);
    let placement = Placement { placed: case.placed, ..bound };
    let objects = case.objects.iter().map(|of| object(of, &placement));
    let pods = case.pods.iter().map(|pod| manifest(pod, &placement));
    objects.chain(pods).map(|mut document| finished(&mut document, numbers)).collect()
}

/// With the numbers, without what is so by itself, and in the order that people write.
fn finished(document: &mut Value, numbers: &Numbers) -> Value {
    each_container(document, &mut |container| {
        read_by_shell(container, numbers);
        if is_pinned(container["image"].as_str().unwrap_or_default()) {
            container.remove("imagePullPolicy");
        }
    });
    fill(document, numbers);
    let mut ordered = Map::new();
    for field in ["apiVersion", "kind"] {
        ordered.insert(field.to_owned(), document[field].take());
    }
    for (field, value) in document.as_object_mut().into_iter().flatten() {
        ordered.entry(field.clone()).or_insert_with(|| value.take());
    }
    Value::Object(ordered)
}

/// Containers wherever they are: in a pod, or in the template of one.
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

/// Gives a container the variables that its shell reads: in a script a number alone would tell nobody what it is.
fn read_by_shell(container: &mut Map<String, Value>, numbers: &Numbers) {
    let texts =
        ["command", "args"].into_iter().filter_map(|field| container.get(field)?.as_array()).flatten();
    let read: BTreeSet<&str> = texts
        .filter_map(Value::as_str)
        .flat_map(|text| READ.iter().flat_map(|read| read.captures_iter(text)))
        .filter_map(|found| Some(found.get(1)?.as_str()))
        .collect();
    let mut all: Vec<Value> = numbers
        .iter()
        .filter(|(name, _)| read.contains(name))
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    if !all.is_empty() {
        all.extend(container.get("env").and_then(Value::as_array).cloned().unwrap_or_default());
        container.insert("env".to_owned(), Value::Array(all));
    }
}

/// Puts the numbers for `$(NAME)`, wherever a text has it.
pub fn fill(value: &mut Value, numbers: &Numbers) {
    match value {
        Value::String(text) => {
            let Some(expanded) = &*EXPANDED else { return };
            *text = expanded
                .replace_all(text, |found: &regex::Captures<'_>| {
                    let number = numbers.iter().find(|(name, _)| *name == &found[1]);
                    number.map_or_else(|| found[0].to_owned(), |(_, number)| number.clone())
                })
                .into_owned();
        }
        Value::Array(list) => list.iter_mut().for_each(|item| fill(item, numbers)),
        Value::Object(map) => map.values_mut().for_each(|inner| fill(inner, numbers)),
        _ => {}
    }
}

/// Whether an image is only pulled where it is missing, without being told so.
fn is_pinned(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    image.contains('@') || name.split_once(':').is_some_and(|(_, tag)| tag != "latest")
}
