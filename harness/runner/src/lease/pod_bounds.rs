//! Bounds of the pods of a case on a node that evictlab does not manage: the memory and disk that
//! their manifests allow at most, and their privileges.

use evictlab_case::{
    Case, ContainerManifest, LocatedPodSpec, PodSpecManifest, QuantityText, ResizableResource,
    SYSTEM_PRIORITY_CLASSES, case_name,
};
use evictlab_cluster::workload::add_default_limits;
use evictlab_rules::quantity::Quantity;
use serde_json::{Map, Value};

/// Resources that a pod without limits can exhaust. A memory limit bounds processes, too: the
/// kernel charges each of them to the memory of its container.
const RESOURCES: [&str; 2] = ["memory", STORAGE];
/// The resource that a pod's disk usage counts against.
const STORAGE: &str = "ephemeral-storage";
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

/// Resources and privileges that the pods of a case can take from a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodBounds {
    /// The first container without a limit, such as `container c of Pod p has no memory limit`.
    pub unlimited: Option<String>,
    /// The first pod that preempts other pods, such as `Pod p has the priority class
    /// system-node-critical`.
    pub preempts: Option<String>,
    /// The first privilege beyond the Pod Security Standard `baseline`, such as `Pod p uses
    /// hostPID`.
    pub privilege: Option<String>,
    /// Sums of the limits of all pods in bytes, of memory and of ephemeral storage.
    pub limits: [u64; 2],
}

impl PodBounds {
    /// Returns the bounds of the pods of a case, with the default limits of pods that cause no
    /// pressure.
    pub(crate) fn of(case: &Case) -> Self {
        let mut bounds = Self::default();
        for pod in case.pod_specs() {
            bounds.add(&pod, case.pressure.is_none());
        }
        for object in case.objects.iter().chain(case.created_objects()) {
            bounds.privilege = bounds.privilege.or_else(|| claimed_storage(object));
        }
        for patch in case.patches() {
            let field = patch.patch.values().find_map(unbounded_field);
            if let Some(field) = field {
                let text = || format!("a patch of {} {} sets {field}", patch.kind.as_str(), patch.name);
                bounds.privilege.get_or_insert_with(text);
            }
        }
        // In addition to the limits that they replace: a bound, not the exact sum.
        let resized = case.resizes().filter_map(|resize| resize.limits.get(&ResizableResource::Memory));
        for limit in resized.map(QuantityText::quantity) {
            let bytes = u64::try_from(limit.value()).unwrap_or_default();
            bounds.limits[0] = bounds.limits[0].saturating_add(bytes);
        }
        bounds
    }

    fn add(&mut self, pod: &LocatedPodSpec, with_default_limits: bool) {
        let LocatedPodSpec { object, replicas: count, is_completed, .. } = pod;
        let mut spec = match pod.parse() {
            Ok(spec) => spec,
            Err(error) => {
                let text = || format!("the pod spec of {object} is not valid ({error})");
                self.unlimited.get_or_insert_with(text);
                return;
            }
        };
        // Other pods are created as they are written.
        if with_default_limits && *is_completed {
            add_default_limits(&mut spec);
        }
        if !is_completed {
            let text = || format!("{object} has a pod template that may run on any node");
            self.privilege.get_or_insert_with(text);
        }
        let class = spec.priority_class_name.as_deref();
        if let Some(class) = class.filter(|class| SYSTEM_PRIORITY_CLASSES.contains(class)) {
            self.preempts.get_or_insert_with(|| format!("{object} has the priority class {class}"));
        }
        if let Some(privilege) = privilege(&spec) {
            self.privilege.get_or_insert_with(|| format!("{object} uses {privilege}"));
        }
        for (index, resource) in RESOURCES.iter().enumerate() {
            let of_pod = spec.resources.as_ref().and_then(|resources| bytes(resources.limit(resource)?));
            let of_containers = spec.all_containers().filter_map(|container| limit(container, resource));
            let bytes = of_pod.unwrap_or_else(|| of_containers.fold(0, u64::saturating_add));
            self.limits[index] = self.limits[index].saturating_add(bytes.saturating_mul(*count));
            if let Some(container) = unlimited(&spec, resource).filter(|_| of_pod.is_none()) {
                let text = || format!("container {container} of {object} has no {resource} limit");
                self.unlimited.get_or_insert_with(text);
            }
        }
    }
}

/// Returns the storage of the cluster that an object claims: it outlives the node, costs what the
/// provisioner costs, and may be kept when the claim is deleted.
fn claimed_storage(object: &Map<String, Value>) -> Option<String> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let has_templates = object.get("spec").and_then(|spec| spec["volumeClaimTemplates"].as_array());
    let claims = ["PersistentVolume", "PersistentVolumeClaim", "VolumeSnapshot"].contains(&kind)
        || has_templates.is_some_and(|templates| !templates.is_empty());
    claims.then(|| format!("{kind} {} claims storage of the cluster", case_name(object).unwrap_or_default()))
}

/// Returns a field of a patch by which pods leave the nodes of the run, preempt other pods, or claim
/// storage of the cluster.
fn unbounded_field(value: &Value) -> Option<&'static str> {
    const FIELDS: [&str; 7] = [
        "nodeName",
        "nodeSelector",
        "affinity",
        "priorityClassName",
        "schedulerName",
        "ephemeral",
        "volumeClaimTemplates",
    ];
    match value {
        Value::Object(map) => {
            let own = FIELDS.into_iter().find(|field| map.contains_key(*field));
            own.or_else(|| map.values().find_map(unbounded_field))
        }
        Value::Array(items) => items.iter().find_map(unbounded_field),
        _ => None,
    }
}

/// Returns the name of the first container without a limit. The kubelet compares the disk usage of
/// a whole pod with the sum of the stated limits, so one storage limit bounds the pod.
fn unlimited<'a>(spec: &'a PodSpecManifest, resource: &str) -> Option<&'a str> {
    let is_limited = |container: &&ContainerManifest| limit(container, resource).is_some();
    if resource == STORAGE && spec.all_containers().any(|container| is_limited(&container)) {
        return None;
    }
    let container = spec.all_containers().find(|container| !is_limited(container))?;
    Some(container.name.as_deref().unwrap_or_default())
}

/// Returns a limit in bytes.
fn limit(container: &ContainerManifest, resource: &str) -> Option<u64> {
    bytes(container.limit(resource)?)
}

/// Returns an amount in bytes. Kubelets treat a limit of 0 as none.
fn bytes(quantity: Quantity) -> Option<u64> {
    u64::try_from(quantity.value()).ok().filter(|bytes| *bytes > 0)
}

/// Returns the first privilege of a pod beyond the Pod Security Standard `baseline`. The API server
/// enforces the whole standard; this is for a reason that names the field.
fn privilege(spec: &PodSpecManifest) -> Option<String> {
    let shared = [("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc)];
    if let Some((field, _)) = shared.into_iter().find(|(_, is_shared)| *is_shared == Some(true)) {
        return Some(field.to_owned());
    }
    let mut volumes = spec.volumes.iter().flatten();
    if let Some(path) = volumes.find_map(|volume| volume.host_path.as_ref()?.path.as_ref()) {
        return Some(format!("a hostPath volume ({path})"));
    }
    if spec.volumes.iter().flatten().any(|volume| volume.other.contains_key("ephemeral")) {
        return Some("storage of the cluster (an ephemeral volume)".to_owned());
    }
    if let Some(host) = &spec.node_name {
        return Some(format!("a node of its own choice (nodeName: {host})"));
    }
    spec.all_containers().find_map(container_privilege)
}

fn container_privilege(container: &ContainerManifest) -> Option<String> {
    let security = container.security_context.as_ref();
    if security.is_some_and(|security| security.privileged == Some(true)) {
        return Some("a privileged container".to_owned());
    }
    let capabilities = security.and_then(|security| security.capabilities.as_ref());
    let mut added = capabilities.and_then(|capabilities| capabilities.add.as_ref()).into_iter().flatten();
    if let Some(capability) = added.find(|name| !BASELINE_CAPABILITIES.contains(&name.as_str())) {
        return Some(format!("the capability {capability}"));
    }
    let mut ports = container.ports.iter().flatten();
    ports.any(|port| port.host_port.is_some_and(|port| port > 0)).then(|| "a hostPort".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(pods: &str) -> PodBounds {
        let yaml = format!("{{name: a, about: b, expect: {{}}, pods: {pods}}}");
        PodBounds::of(&serde_saphyr::from_str(&yaml).unwrap())
    }

    #[test]
    fn limits_of_all_containers_or_of_the_pod_bound_it() {
        let limits = "resources: {limits: {memory: 64Mi, ephemeral-storage: 1Mi}}";
        let both = format!(
            "[{{metadata: {{name: p}}, spec: {{initContainers: [{{name: i, {limits}}}], containers: [{{name: c, {limits}}}]}}}}]"
        );
        assert_eq!(bounds(&both), PodBounds { limits: [128 << 20, 2 << 20], ..PodBounds::default() });
        let pod_level = "[{metadata: {name: p}, spec: {resources: {limits: {memory: 10Mi}},
            containers: [{name: c, resources: {limits: {ephemeral-storage: 1Mi}}}, {name: d}]}}]";
        assert_eq!(bounds(pod_level), PodBounds { limits: [10 << 20, 1 << 20], ..PodBounds::default() });
        let deployment =
            "[], objects: [{kind: Deployment, metadata: {name: d}, spec: {replicas: 3, template: {spec: {
            containers: [{name: c, resources: {limits: {memory: 1Mi, ephemeral-storage: 2Mi}}}]}}}}]";
        assert_eq!(bounds(deployment), PodBounds { limits: [3 << 20, 6 << 20], ..PodBounds::default() });
        let resized = format!(
            "[{{metadata: {{name: p}}, spec: {{containers: [{{name: c, {limits}}}]}}}}],
            do: [{{resize: {{pod: p, requests: {{memory: 1Mi}}, limits: {{memory: 3Gi}}}}}}]"
        );
        assert_eq!(
            bounds(&resized),
            PodBounds { limits: [(3 << 30) + (64 << 20), 1 << 20], ..PodBounds::default() }
        );
        let rows = [
            ("containers: [{name: c}]", None),
            (
                "containers: [{name: c, resources: {requests: {memory: 1Gi}}}]",
                Some("container c of Pod p has no memory limit"),
            ),
            (
                "containers: [], initContainers: [{name: i, resources: {limits: {cpu: 1}}}]",
                Some("container i of Pod p has no memory limit"),
            ),
            (
                "containers: [{name: c, resources: {requests: {ephemeral-storage: 1Gi}}}]",
                Some("container c of Pod p has no ephemeral-storage limit"),
            ),
        ];
        for (spec, expected) in rows {
            let found = bounds(&format!("[{{metadata: {{name: p}}, spec: {{{spec}}}}}]"));
            assert_eq!(found.unlimited.as_deref(), expected);
        }
        // Pods that cause pressure keep what they state.
        let hog =
            "[{metadata: {name: p}, spec: {containers: [{name: c}]}}], pressure: {signal: memory.available}";
        assert_eq!(bounds(hog).unlimited.as_deref(), Some("container c of Pod p has no memory limit"));
    }

    /// evictlab adds limits and the node only to objects that it completes before their creation.
    #[test]
    fn templates_that_are_not_completed_are_not_bounded() {
        let container = "containers: [{name: c, image: a}]";
        let rows = [
            format!("[], do: [{{patch: {{kind: Deployment, name: d, patch: {{spec: {{template: {{spec: {{{container}}}}}}}}}}}}}]"),
            format!("[], objects: [{{kind: CronJob, metadata: {{name: d}}, spec: {{jobTemplate: {{spec: {{template: {{spec: {{{container}}}}}}}}}}}}}]"),
            "[], do: [{patch: {kind: Deployment, name: d, patch: {spec: {template: {spec: {nodeName: other}}}}}}]".to_owned(),
            "[], do: [{patch: {kind: Deployment, name: d, patch: {spec: {template: {spec: {priorityClassName: a}}}}}}]".to_owned(),
        ];
        for row in rows {
            let found = bounds(&row);
            assert!(found.privilege.is_some(), "{row}: {found:?}");
            assert_eq!(found.unlimited.is_some(), row.contains("containers"), "{row}: {found:?}");
        }
        let placed = format!(
            "[], objects: [{{kind: Deployment, metadata: {{name: d}}, spec: {{template: {{spec: {{{container}}}}}}}}}]"
        );
        assert!(bounds(&placed).privilege.is_none() && bounds(&placed).unlimited.is_none());
        let zero =
            "[{metadata: {name: p}, spec: {containers: [{name: c, resources: {limits: {memory: 0}}}]}}]";
        assert_eq!(bounds(zero).unlimited.as_deref(), Some("container c of Pod p has no memory limit"));
    }

    #[test]
    fn claims_of_storage_are_privileges() {
        let claim = "kind: PersistentVolumeClaim, metadata: {name: big}, spec: {resources: {requests: {storage: 5Ti}}}";
        let template = "volumeClaimTemplates: [{metadata: {name: v}}]";
        let rows = [
            (
                format!("[], objects: [{{{claim}}}]"),
                "PersistentVolumeClaim big claims storage of the cluster",
            ),
            (
                format!("[], do: [{{create: {{{claim}}}}}]"),
                "PersistentVolumeClaim big claims storage of the cluster",
            ),
            (
                format!("[], objects: [{{kind: StatefulSet, metadata: {{name: s}}, spec: {{{template}}}}}]"),
                "StatefulSet s claims storage of the cluster",
            ),
            (
                format!(
                    "[], do: [{{patch: {{kind: StatefulSet, name: s, patch: {{spec: {{{template}}}}}}}}}]"
                ),
                "a patch of StatefulSet s sets volumeClaimTemplates",
            ),
            (
                "[{metadata: {name: p}, spec: {containers: [], volumes: [{name: v, ephemeral: {}}]}}]"
                    .to_owned(),
                "Pod p uses storage of the cluster (an ephemeral volume)",
            ),
            ("[], objects: [{kind: StatefulSet, metadata: {name: s}}]".to_owned(), ""),
        ];
        for (pods, expected) in rows {
            assert_eq!(bounds(&pods).privilege.unwrap_or_default(), expected, "{pods}");
        }
    }

    #[test]
    fn a_spec_that_cannot_be_read_has_no_bounds() {
        let patched = "[], do: [{patch: {kind: Deployment, name: d, patch: {spec: {template: {spec: {
            hostPID: 'yes', containers: []}}}}}}]";
        let unlimited = bounds(patched).unlimited.unwrap_or_default();
        assert!(
            unlimited.starts_with("the pod spec of Deployment d is not valid (invalid type"),
            "{unlimited}"
        );
    }

    #[test]
    fn names_the_first_privilege() {
        let rows = [
            ("hostPID: true", "Pod p uses hostPID"),
            ("hostNetwork: true", "Pod p uses hostNetwork"),
            ("hostPID: false", ""),
            ("volumes: [{name: v, hostPath: {path: /}}]", "Pod p uses a hostPath volume (/)"),
            ("nodeName: other", "Pod p uses a node of its own choice (nodeName: other)"),
        ];
        for (spec, expected) in rows {
            let found = bounds(&format!("[{{metadata: {{name: p}}, spec: {{containers: [], {spec}}}}}]"));
            assert_eq!(found.privilege.unwrap_or_default(), expected);
        }
        let rows = [
            ("securityContext: {privileged: true}", "Pod p uses a privileged container"),
            (
                "securityContext: {capabilities: {add: [KILL, SYS_ADMIN]}}",
                "Pod p uses the capability SYS_ADMIN",
            ),
            ("securityContext: {capabilities: {add: [KILL]}}", ""),
            ("ports: [{containerPort: 80, hostPort: 80}]", "Pod p uses a hostPort"),
            ("ports: [{containerPort: 80}]", ""),
        ];
        for (container, expected) in rows {
            let found = bounds(&format!(
                "[{{metadata: {{name: p}}, spec: {{containers: [{{name: c, {container}}}]}}}}]"
            ));
            assert_eq!(found.privilege.unwrap_or_default(), expected);
        }
        let critical =
            "[{metadata: {name: p}, spec: {containers: [], priorityClassName: system-node-critical}}]";
        let expected = "Pod p has the priority class system-node-critical";
        assert_eq!(bounds(critical).preempts.as_deref(), Some(expected));
    }
}
