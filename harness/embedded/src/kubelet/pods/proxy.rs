//! kube-proxy, the system pod that runs on every kind node and affects evictions.

use serde_json::{Value, json};

use crate::context::SimContext;
use crate::kubelet::state::Kubelet;
use crate::resource::{Kind, ObjectExt};

const NAMESPACE: &str = "kube-system";

impl Kubelet {
    /// Creates the node's kube-proxy pod if it is missing, as its DaemonSet does.
    pub(super) fn ensure_proxy(&self, ctx: &mut SimContext) {
        let is_proxy =
            |pod: &Value| pod.namespace() == NAMESPACE && pod.labels().text("k8s-app") == "kube-proxy";
        if ctx.store.pods_on(&self.options.name).any(|pod| is_proxy(pod)) {
            return;
        }
        let pod = self.proxy_pod(&ctx.store.uid());
        // If the generated name is taken, the next start of the kubelet tries again.
        let _taken = ctx.store.create(Kind::Pod, pod, ctx.now);
    }

    fn proxy_pod(&self, daemon_set_uid: &str) -> Value {
        json!({
            "metadata": {
                "generateName": "kube-proxy-",
                "namespace": NAMESPACE,
                "generation": 1,
                "labels": {"k8s-app": "kube-proxy", "pod-template-generation": "1"},
                "ownerReferences": [{
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": "kube-proxy",
                    "uid": daemon_set_uid,
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "containers": [{
                    "name": "kube-proxy",
                    "image": format!("registry.k8s.io/kube-proxy:{}", self.options.version),
                    "imagePullPolicy": "IfNotPresent",
                    "command": [
                        "/usr/local/bin/kube-proxy",
                        "--config=/var/lib/kube-proxy/config.conf",
                        "--hostname-override=$(NODE_NAME)",
                    ],
                    "env": [{
                        "name": "NODE_NAME",
                        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
                    }],
                    "resources": {},
                    "securityContext": {"privileged": true},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }],
                "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 30,
                "dnsPolicy": "ClusterFirst",
                "serviceAccountName": "kube-proxy",
                "serviceAccount": "kube-proxy",
                "nodeName": self.options.name,
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "hostNetwork": true,
                "securityContext": {},
                "schedulerName": "default-scheduler",
                "tolerations": [{"operator": "Exists"}],
                "priorityClassName": "system-node-critical",
                "priority": 2_000_001_000,
                "preemptionPolicy": "PreemptLowerPriority",
                "enableServiceLinks": true,
            },
            "status": {"phase": "Pending", "qosClass": "BestEffort"},
        })
    }
}
