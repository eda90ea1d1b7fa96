//! Bounds of the pods of a case on a node that evictlab does not manage: the memory and disk that
//! their manifests allow at most, and their privileges.

use evictlab_case::{
    Case, ContainerManifest, EphemeralContainer, ObjectPodSpec, PodPlacement, PodSpecManifest, QuantityText,
    ResizableResource, SYSTEM_PRIORITY_CLASSES,
};
use evictlab_cluster::workload::{GracePeriod, add_default_limits};
use evictlab_rules::quantity::Quantity;
use serde::Deserialize;

use crate::node_access::privilege::{
    app_armor_privilege, container_privilege, object_privilege, patch_privilege, pod_privilege,
};
use crate::pressure::room::Amounts;

/// Resources that a pod without limits can exhaust. Limits on them do not bound processes and
/// inodes; the guard of a running case does.
const EXHAUSTIBLE_RESOURCES: [&str; 2] = ["memory", STORAGE];
/// The resource that a pod's disk usage counts against.
const STORAGE: &str = "ephemeral-storage";

/// Resources and privileges that the pods of a case can take from a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodBounds {
    /// The first container without a limit, such as `container c of Pod p has no memory limit`.
    pub unlimited: Option<String>,
    /// The first pod that may preempt other pods, such as `Pod p has the priority class
    /// system-node-critical`.
    pub preempts: Option<String>,
    /// The first privilege beyond the Pod Security Standard `baseline` or beyond the namespace of
    /// the case, such as `Pod p uses hostPID`.
    pub privilege: Option<String>,
    /// Sums of the limits of all pods.
    pub limits: Amounts,
    /// Longest termination grace period of a pod; none without pods.
    pub longest_grace: GracePeriod,
}

impl PodBounds {
    /// Returns the bounds of the pods of a case, with the default limits of pods that cause no
    /// pressure.
    pub(crate) fn of(case: &Case) -> Self {
        let mut bounds = Self::default();
        for pod in case.pod_specs() {
            bounds.add(&pod, case.pressure.is_none());
            bounds.preempts = bounds.preempts.or_else(|| preemption(&pod, case.placed));
        }
        for pod in &case.pods {
            bounds.privilege = bounds.privilege.or_else(|| app_armor_privilege(pod));
        }
        for object in case.objects.iter().chain(case.created_objects()) {
            let privilege = || object_privilege(object).or_else(|| app_armor_privilege(object));
            bounds.privilege = bounds.privilege.or_else(privilege);
        }
        for patch in case.patches() {
            bounds.privilege = bounds.privilege.or_else(|| patch_privilege(patch));
        }
        for EphemeralContainer { pod, container } in &case.ephemeral_containers {
            let privilege = match ContainerManifest::deserialize(container) {
                Ok(container) => container_privilege(&container),
                Err(error) => Some(format!("fields that are not valid ({error})")),
            };
            let text = |privilege| format!("an ephemeral container of Pod {pod} uses {privilege}");
            bounds.privilege = bounds.privilege.or_else(|| privilege.map(text));
        }
        // In addition to the limits that they replace: a bound, not the exact sum.
        let resized = case.resizes().filter_map(|resize| resize.limits.get(&ResizableResource::Memory));
        for limit in resized.map(QuantityText::quantity) {
            let bytes = u64::try_from(limit.value()).unwrap_or_default();
            bounds.limits.memory = bounds.limits.memory.saturating_add(bytes);
        }
        bounds
    }

    fn add(&mut self, pod: &ObjectPodSpec, with_default_limits: bool) {
        let ObjectPodSpec { object, is_completed, .. } = pod;
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
        self.longest_grace = self.longest_grace.max(GracePeriod::of_pod(&spec));
        if let Some(privilege) = pod_privilege(&spec) {
            self.privilege.get_or_insert_with(|| format!("{object} uses {privilege}"));
        }
        // The disk of an ended pod is in use until the pod is deleted.
        let [memory, disk] = EXHAUSTIBLE_RESOURCES;
        for (resource, count, sum) in
            [(memory, pod.replicas, &mut self.limits.memory), (disk, pod.max_created, &mut self.limits.disk)]
        {
            let of_pod = spec.resources.as_ref().and_then(|resources| bytes(resources.limit(resource)?));
            let of_containers = spec.all_containers().filter_map(|container| limit(container, resource));
            let bytes = of_pod.unwrap_or_else(|| of_containers.fold(0, u64::saturating_add));
            *sum = sum.saturating_add(bytes.saturating_mul(count));
            if let Some(container) = unlimited(&spec, resource).filter(|_| of_pod.is_none()) {
                let text = || format!("container {container} of {object} has no {resource} limit");
                self.unlimited.get_or_insert_with(text);
            }
        }
    }
}

/// Returns the priority class by which a pod may preempt others: that of a critical pod on its
/// node, and any class of a scheduled pod.
fn preemption(pod: &ObjectPodSpec, placed: PodPlacement) -> Option<String> {
    let class = pod.parse().ok()?.priority_class_name?;
    let preempts = placed == PodPlacement::Scheduled || SYSTEM_PRIORITY_CLASSES.contains(&class.as_str());
    preempts.then(|| format!("{} has the priority class {class}", pod.object))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(pods: &str) -> PodBounds {
        let yaml = format!("{{name: a, about: b, expect: {{}}, pods: {pods}}}");
        PodBounds::of(&serde_saphyr::from_str(&yaml).unwrap())
    }

    impl PodBounds {
        /// Bounds of pods with the default grace period.
        fn graceful() -> Self {
            Self { longest_grace: GracePeriod::DEFAULT, ..Self::default() }
        }
    }

    #[test]
    fn limits_of_all_containers_or_of_the_pod_bound_it() {
        let limits = "resources: {limits: {memory: 64Mi, ephemeral-storage: 1Mi}}";
        let both = format!(
            "[{{metadata: {{name: p}}, spec: {{initContainers: [{{name: i, {limits}}}], containers: [{{name: c, {limits}}}]}}}}]"
        );
        assert_eq!(
            bounds(&both),
            PodBounds { limits: Amounts { memory: 128 << 20, disk: 2 << 20 }, ..PodBounds::graceful() }
        );
        let pod_level = "[{metadata: {name: p}, spec: {resources: {limits: {memory: 10Mi}},
            containers: [{name: c, resources: {limits: {ephemeral-storage: 1Mi}}}, {name: d}]}}]";
        assert_eq!(
            bounds(pod_level),
            PodBounds { limits: Amounts { memory: 10 << 20, disk: 1 << 20 }, ..PodBounds::graceful() }
        );
        let deployment =
            "[], objects: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 3, template: {spec: {
            containers: [{name: c, resources: {limits: {memory: 1Mi, ephemeral-storage: 2Mi}}}]}}}}]";
        assert_eq!(
            bounds(deployment),
            PodBounds { limits: Amounts { memory: 3 << 20, disk: 6 << 20 }, ..PodBounds::graceful() }
        );
        let job = "[], objects: [{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {completions: 300, template: {spec: {
            containers: [{name: c, resources: {limits: {memory: 1Mi, ephemeral-storage: 1Gi}}}]}}}}]";
        assert_eq!(
            bounds(job).limits,
            Amounts { memory: 1 << 20, disk: 300 << 30 },
            "ended pods keep their disk"
        );
        let resized = format!(
            "[{{metadata: {{name: p}}, spec: {{containers: [{{name: c, {limits}}}]}}}}],
            do: [{{resize: {{pod: p, requests: {{memory: 1Mi}}, limits: {{memory: 3Gi}}}}}}]"
        );
        assert_eq!(
            bounds(&resized),
            PodBounds {
                limits: Amounts { memory: (3 << 30) + (64 << 20), disk: 1 << 20 },
                ..PodBounds::graceful()
            }
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
            "[], objects: [{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: d}}, spec: {{template: {{spec: {{{container}}}}}}}}}]"
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
                format!(
                    "[], objects: [{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: s}}, spec: {{{template}}}}}]"
                ),
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
            ("[], objects: [{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}}]".to_owned(), ""),
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
            (
                "terminationGracePeriodSeconds: 2592000",
                "Pod p uses a termination grace period of 2592000 s, more than 120 s",
            ),
            ("terminationGracePeriodSeconds: 120", ""),
            ("nodeName: other", "Pod p uses a node of its own choice (nodeName: other)"),
            ("volumes: [{name: v, nfs: {server: a, path: /}}]", "Pod p uses a volume of type nfs"),
            ("volumes: [{name: v, csi: {driver: a}}]", "Pod p uses a volume of type csi"),
            (
                "volumes: [{name: v}, {name: w, emptyDir: {}}, {name: x, projected: {sources: [{secret: {}}]}}]",
                "",
            ),
            (
                "volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]",
                "Pod p uses a token of the API (serviceAccountToken)",
            ),
            (
                "automountServiceAccountToken: true",
                "Pod p uses a token of the API (automountServiceAccountToken)",
            ),
            ("automountServiceAccountToken: false", ""),
            ("securityContext: {seccompProfile: {type: Unconfined}}", "Pod p uses seccompProfile Unconfined"),
            (
                "securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}",
                "Pod p uses the sysctl kernel.msgmax",
            ),
            ("securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}]}", ""),
            ("securityContext: {seLinuxOptions: {type: spc_t}}", "Pod p uses seLinuxOptions"),
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
            ("securityContext: {procMount: Unmasked}", "Pod p uses procMount Unmasked"),
            (
                "securityContext: {appArmorProfile: {type: Unconfined}}",
                "Pod p uses appArmorProfile Unconfined",
            ),
            ("securityContext: {seccompProfile: {type: RuntimeDefault}, runAsUser: 0}", ""),
            (
                "livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}",
                "Pod p uses a host of its own choice, which the kubelet connects to (livenessProbe.httpGet.host)",
            ),
            (
                "startupProbe: {tcpSocket: {host: localhost, port: 80}}",
                "Pod p uses a host of its own choice, which the kubelet connects to (startupProbe.tcpSocket.host)",
            ),
            (
                "lifecycle: {preStop: {httpGet: {host: a, port: 80}}}",
                "Pod p uses a host of its own choice, which the kubelet connects to (lifecycle.preStop.httpGet.host)",
            ),
            (
                "readinessProbe: {httpGet: {port: 80, host: ''}}, lifecycle: {preStop: {sleep: {seconds: 1}}}",
                "",
            ),
        ];
        for (container, expected) in rows {
            let found = bounds(&format!(
                "[{{metadata: {{name: p}}, spec: {{containers: [{{name: c, {container}}}]}}}}]"
            ));
            assert_eq!(found.privilege.unwrap_or_default(), expected);
            let ephemeral = bounds(&format!(
                "[], ephemeral-containers: [{{pod: p, container: {{name: c, {container}}}}}]"
            ));
            let expected = expected.replace("Pod p", "an ephemeral container of Pod p");
            assert_eq!(ephemeral.privilege.unwrap_or_default(), expected);
        }
        let critical =
            "[{metadata: {name: p}, spec: {containers: [], priorityClassName: system-node-critical}}]";
        let expected = "Pod p has the priority class system-node-critical";
        assert_eq!(bounds(critical).preempts.as_deref(), Some(expected));
    }

    #[test]
    fn all_sources_of_a_volume_are_checked() {
        let rows = [
            ("emptyDir: {}, nfs: {server: a, path: /}", "Pod p uses a volume of type nfs"),
            (
                "projected: {sources: [{secret: {}}, {podCertificate: {signerName: a}}]}",
                "Pod p uses a projected volume of type podCertificate",
            ),
            ("projected: {sources: [{configMap: {}, serviceAccountToken: null}]}", ""),
        ];
        for (source, expected) in rows {
            let spec = format!("containers: [], volumes: [{{name: v, {source}}}]");
            let found = bounds(&format!("[{{metadata: {{name: p}}, spec: {{{spec}}}}}]"));
            assert_eq!(found.privilege.unwrap_or_default(), expected);
        }
    }

    #[test]
    fn annotations_without_an_app_armor_profile_are_privileges() {
        let name = "container.apparmor.security.beta.kubernetes.io/c";
        for (profile, is_privilege) in
            [("unconfined", true), ("runtime/default", false), ("localhost/mine", false)]
        {
            let metadata = format!("metadata: {{name: o, annotations: {{{name}: {profile}}}}}");
            let deployment = "apiVersion: apps/v1, kind: Deployment, metadata: {name: o}";
            for (case, object) in [
                (format!("[{{{metadata}, spec: {{containers: []}}}}]"), "Pod"),
                (format!("[], do: [{{create: {{kind: Pod, {metadata}, spec: {{containers: []}}}}}}]"), "Pod"),
                (
                    format!("[], objects: [{{{deployment}, spec: {{template: {{{metadata}}}}}}}]"),
                    "Deployment",
                ),
            ] {
                let expected = is_privilege.then(|| format!("{object} o has the annotation {name}"));
                assert_eq!(bounds(&case).privilege, expected, "{case}");
            }
        }
    }

    /// Objects of other kinds create pods without limits, grant rights, or take traffic of others.
    #[test]
    fn objects_that_act_beyond_their_namespace_are_privileges() {
        let rows = [
            ("apiVersion: v1, kind: ConfigMap", ""),
            ("apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}", ""),
            ("apiVersion: v1, kind: Service, spec: {type: ClusterIP}", ""),
            ("apiVersion: policy/v1, kind: PodDisruptionBudget", ""),
            ("apiVersion: v1, kind: Secret, data: {a: YQ==}", ""),
            ("apiVersion: v1, kind: Secret, type: kubernetes.io/tls", ""),
            (
                "apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token",
                "Secret o has type kubernetes.io/service-account-token, which may give it a token of the API",
            ),
            (
                "apiVersion: v1, kind: Secret, type: bootstrap.kubernetes.io/token",
                "Secret o has type bootstrap.kubernetes.io/token, which may give it a token of the API",
            ),
            ("apiVersion: apps/v1, kind: StatefulSet", ""),
            (
                "apiVersion: v1, kind: Service, spec: {type: LoadBalancer}",
                "Service o has type LoadBalancer, which affects more than its namespace",
            ),
            (
                "apiVersion: v1, kind: Service, spec: {externalIPs: [10.0.0.1]}",
                "Service o has externalIPs, which affects more than its namespace",
            ),
            (
                "apiVersion: serving.knative.dev/v1, kind: Service",
                "Service o may affect more than its namespace",
            ),
            (
                "apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {minReplicas: 200}",
                "HorizontalPodAutoscaler o may affect more than its namespace",
            ),
            (
                "apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding",
                "RoleBinding o may affect more than its namespace",
            ),
            (
                "apiVersion: tekton.dev/v1, kind: TaskRun, spec: {steps: []}",
                "TaskRun o may affect more than its namespace",
            ),
            ("apiVersion: v1, kind: Namespace", "Namespace o may affect more than its namespace"),
            ("kind: Deployment", "Deployment o may affect more than its namespace"),
        ];
        for (object, expected) in rows {
            let object = format!("{{metadata: {{name: o}}, {object}}}");
            for place in ["objects: [OBJECT]", "do: [{create: OBJECT}]"] {
                let found = bounds(&format!("[], {}", place.replace("OBJECT", &object)));
                assert_eq!(found.privilege.unwrap_or_default(), expected, "{place} {object}");
            }
        }
        let rows = [
            ("kind: Service, name: o, patch: {spec: {type: NodePort}}", "Service o sets type NodePort"),
            ("kind: Secret, name: o, patch: {data: {a: YQ==}}", ""),
            (
                "kind: Secret, name: o, patch: {metadata: {annotations: {kubernetes.io/service-account.name: a}}}",
                "Secret o sets annotation kubernetes.io/service-account.name",
            ),
            (
                "kind: Deployment, name: o, patch: {metadata: {ownerReferences: null}}",
                "Deployment o sets ownerReferences",
            ),
            (
                "kind: Deployment, name: o, patch: {spec: {template: {spec: {volumes: []}}}}",
                "Deployment o sets spec.template",
            ),
            (
                "kind: Deployment, name: o, patch: {spec: {template: {metadata: {labels: {a: b}}}}}",
                "Deployment o sets spec.template",
            ),
            ("kind: Deployment, name: o, patch: {spec: {replicas: 2, strategy: {type: Recreate}}}", ""),
        ];
        for (patch, expected) in rows {
            let found = bounds(&format!("[], do: [{{patch: {{{patch}}}}}]")).privilege.unwrap_or_default();
            assert_eq!(found.strip_prefix("a patch of ").unwrap_or_default(), expected, "{patch}");
        }
    }

    #[test]
    fn no_built_in_case_needs_a_privilege_beyond_the_host() {
        let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases");
        let cases = evictlab_case::load(&evictlab_case::Source::Dir(cases.into())).unwrap();
        assert!(cases.len() > 100, "{}", cases.len());
        let privileges = cases.iter().filter_map(|case| {
            let privilege = PodBounds::of(&case.case).privilege?;
            Some((case.case.name.as_str(), privilege))
        });
        let unexpected: Vec<_> = privileges
            .filter(|(_, privilege)| !privilege.contains("hostPath") && !privilege.ends_with("uses hostPID"))
            .collect();
        assert_eq!(unexpected, []);
    }
}
