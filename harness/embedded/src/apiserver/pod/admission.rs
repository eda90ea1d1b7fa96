//! Admission of pods: ServiceAccount, Priority, DefaultTolerationSeconds and ResourceQuota, which
//! every cluster enables.

use serde_json::{Value, json};

use crate::apiserver::metadata;
use crate::apiserver::quota;
use crate::apiserver::status::Status;
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt};

/// Mount path of a service account's token.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Applies the admission plugins to a new pod.
///
/// # Errors
/// 403 for an unknown service account or priority class, for a contradicting priority, and for a pod
/// beyond a quota.
pub(super) fn admit(
    ctx: &mut SimContext,
    namespace: &str,
    name: &str,
    pod: &mut Value,
) -> Result<(), Status> {
    set_service_account(ctx, namespace, name, pod)?;
    set_priority(ctx, name, pod)?;
    add_tolerations(pod);
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
    let spec = &mut pod["spec"];
    let account = match spec.text("serviceAccountName") {
        "" => "default".to_owned(),
        account => account.to_owned(),
    };
    spec["serviceAccountName"] = json!(account);
    spec["serviceAccount"] = json!(account);
    let Some(object) = ctx.store.get(Kind::ServiceAccount, namespace, &account) else {
        return Err(Status::forbidden(
            Kind::Pod,
            name,
            &format!(
                "error looking up service account {namespace}/{account}: serviceaccount {account:?} not found"
            ),
        ));
    };
    let automount = [&spec["automountServiceAccountToken"], &object["automountServiceAccountToken"]];
    if automount.iter().find_map(|automount| automount.as_bool()).unwrap_or(true) {
        mount_token(ctx, spec);
    }
    Ok(())
}

fn mount_token(ctx: &mut SimContext, spec: &mut Value) {
    const PREFIX: &str = "kube-api-access-";
    let is_token = |volume: &&Value| volume["name"].as_str().is_some_and(|name| name.starts_with(PREFIX));
    let existing = spec.items("volumes").find(is_token);
    let (name, existing) = match existing.and_then(|volume| volume["name"].as_str()) {
        Some(name) => (name.to_owned(), true),
        None => (ctx.store.generated(PREFIX), false),
    };
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in spec.items_mut(list) {
            if container.items("volumeMounts").any(|mount| mount["mountPath"] == TOKEN_PATH) {
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

fn set_priority(ctx: &SimContext, name: &str, pod: &mut Value) -> Result<(), Status> {
    let forbidden = |reason: String| Err(Status::forbidden(Kind::Pod, name, &reason));
    let spec = &mut pod["spec"];
    let class = match spec.text("priorityClassName") {
        "" => None,
        class => match ctx.store.get(Kind::PriorityClass, "", class) {
            None => return forbidden(format!("no PriorityClass with name {class} was found")),
            some => some,
        },
    };
    let value = class.and_then(|class| class["value"].as_i64()).unwrap_or(0);
    if let Some(stated) = spec["priority"].as_i64().filter(|&stated| stated != value) {
        return forbidden(format!(
            "the integer value of priority ({stated}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        ));
    }
    spec["priority"] = json!(value);
    let policy = class.and_then(|class| class["preemptionPolicy"].as_str()).unwrap_or("PreemptLowerPriority");
    if let Some(stated) = spec["preemptionPolicy"].as_str().filter(|&stated| stated != policy) {
        return forbidden(format!(
            "the string value of PreemptionPolicy ({stated}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    spec["preemptionPolicy"] = json!(policy);
    Ok(())
}

fn add_tolerations(pod: &mut Value) {
    const SECONDS: u64 = 300;
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let is_tolerated = |toleration: &Value| {
            let text = |field: &str| toleration.text(field);
            ["", taint].contains(&text("key")) && ["", "NoExecute"].contains(&text("effect"))
        };
        if !pod["spec"].items("tolerations").any(is_tolerated) {
            let toleration = json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS});
            pod["spec"].push("tolerations", toleration);
        }
    }
}
