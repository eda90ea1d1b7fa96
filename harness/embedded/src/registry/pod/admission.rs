//! The admission plugins that every cluster runs for pods: ServiceAccount, Priority, DefaultTolerationSeconds.

use serde_json::{Value, json};

use super::super::Status;
use crate::store::Kind;
use crate::world::Ctx;

/// Where a service account's token is mounted.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Makes a new pod fit for the cluster, or refuses it.
pub(in super::super) fn admit(
    ctx: &mut Ctx,
    namespace: &str,
    name: &str,
    pod: &mut Value,
) -> Result<(), Status> {
    service_account(ctx, namespace, name, pod)?;
    priority(ctx, name, pod)?;
    tolerations(pod);
    Ok(())
}

fn service_account(ctx: &mut Ctx, namespace: &str, name: &str, pod: &mut Value) -> Result<(), Status> {
    if pod["metadata"]["annotations"].get("kubernetes.io/config.mirror").is_some() {
        return Ok(());
    }
    let spec = &mut pod["spec"];
    let account = match spec["serviceAccountName"].as_str().unwrap_or_default() {
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
    let wanted = [&spec["automountServiceAccountToken"], &object["automountServiceAccountToken"]];
    if wanted.iter().find_map(|wanted| wanted.as_bool()).unwrap_or(true) {
        mount_token(ctx, spec);
    }
    Ok(())
}

fn mount_token(ctx: &mut Ctx, spec: &mut Value) {
    const PREFIX: &str = "kube-api-access-";
    let is_token = |volume: &&Value| volume["name"].as_str().is_some_and(|name| name.starts_with(PREFIX));
    let existing = spec["volumes"].as_array().into_iter().flatten().find(is_token);
    let (name, existing) = match existing.and_then(|volume| volume["name"].as_str()) {
        Some(name) => (name.to_owned(), true),
        None => (ctx.store.generated(PREFIX), false),
    };
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let mut mounts = container["volumeMounts"].as_array().into_iter().flatten();
            if mounts.any(|mount| mount["mountPath"] == TOKEN) {
                continue;
            }
            push(container, "volumeMounts", json!({"name": name, "readOnly": true, "mountPath": TOKEN}));
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
        push(spec, "volumes", volume);
    }
}

fn priority(ctx: &Ctx, name: &str, pod: &mut Value) -> Result<(), Status> {
    let forbidden = |why: String| Err(Status::forbidden(Kind::Pod, name, &why));
    let spec = &mut pod["spec"];
    let class = match spec["priorityClassName"].as_str().unwrap_or_default() {
        "" => {
            let all = ctx.store.list(Kind::PriorityClass, None);
            let class = all
                .filter(|class| class["globalDefault"] == true)
                .min_by_key(|class| class["value"].as_i64());
            if let Some(class) = class {
                spec["priorityClassName"] = class["metadata"]["name"].clone();
            }
            class
        }
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

fn tolerations(pod: &mut Value) {
    const SECONDS: u64 = 300;
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = |toleration: &Value| {
            let text = |field: &str| toleration[field].as_str().unwrap_or_default();
            ["", taint].contains(&text("key")) && ["", "NoExecute"].contains(&text("effect"))
        };
        if !pod["spec"]["tolerations"].as_array().is_some_and(|all| all.iter().any(tolerated)) {
            let toleration = json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS});
            push(&mut pod["spec"], "tolerations", toleration);
        }
    }
}

fn push(value: &mut Value, list: &str, item: Value) {
    match &mut value[list] {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}
