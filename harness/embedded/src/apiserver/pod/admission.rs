//! Creation of pods: defaults, and admission by ServiceAccount, Priority, DefaultTolerationSeconds,
//! RuntimeClass (without `scheduling`) and ResourceQuota, which every cluster enables.

use std::collections::BTreeMap;

use evictlab_api_types::read;
use evictlab_rules::pod::{Pod, QosClass};
use evictlab_rules::quantity::Quantity;
use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde_json::{Value, json};

use super::defaults;
use crate::apiserver::objects::control_plane_version;
use crate::apiserver::status::Status;
use crate::apiserver::{metadata, quota};
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt, Phase, PodStatus, RESOURCE_CONTAINER_LISTS};

/// Mount path of a service account's token.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Applies defaults and admission to a new pod and sets its initial status.
pub(in crate::apiserver) fn prepare(
    ctx: &mut SimContext,
    namespace: &str,
    name: &str,
    pod: &mut Value,
) -> Result<(), Status> {
    let version = control_plane_version(ctx);
    defaults::set_defaults(pod, &version);
    admit(ctx, namespace, name, pod)?;
    // A pod that cannot be read is rejected by the validation.
    let qos = read::<Pod>(pod).map_or(QosClass::BestEffort, |pod| pod.qos_class());
    let phase = Some(Phase::Pending);
    pod.write("status", PodStatus { phase, qos_class: Some(qos), ..PodStatus::default() });
    // Pods have generations since 1.33 (KEP-5067).
    if version.at_least(33) {
        pod.metadata_mut().write("generation", 1);
    } else {
        pod.metadata_mut().remove("generation");
    }
    Ok(())
}

/// Applies the admission plugins to a new pod.
///
/// # Errors
/// 403 for an unknown service account, priority class or runtime class, for a contradicting
/// priority or overhead, and for a pod beyond a quota.
fn admit(ctx: &mut SimContext, namespace: &str, name: &str, pod: &mut Value) -> Result<(), Status> {
    set_service_account(ctx, namespace, name, pod)?;
    set_priority(ctx, name, pod)?;
    add_tolerations(pod);
    set_overhead(ctx, name, pod)?;
    quota::admit_pod(ctx, namespace, name)
}

fn set_service_account(
    ctx: &mut SimContext,
    namespace: &str,
    name: &str,
    pod: &mut Value,
) -> Result<(), Status> {
    if metadata::is_mirror_pod(pod) {
        return Ok(());
    }
    let spec = pod.spec_mut();
    let account = spec.text_or("serviceAccountName", "default").to_owned();
    spec.write("serviceAccountName", &account);
    spec.write("serviceAccount", &account);
    let Some(object) = ctx.store.get(Kind::ServiceAccount, namespace, &account) else {
        return Err(Status::forbidden(
            Kind::Pod,
            name,
            &format!(
                "error looking up service account {namespace}/{account}: serviceaccount {account:?} not found"
            ),
        ));
    };
    let automounts = |object: &Value| object.read::<Option<bool>>("automountServiceAccountToken");
    if automounts(spec).or_else(|| automounts(object)).unwrap_or(true) {
        mount_token(ctx, spec);
    }
    Ok(())
}

fn mount_token(ctx: &mut SimContext, spec: &mut Value) {
    const PREFIX: &str = "kube-api-access-";
    let mut names = spec.items("volumes").map(|volume| volume.text("name"));
    let (name, existing) = match names.find(|name| name.starts_with(PREFIX)) {
        Some(name) => (name.to_owned(), true),
        None => (ctx.store.generated(PREFIX), false),
    };
    let mut mounted = false;
    for list in RESOURCE_CONTAINER_LISTS {
        for container in spec.items_mut(list) {
            if container.items("volumeMounts").any(|mount| mount.text("mountPath") == TOKEN_PATH) {
                continue;
            }
            container.push("volumeMounts", json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH}));
            mounted = true;
        }
    }
    if mounted && !existing {
        let volume = json!({
            "name": name,
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]}},
                ],
                "defaultMode": 0o644,
            },
        });
        spec.push("volumes", volume);
    }
}

/// Sets the priority of a pod by its class (the admission plugin `Priority`).
fn set_priority(ctx: &SimContext, name: &str, pod: &mut Value) -> Result<(), Status> {
    let forbidden = |reason: String| Err(Status::forbidden(Kind::Pod, name, &reason));
    let spec = pod.spec_mut();
    if spec.text("priorityClassName").is_empty()
        && let Some(default) = default_class(ctx)
    {
        spec.write("priorityClassName", default);
    }
    let class = match spec.text("priorityClassName") {
        "" => PriorityClass::default(),
        class => match ctx.store.get(Kind::PriorityClass, "", class) {
            None => return forbidden(format!("no PriorityClass with name {class} was found")),
            Some(class) => read(class).unwrap_or_default(),
        },
    };
    let value = class.value;
    if let Some(stated) = spec.read::<Option<i32>>("priority").filter(|&stated| stated != value) {
        return forbidden(format!(
            "the integer value of priority ({stated}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        ));
    }
    spec.write("priority", value);
    let policy = class.preemption_policy.as_deref().unwrap_or("PreemptLowerPriority");
    let stated = spec.text_or("preemptionPolicy", policy);
    if stated != policy {
        return forbidden(format!(
            "the string value of PreemptionPolicy ({stated}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    spec.write("preemptionPolicy", policy);
    Ok(())
}

/// Returns the class with `globalDefault`; of several, the one with the smallest value.
fn default_class(ctx: &SimContext) -> Option<String> {
    let classes = ctx.store.list(Kind::PriorityClass, None);
    let defaults = classes.filter(|class| class["globalDefault"] == true);
    defaults.min_by_key(|class| class.integer("value")).map(|class| class.name().to_owned())
}

/// Sets the overhead of a pod by its runtime class (the admission plugin `RuntimeClass`).
fn set_overhead(ctx: &SimContext, name: &str, pod: &mut Value) -> Result<(), Status> {
    let forbidden =
        |reason: &str| Err(Status::forbidden(Kind::Pod, name, &format!("pod rejected: {reason}")));
    let spec = pod.spec_mut();
    let defined = match spec.text("runtimeClassName") {
        "" => None,
        class => match ctx.store.get(Kind::RuntimeClass, "", class) {
            None => return forbidden(&format!("RuntimeClass {class:?} not found")),
            Some(class) => class.get("overhead").map(|overhead| overhead["podFixed"].clone()),
        },
    };
    let amounts = |overhead: &Value| -> BTreeMap<String, Quantity> { read(overhead).unwrap_or_default() };
    let stated = spec.get("overhead").map(amounts).filter(|stated| !stated.is_empty());
    match (defined, stated) {
        (Some(defined), Some(stated)) if stated != amounts(&defined) => {
            forbidden("Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        }
        (Some(defined), _) => {
            spec.set_or_remove("overhead", Some(&defined).filter(|defined| !defined.is_null()));
            Ok(())
        }
        (None, Some(_)) => forbidden("Pod Overhead set without corresponding RuntimeClass defined Overhead"),
        (None, None) => Ok(()),
    }
}

fn add_tolerations(pod: &mut Value) {
    const SECONDS: i64 = 300;
    const EFFECT: &str = "NoExecute";
    pod.spec_mut().change("tolerations", |tolerations: &mut Vec<Toleration>| {
        for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            let covers = |stated: &Option<String>, value: &str| {
                ["", value].contains(&stated.as_deref().unwrap_or_default())
            };
            if !tolerations.iter().any(|one| covers(&one.key, taint) && covers(&one.effect, EFFECT)) {
                tolerations.push(Toleration {
                    key: Some(taint.to_owned()),
                    operator: Some("Exists".to_owned()),
                    effect: Some(EFFECT.to_owned()),
                    toleration_seconds: Some(SECONDS),
                    value: None,
                });
            }
        }
    });
}
