//! The one system pod that every node runs in kind and that counts for evictions: kube-proxy.

use serde_json::json;

use super::Kubelet;
use crate::store::Kind;
use crate::world::Ctx;

const NAMESPACE: &str = "kube-system";

impl Kubelet {
    /// Has the node's kube-proxy pod made if it has none, as its DaemonSet would.
    pub(super) fn ensure_proxy(&self, ctx: &mut Ctx) {
        let is_proxy = |pod: &serde_json::Value| {
            pod["metadata"]["labels"]["k8s-app"] == "kube-proxy" && self.is_own(pod)
        };
        if ctx.store.list(Kind::Pod, Some(NAMESPACE)).any(|pod| is_proxy(pod)) {
            return;
        }
        let pod = json!({
            "metadata": {
                "generateName": "kube-proxy-",
                "namespace": NAMESPACE,
                "generation": 1,
                "labels": {"k8s-app": "kube-proxy", "pod-template-generation": "1"},
                "ownerReferences": [{
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": "kube-proxy",
                    "uid": ctx.store.uid(),
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "containers": [{
                    "name": "kube-proxy",
                    "image": format!("registry.k8s.io/kube-proxy:{}", self.identity.version),
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
                "nodeName": self.identity.node,
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
        });
        // A generated name that is taken would leave the node without; the next start makes another.
        let _taken = ctx.store.create(Kind::Pod, pod, ctx.now);
    }
}
