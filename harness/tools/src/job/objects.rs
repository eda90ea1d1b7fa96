//! The objects of a Job.

use evictlab_cluster::{
    CASE_PERMISSIONS, JOB_VARIABLE, JobName, OPTIONAL_PERMISSIONS, Permission, RUN_PERMISSIONS,
};
use evictlab_report::exit_code::{BAD_INPUT, CHANGED, FAILED, INCONCLUSIVE};
use serde_json::{Value, json};

use super::labels::{COMPONENT, MANAGED_BY_LABEL, MANAGER, cluster_name, labels};
use super::options::JobOptions;

/// Directory of the results in a pod.
const WORK_DIR: &str = "/work";
/// User and group of the container, as of the image.
const USER: u32 = 65532;
/// Termination grace period in seconds: an interrupted run deletes its namespaces and prints its
/// results.
pub(super) const GRACE_SECONDS: u32 = 300;
/// Priority of the pods: above that of most others, so that their node evicts others first.
const PRIORITY: u32 = 1_000_000;

/// Returns the objects of a Job, in the order in which they can be created.
pub fn manifest(options: &JobOptions) -> Vec<Value> {
    let JobName { namespace, name } = &options.job;
    let (labels, cluster_name) = (labels(&options.job), cluster_name(&options.job));
    let mut objects = Vec::new();
    if options.with_namespace {
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": namespace,
                "labels": {MANAGED_BY_LABEL: MANAGER, "pod-security.kubernetes.io/enforce": "restricted"},
            },
        }));
    }
    if options.priority_class.is_none() {
        objects.push(json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": cluster_name, "labels": labels},
            "value": PRIORITY,
            "preemptionPolicy": "Never",
            "description": "Pods that run evictlab: evicted late, and without preempting others.",
        }));
    }
    objects.push(json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
    }));
    objects.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": cluster_name, "labels": labels},
        "rules": permissions().map(rule).collect::<Vec<_>>(),
    }));
    objects.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": cluster_name, "labels": labels},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": cluster_name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }));
    objects.push(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": job_spec(options),
    }));
    objects
}

/// Formats objects as a stream of YAML documents.
///
/// # Errors
/// An object cannot be written as YAML.
pub fn to_yaml(objects: &[Value]) -> Result<String, serde_yaml::Error> {
    let documents: Vec<String> = objects.iter().map(serde_yaml::to_string).collect::<Result<_, _>>()?;
    Ok(documents.join("---\n"))
}

/// Permissions of the Job's runs.
fn permissions() -> impl Iterator<Item = &'static Permission> {
    RUN_PERMISSIONS.iter().chain(&OPTIONAL_PERMISSIONS).chain(&CASE_PERMISSIONS)
}

fn rule((resource, verbs): &Permission) -> Value {
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

fn job_spec(options: &JobOptions) -> Value {
    json!({
        "completionMode": "Indexed",
        "completions": options.indexes,
        "parallelism": options.parallelism,
        "backoffLimitPerIndex": options.retries,
        // An index is retried only after the pod of its earlier attempt has ended.
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": [
            // The pod was evicted, preempted or drained.
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            // The pod has results: a case failed or is inconclusive, or a verdict differs from the
            // baseline. Or the arguments are invalid.
            {"action": "FailIndex", "onExitCodes": {
                "containerName": COMPONENT, "operator": "In", "values": [FAILED, BAD_INPUT, INCONCLUSIVE, CHANGED],
            }},
        ]},
        "activeDeadlineSeconds": options.deadline.as_secs(),
        "template": {"metadata": {"labels": labels(&options.job)}, "spec": pod_spec(options)},
    })
}

fn pod_spec(options: &JobOptions) -> Value {
    let mut spec = json!({
        "serviceAccountName": options.job.name,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "enableServiceLinks": false,
        "priorityClassName": options.priority_class.clone().unwrap_or_else(|| cluster_name(&options.job)),
        "affinity": options.node_selector.anti_affinity(),
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(options)],
        "volumes": [{"name": "work", "emptyDir": {"sizeLimit": "1Gi"}}],
    });
    if !options.tolerations.is_empty() {
        spec["tolerations"] = json!(options.tolerations);
    }
    spec
}

fn container(options: &JobOptions) -> Value {
    let indexes = options.indexes.to_string();
    let mut args: Vec<String> = ["job", "worker", "--indexes", &indexes, "--"].map(str::to_owned).into();
    // Kubernetes expands `$(NAME)`, and reads `$$` as `$`.
    args.extend(options.run.iter().map(|word| word.replace('$', "$$")));
    let resources = json!({"cpu": "500m", "memory": "512Mi", "ephemeral-storage": "1Gi"});
    json!({
        "name": COMPONENT,
        "image": options.image,
        "args": args,
        "workingDir": WORK_DIR,
        "env": [
            {"name": JOB_VARIABLE, "value": options.job.to_string()},
            {"name": "HOME", "value": WORK_DIR},
            {"name": "TMPDIR", "value": WORK_DIR},
        ],
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "work", "mountPath": WORK_DIR}],
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::batch::v1::Job;
    use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
    use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
    use k8s_openapi::api::scheduling::v1::PriorityClass;
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;

    fn options() -> JobOptions {
        JobOptions {
            job: "evictlab/nightly".parse().unwrap(),
            with_namespace: true,
            image: "evictlab:test".to_owned(),
            indexes: 12,
            parallelism: 3,
            retries: 2,
            deadline: Duration::from_secs(3600),
            node_selector: "pool=evictions".parse().unwrap(),
            tolerations: vec!["dedicated=ci:NoSchedule".parse().unwrap()],
            priority_class: None,
            run: vec!["message".to_owned(), "--node-selector".to_owned(), "pool=evictions".to_owned()],
        }
    }

    /// Parses an object as its type, and checks that the type has all of its fields.
    fn typed<T: DeserializeOwned + Serialize>(object: &Value) -> T {
        let typed: T = serde_json::from_value(object.clone()).unwrap();
        let sorted = |value: &Value| -> Value { serde_json::from_str(&value.to_string()).unwrap() };
        assert_eq!(sorted(&serde_json::to_value(&typed).unwrap()), sorted(object));
        typed
    }

    #[test]
    fn the_objects_have_only_fields_of_their_types() {
        let objects = manifest(&options());
        let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
        let expected =
            ["Namespace", "PriorityClass", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"];
        assert_eq!(kinds, expected);
        typed::<Namespace>(&objects[0]);
        typed::<PriorityClass>(&objects[1]);
        typed::<ServiceAccount>(&objects[2]);
        typed::<ClusterRole>(&objects[3]);
        typed::<ClusterRoleBinding>(&objects[4]);
        let job: Job = typed(&objects[5]);
        let pod = job.spec.unwrap().template.spec.unwrap();
        let resources = pod.containers[0].resources.clone().unwrap();
        assert_eq!(resources.requests, resources.limits, "the pod is Guaranteed");
        assert_eq!(pod.priority_class_name.as_deref(), Some("evictlab-nightly"));
    }

    #[test]
    fn a_given_namespace_and_priority_class_are_not_created() {
        let options =
            JobOptions { with_namespace: false, priority_class: Some("high".to_owned()), ..options() };
        let objects = manifest(&options);
        assert!(
            objects.iter().all(|object| object["kind"] != "Namespace" && object["kind"] != "PriorityClass")
        );
        let job = objects.last().unwrap();
        assert_eq!(job["spec"]["template"]["spec"]["priorityClassName"], "high");
    }

    #[test]
    fn the_role_has_the_documented_permissions() {
        let page = include_str!("../../../guides/reference/clusters.md");
        let paragraph =
            page.split("*Required RBAC permissions*").nth(1).unwrap().split("\n\n").next().unwrap();
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        for (resource, verbs) in permissions() {
            let verbs: Vec<String> = verbs.iter().map(|verb| format!("`{verb}`")).collect();
            let sentence = format!("{} on {resource}", verbs.join(", "));
            assert!(words.contains(&sentence), "{sentence} is not in {words}");
        }
        let documented = words.matches(" on ").count();
        assert_eq!(documented, permissions().count(), "{words}");
    }
}
