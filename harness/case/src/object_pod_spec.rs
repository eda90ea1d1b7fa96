//! Pod specs in the manifests of a case.

use serde_json::{Map, Value};

use crate::action::{Action, ApiRequest, ObjectPatch};
use crate::case_name::case_name;
use crate::existing_namespace::MAX_CREATED_PODS;
use crate::manifest_types::{PodSpecManifest, has_kind};
use crate::object_name::ObjectKind;
use crate::schema::Case;
use crate::step::Step;

/// A pod spec in a manifest of a case, with its object.
#[derive(Clone, Debug)]
pub struct ObjectPodSpec<'a> {
    /// Kind and name of the object, such as `Deployment web`.
    pub object: String,
    /// Number of pods: the replicas or the parallelism of the object, 1 by default; at least those
    /// of any patch of the object.
    pub replicas: u64,
    /// Number of pods that the object creates at most, also one after the other, without those that
    /// replace deleted ones: a Job keeps completed and failed pods.
    pub max_created: u64,
    /// The spec as the manifest states it.
    pub spec: &'a Map<String, Value>,
    /// True if evictlab completes the spec before it creates the object: that of a pod, or
    /// `spec.template.spec`. False for a patch, and for a template that is nested elsewhere.
    pub is_completed: bool,
}

impl ObjectPodSpec<'_> {
    /// Parses the spec.
    ///
    /// # Errors
    /// A field has a value of a wrong type, which only a patch or an object of an unknown kind can
    /// have.
    pub fn parse(&self) -> Result<PodSpecManifest, serde_json::Error> {
        PodSpecManifest::parse(self.spec)
    }
}

impl Case {
    /// Returns the specs of all pods that the case can create, including those of static pods, of
    /// pod templates and of patches.
    pub fn pod_specs(&self) -> Vec<ObjectPodSpec<'_>> {
        let mut specs = self.initial_pod_specs();
        for pod in self.steps.iter().filter_map(Step::created_static_pod) {
            add_pod(pod, &mut specs);
        }
        for object in self.created_objects() {
            add_object(object, &mut specs);
        }
        for patch in self.patches() {
            let object = format!("{} {}", patch.kind, patch.name);
            // A patch of the template does not repeat the replicas.
            let of_object = specs.iter().filter(|spec| spec.object == object).map(|spec| spec.replicas).max();
            let replicas = replicas(&patch.patch).max(of_object.unwrap_or(1));
            let counts = PodCounts {
                replicas,
                max_created: max_created(&patch.patch, patch.kind == ObjectKind::Job, replicas),
            };
            for spec in specs.iter_mut().filter(|spec| spec.object == object) {
                (spec.replicas, spec.max_created) = (replicas, spec.max_created.max(counts.max_created));
            }
            let first = specs.len();
            add_pod_specs(&object, counts, &patch.patch, &mut specs);
            specs[first..].iter_mut().for_each(|found| found.is_completed = false);
        }
        specs
    }

    /// Returns the specs of the pods that exist before the steps: those of pods, static pods and
    /// objects.
    pub(crate) fn initial_pod_specs(&self) -> Vec<ObjectPodSpec<'_>> {
        let mut specs = Vec::new();
        for pod in self.pods.iter().chain(&self.static_pods) {
            add_pod(pod, &mut specs);
        }
        for object in &self.objects {
            add_object(object, &mut specs);
        }
        specs
    }

    /// Returns the patches of objects.
    pub fn patches(&self) -> impl Iterator<Item = &ObjectPatch> {
        self.steps.iter().filter_map(|step| match step.action.as_ref()? {
            Action::Api(ApiRequest::Patch(patch)) => Some(patch),
            Action::Api(
                ApiRequest::Create(_) | ApiRequest::Resize(_) | ApiRequest::Delete(_) | ApiRequest::Evict(_),
            )
            | Action::Node(_)
            | Action::ReadLogs(_)
            | Action::Exec(_) => None,
        })
    }
}

fn describe(manifest: &Map<String, Value>, default_kind: &str) -> String {
    let kind = manifest.get("kind").and_then(Value::as_str).unwrap_or(default_kind);
    let name = case_name(manifest).unwrap_or("(no name)");
    format!("{kind} {name}")
}

/// Returns the number of pods that an object states, 1 by default.
fn replicas(manifest: &Map<String, Value>) -> u64 {
    let field = |name: &str| manifest.get("spec")?.get(name)?.as_u64();
    field("replicas").or_else(|| field("parallelism")).unwrap_or(1)
}

/// Numbers of pods of an object: at the same time, and in total.
#[derive(Clone, Copy)]
struct PodCounts {
    replicas: u64,
    max_created: u64,
}

/// Returns the number of pods that an object creates at most: a Job, its completions and as many
/// failed pods as its `backoffLimit`, or an unknown number with a `podFailurePolicy` or a limit per
/// index.
fn max_created(manifest: &Map<String, Value>, is_job: bool, replicas: u64) -> u64 {
    /// Default of `backoffLimit`.
    const BACKOFF_LIMIT: u64 = 6;
    let field = |name: &str| manifest.get("spec")?.get(name).filter(|value| !value.is_null());
    let most = u64::from(MAX_CREATED_PODS).max(replicas);
    if !is_job {
        return replicas;
    }
    if field("podFailurePolicy").or_else(|| field("backoffLimitPerIndex")).is_some() {
        return most;
    }
    let number = |name: &str| field(name)?.as_u64();
    let failures = number("backoffLimit").unwrap_or(BACKOFF_LIMIT);
    replicas.max(number("completions").unwrap_or(1)).saturating_add(failures).min(most)
}

/// Returns the pod spec of an object of a known shape.
fn completed_spec(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let spec = object.get("spec")?;
    if has_kind(object, "Pod") { spec.as_object() } else { spec.get("template")?.get("spec")?.as_object() }
}

/// Adds the spec of a pod, or of a static pod.
fn add_pod<'a>(pod: &'a Map<String, Value>, specs: &mut Vec<ObjectPodSpec<'a>>) {
    add_pod_specs(&describe(pod, "Pod"), PodCounts { replicas: 1, max_created: 1 }, pod, specs);
}

/// Adds the pod specs of an object.
fn add_object<'a>(object: &'a Map<String, Value>, specs: &mut Vec<ObjectPodSpec<'a>>) {
    let first = specs.len();
    let replicas = replicas(object);
    let counts = PodCounts { replicas, max_created: max_created(object, has_kind(object, "Job"), replicas) };
    add_pod_specs(&describe(object, "object"), counts, object, specs);
    let completed = completed_spec(object);
    for found in &mut specs[first..] {
        found.is_completed = completed.is_some_and(|spec| std::ptr::eq(spec, found.spec));
    }
}

/// Adds the nested objects that have containers.
fn add_pod_specs<'a>(
    object: &str,
    counts: PodCounts,
    map: &'a Map<String, Value>,
    specs: &mut Vec<ObjectPodSpec<'a>>,
) {
    if map.get("containers").is_some_and(Value::is_array) {
        let (object, PodCounts { replicas, max_created }) = (object.to_owned(), counts);
        specs.push(ObjectPodSpec { object, replicas, max_created, spec: map, is_completed: true });
        return;
    }
    for value in map.values() {
        add_nested(object, counts, value, specs);
    }
}

fn add_nested<'a>(object: &str, counts: PodCounts, value: &'a Value, specs: &mut Vec<ObjectPodSpec<'a>>) {
    match value {
        Value::Object(map) => add_pod_specs(object, counts, map, specs),
        Value::Array(items) => items.iter().for_each(|item| add_nested(object, counts, item, specs)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_specs_of_all_manifests() {
        let case: Case = serde_saphyr::from_str(
            "{name: a, about: b, expect: {evicted: []},
            pods: [{metadata: {name: p}, spec: {containers: [{name: one}]}}],
            static-pods: [{metadata: {name: s}, spec: {containers: [{name: two}]}}],
            objects: [
                {kind: CronJob, metadata: {name: c}, spec: {jobTemplate: {spec: {template: {spec: {containers: []}}}}}},
                {kind: List, metadata: {name: l}, items: [{spec: {containers: []}}]},
                {kind: ConfigMap, metadata: {name: m}, data: {containers: none}}],
            do: [
                {create: {kind: Job, metadata: {name: j}, spec: {template: {spec: {containers: []}}}}},
                {create-static-pod: {metadata: {name: late}, spec: {containers: []}}},
                {patch: {kind: Deployment, name: d, patch: {spec: {template: {spec: {containers: []}}}}}}]}",
        )
        .unwrap();
        let found: Vec<String> = case.pod_specs().into_iter().map(|found| found.object).collect();
        assert_eq!(found, ["Pod p", "Pod s", "CronJob c", "List l", "Pod late", "Job j", "Deployment d"]);
    }

    #[test]
    fn a_patch_that_scales_an_object_counts_for_all_its_pods() {
        let case: Case = serde_saphyr::from_str(
            "{name: a, about: b, expect: {evicted: []}, pods: [],
            objects: [{kind: Deployment, metadata: {name: d}, spec: {replicas: 2, template: {spec: {containers: []}}}}],
            do: [
                {patch: {kind: Deployment, name: d, patch: {spec: {template: {spec: {containers: []}}}}}},
                {patch: {kind: Deployment, name: d, patch: {spec: {replicas: 5}}}},
                {patch: {kind: Deployment, name: other, patch: {spec: {replicas: 9}}}}]}",
        )
        .unwrap();
        let counts: Vec<u64> = case.pod_specs().into_iter().map(|found| found.replicas).collect();
        assert_eq!(counts, [5, 5]);
    }

    #[test]
    fn a_job_creates_pods_one_after_the_other() {
        let rows = [
            ("completions: 30, backoffLimit: 2", 32),
            ("parallelism: 40", 46),
            ("completions: 4000", 300),
            ("backoffLimit: 0", 1),
            ("podFailurePolicy: {rules: []}", 300),
        ];
        for (spec, max_created) in rows {
            let case: Case = serde_saphyr::from_str(&format!(
                "{{name: a, about: b, expect: {{evicted: []}}, pods: [],
                objects: [{{kind: Job, metadata: {{name: j}}, spec: {{{spec}, template: {{spec: {{containers: []}}}}}}}}]}}"
            ))
            .unwrap();
            assert_eq!(case.pod_specs()[0].max_created, max_created, "{spec}");
        }
    }
}
