//! Privileges of a case on a cluster that evictlab does not manage: what its pods, objects and
//! patches can do beyond its namespace. An allow-list, because clusters have objects and volumes of
//! any kind.

use evictlab_case::{ContainerManifest, ObjectKind, ObjectPatch, PodSpecManifest, VolumeManifest, case_name};
use evictlab_cluster::workload::GracePeriod;
use serde_json::{Map, Value};

/// Objects that act only on their namespace and create pods only from a template that evictlab
/// completes.
const OBJECTS: [(&str, &str); 13] = [
    ("v1", "ConfigMap"),
    ("v1", "LimitRange"),
    ("v1", "Pod"),
    ("v1", "ResourceQuota"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("policy/v1", "PodDisruptionBudget"),
];
/// Types of Secrets that Kubernetes only stores. It may give others a token of the API,
/// or accept them as one.
const SECRET_TYPES: [&str; 7] = [
    "",
    "Opaque",
    "kubernetes.io/basic-auth",
    "kubernetes.io/dockercfg",
    "kubernetes.io/dockerconfigjson",
    "kubernetes.io/ssh-auth",
    "kubernetes.io/tls",
];
/// Sources of volumes on the pod's own disk or memory.
const VOLUMES: [&str; 5] = ["configMap", "downwardAPI", "emptyDir", "projected", "secret"];
/// Sources of projected volumes that give a pod no credentials of its own.
const PROJECTED_SOURCES: [&str; 4] = ["clusterTrustBundle", "configMap", "downwardAPI", "secret"];
/// Prefix of the annotations of pods that state the AppArmor profile of a container, which
/// kubelets read beside the field `appArmorProfile`.
const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
/// Maximum termination grace period of a pod: a pod may run for so long after its deadline.
pub(crate) const MAX_GRACE_PERIOD: GracePeriod = GracePeriod::from_secs(120);
/// Capabilities that the Pod Security Standard `baseline` allows.
const BASELINE_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Sysctls that the Pod Security Standard `baseline` allows.
const BASELINE_SYSCTLS: [&str; 10] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies",
];
/// SELinux types that the Pod Security Standard `baseline` allows.
const BASELINE_SELINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// Returns the first privilege of an object, such as `RoleBinding admin may affect more than its
/// namespace`. The privileges of its pods are not included.
pub(super) fn object_privilege(object: &Map<String, Value>) -> Option<String> {
    let text = |field: &str| object.get(field).and_then(Value::as_str);
    let kind = text("kind").unwrap_or_default();
    let name = case_name(object).unwrap_or_default();
    let spec = object.get("spec");
    if claims_storage(kind, spec) {
        return Some(format!("{kind} {name} claims storage of the cluster"));
    }
    let is_known = |(version, known): &(&str, &str)| {
        // evictlab completes the version of a pod.
        *known == kind
            && (text("apiVersion") == Some(*version) || kind == "Pod" && text("apiVersion").is_none())
    };
    if !OBJECTS.iter().any(is_known) {
        return Some(format!("{kind} {name} may affect more than its namespace"));
    }
    if kind == "Secret"
        && let Some(field) = token_field(object)
    {
        return Some(format!("Secret {name} has {field}, which may give it a token of the API"));
    }
    let traffic = spec.filter(|_| kind == "Service").and_then(outside_traffic);
    traffic.map(|field| format!("Service {name} has {field}, which affects more than its namespace"))
}

/// Returns the field by which a Secret may get a token of the API: its type, or an annotation that
/// names a service account.
fn token_field(secret: &Map<String, Value>) -> Option<String> {
    let kind = secret.get("type").and_then(Value::as_str).unwrap_or_default();
    if !SECRET_TYPES.contains(&kind) {
        return Some(format!("type {kind}"));
    }
    let annotations = secret.get("metadata")?.get("annotations")?.as_object()?;
    let name = annotations.keys().find(|name| name.starts_with("kubernetes.io/service-account."))?;
    Some(format!("annotation {name}"))
}

/// Returns whether an object claims storage of the cluster: it outlives the node, costs what the
/// provisioner costs, and may be kept when the claim is deleted.
fn claims_storage(kind: &str, spec: Option<&Value>) -> bool {
    let templates = spec.and_then(|spec| spec["volumeClaimTemplates"].as_array());
    ["PersistentVolume", "PersistentVolumeClaim", "VolumeSnapshot"].contains(&kind)
        || templates.is_some_and(|templates| !templates.is_empty())
}

/// Returns the field by which a Service receives traffic from outside of the cluster, or for an
/// address that is not its own.
fn outside_traffic(spec: &Value) -> Option<String> {
    let kind = spec.get("type").and_then(Value::as_str).filter(|kind| *kind != "ClusterIP");
    let has_addresses = spec.get("externalIPs").is_some_and(|addresses| !addresses.is_null());
    kind.map(|kind| format!("type {kind}")).or_else(|| has_addresses.then(|| "externalIPs".to_owned()))
}

/// Returns the first field of a patch by which an object or its pods leave the bounds that evictlab
/// knows.
pub(super) fn patch_privilege(patch: &ObjectPatch) -> Option<String> {
    let spec = patch.patch.get("spec");
    // A rollout runs new pods beside the old ones.
    let of_template = || spec?.get("template").map(|_| "spec.template");
    let field =
        patch.patch.iter().find_map(|(name, value)| unbounded_field(name, value)).or_else(of_template);
    let field = field.map(str::to_owned);
    let field = field.or_else(|| match patch.kind {
        ObjectKind::Secret => token_field(&patch.patch),
        ObjectKind::Service => spec.and_then(outside_traffic),
        _ => None,
    });
    field.map(|field| format!("a patch of {} {} sets {field}", patch.kind, patch.name))
}

/// Returns a field of a patch, at any depth, by which pods leave the nodes of the run, preempt
/// other pods, claim storage of the cluster, or outlive the run.
fn unbounded_field(name: &str, value: &Value) -> Option<&'static str> {
    const FIELDS: [&str; 8] = [
        "nodeName",
        "nodeSelector",
        "affinity",
        "priorityClassName",
        "schedulerName",
        "ephemeral",
        "volumeClaimTemplates",
        "ownerReferences",
    ];
    let own = FIELDS.into_iter().find(|field| *field == name);
    own.or_else(|| match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| unbounded_field(name, value)),
        Value::Array(items) => items.iter().find_map(|item| unbounded_field("", item)),
        _ => None,
    })
}

/// Returns the first privilege of a pod beyond the Pod Security Standard `baseline`, storage of
/// others, or access to the API. The API server enforces the standard, unless the user is exempt;
/// this is also for a reason that names the field.
pub(super) fn pod_privilege(spec: &PodSpecManifest) -> Option<String> {
    let shared = [("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc)];
    if let Some((field, _)) = shared.into_iter().find(|(_, is_shared)| *is_shared == Some(true)) {
        return Some(field.to_owned());
    }
    if let Some(volume) = spec.volumes.iter().flatten().find_map(volume_privilege) {
        return Some(volume);
    }
    if spec.automount_service_account_token == Some(true) {
        return Some("a token of the API (automountServiceAccountToken)".to_owned());
    }
    if let Some(host) = &spec.node_name {
        return Some(format!("a node of its own choice (nodeName: {host})"));
    }
    let grace = GracePeriod::of_pod(spec);
    if grace > MAX_GRACE_PERIOD {
        return Some(format!("a termination grace period of {grace}, more than {MAX_GRACE_PERIOD}"));
    }
    let security = spec.other.get("securityContext").and_then(Value::as_object);
    security.and_then(unsafe_setting).or_else(|| spec.all_containers().find_map(container_privilege))
}

fn volume_privilege(volume: &VolumeManifest) -> Option<String> {
    if let Some(host) = &volume.host_path {
        return Some(format!("a hostPath volume ({})", host.path.as_deref().unwrap_or_default()));
    }
    let mut sources = volume.other.iter().filter(|(field, value)| *field != "name" && !value.is_null());
    sources.find_map(|(source, value)| match source.as_str() {
        "ephemeral" => Some("storage of the cluster (an ephemeral volume)".to_owned()),
        "projected" => credential_source(value),
        known if VOLUMES.contains(&known) => None,
        other => Some(format!("a volume of type {other}")),
    })
}

/// Returns the first source of a projected volume that may give the pod credentials: a token of its
/// service account, a certificate, or a source that is not known.
fn credential_source(projected: &Value) -> Option<String> {
    let sources = projected.get("sources").and_then(Value::as_array).into_iter().flatten();
    let mut fields = sources.filter_map(Value::as_object).flatten().filter(|(_, value)| !value.is_null());
    let (field, _) = fields.find(|(field, _)| !PROJECTED_SOURCES.contains(&field.as_str()))?;
    Some(match field.as_str() {
        "serviceAccountToken" => "a token of the API (serviceAccountToken)".to_owned(),
        other => format!("a projected volume of type {other}"),
    })
}

/// Returns the first AppArmor annotation of a pod, or of the pod template of an object, that the
/// Pod Security Standard `baseline` forbids.
pub(super) fn app_armor_privilege(manifest: &Map<String, Value>) -> Option<String> {
    let kind = manifest.get("kind").and_then(Value::as_str).unwrap_or("Pod");
    let name = case_name(manifest).unwrap_or_default();
    let of_template = manifest.get("spec").and_then(|spec| spec.get("template")?.get("metadata"));
    let mut metadata = [manifest.get("metadata"), of_template].into_iter().flatten();
    let annotation = metadata.find_map(unconfined_annotation)?;
    Some(format!("{kind} {name} has the annotation {annotation}"))
}

fn unconfined_annotation(metadata: &Value) -> Option<&str> {
    let is_confined = |profile: &str| {
        profile.is_empty() || profile == "runtime/default" || profile.starts_with("localhost/")
    };
    let mut annotations = metadata.get("annotations")?.as_object()?.iter();
    let (name, _) = annotations.find(|(name, profile)| {
        name.starts_with(APP_ARMOR_ANNOTATION) && !profile.as_str().is_some_and(is_confined)
    })?;
    Some(name)
}

/// Returns the first privilege of a container beyond the Pod Security Standard `baseline`.
pub(super) fn container_privilege(container: &ContainerManifest) -> Option<String> {
    let security = container.security_context.as_ref();
    if security.is_some_and(|security| security.privileged == Some(true)) {
        return Some("a privileged container".to_owned());
    }
    let capabilities = security.and_then(|security| security.capabilities.as_ref());
    let mut added = capabilities.and_then(|capabilities| capabilities.add.as_ref()).into_iter().flatten();
    if let Some(capability) = added.find(|name| !BASELINE_CAPABILITIES.contains(&name.as_str())) {
        return Some(format!("the capability {capability}"));
    }
    if let Some(setting) = security.and_then(|security| unsafe_setting(&security.other)) {
        return Some(setting);
    }
    if let Some(field) = host_of_handler(container) {
        return Some(format!("a host of its own choice, which the kubelet connects to ({field})"));
    }
    let mut ports = container.ports.iter().flatten();
    ports.any(|port| port.host_port.is_some_and(|port| port > 0)).then(|| "a hostPort".to_owned())
}

/// Returns the field of the first probe or lifecycle handler that names a host: the kubelet
/// connects to it from the node.
fn host_of_handler(container: &ContainerManifest) -> Option<String> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    HANDLERS.into_iter().find_map(|path| {
        let (first, rest) = path.split_first()?;
        let handler = rest.iter().try_fold(container.other.get(*first)?, |value, field| value.get(field))?;
        let names_host = |action: &&str| {
            let host = handler.get(action).and_then(|action| action.get("host"));
            host.is_some_and(|host| !host.is_null() && host != "")
        };
        let action = ["httpGet", "tcpSocket"].into_iter().find(names_host)?;
        Some(format!("{}.{action}.host", path.join(".")))
    })
}

/// Returns the first setting of a security context, of a pod or a container, that `baseline`
/// forbids.
fn unsafe_setting(security: &Map<String, Value>) -> Option<String> {
    let text = |path: &[&str]| {
        let value = path.iter().skip(1).try_fold(security.get(path[0])?, |value, field| value.get(field));
        value?.as_str()
    };
    if let Some(mount) = text(&["procMount"]).filter(|mount| *mount != "Default") {
        return Some(format!("procMount {mount}"));
    }
    for field in ["seccompProfile", "appArmorProfile"] {
        if text(&[field, "type"]) == Some("Unconfined") {
            return Some(format!("{field} Unconfined"));
        }
    }
    let is_set = |field: &str| text(&["seLinuxOptions", field]).is_some_and(|value| !value.is_empty());
    let has_type =
        text(&["seLinuxOptions", "type"]).is_some_and(|name| !BASELINE_SELINUX_TYPES.contains(&name));
    if has_type || is_set("user") || is_set("role") {
        return Some("seLinuxOptions".to_owned());
    }
    if security.get("windowsOptions").and_then(|options| options.get("hostProcess"))
        == Some(&Value::Bool(true))
    {
        return Some("hostProcess".to_owned());
    }
    let sysctls = security.get("sysctls").and_then(Value::as_array).into_iter().flatten();
    let mut names = sysctls.filter_map(|sysctl| sysctl.get("name")?.as_str());
    names.find(|name| !BASELINE_SYSCTLS.contains(name)).map(|name| format!("the sysctl {name}"))
}
