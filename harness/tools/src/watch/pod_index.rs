//! The pods of a cluster by node, with the fields that a ranking needs: a large cluster has more
//! than 100,000 pods.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Container, Pod as ApiPod, PodStatus};
use kube::ResourceExt;
use kube::runtime::watcher::Event;

/// Pods by node. Clones share their contents.
#[derive(Clone, Default)]
pub(super) struct PodIndex {
    pods: Arc<Mutex<IndexedPods>>,
}

#[derive(Default)]
struct IndexedPods {
    /// Pods by the name of their node, and by UID.
    by_node: HashMap<String, HashMap<String, Arc<ApiPod>>>,
    /// Names of nodes by the UID of their pods.
    nodes: HashMap<String, String>,
    /// Pods of a list that is not complete.
    listed: Option<Vec<ApiPod>>,
}

impl PodIndex {
    /// Creates the index of listed pods.
    pub(super) fn of(pods: impl IntoIterator<Item = ApiPod>) -> Self {
        let index = Self::default();
        let mut indexed = index.lock();
        pods.into_iter().for_each(|pod| indexed.insert(pod));
        drop(indexed);
        index
    }

    /// Applies an event of a watch.
    pub(super) fn apply(&self, event: &Event<ApiPod>) {
        let mut indexed = self.lock();
        match event {
            Event::Init => indexed.listed = Some(Vec::new()),
            Event::InitApply(pod) => {
                let pod = needed_fields(pod.clone());
                indexed.listed.get_or_insert_default().push(pod);
            }
            Event::InitDone => {
                let listed = indexed.listed.take().unwrap_or_default();
                *indexed = IndexedPods::default();
                listed.into_iter().for_each(|pod| indexed.insert(pod));
            }
            Event::Apply(pod) => indexed.insert(pod.clone()),
            Event::Delete(pod) => indexed.remove(&pod.uid().unwrap_or_default()),
        }
    }

    /// Returns the pods bound to a node, by namespace and name.
    pub(super) fn on(&self, node: &str) -> Vec<Arc<ApiPod>> {
        let mut pods: Vec<Arc<ApiPod>> =
            self.lock().by_node.get(node).into_iter().flat_map(|pods| pods.values().cloned()).collect();
        pods.sort_by(|one, other| {
            (one.namespace(), one.name_any()).cmp(&(other.namespace(), other.name_any()))
        });
        pods
    }

    /// Returns the node of a pod.
    pub(super) fn node_of(&self, uid: &str) -> Option<String> {
        self.lock().nodes.get(uid).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, IndexedPods> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IndexedPods {
    fn insert(&mut self, pod: ApiPod) {
        let uid = pod.uid().unwrap_or_default();
        self.remove(&uid);
        let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) else { return };
        self.nodes.insert(uid.clone(), node.clone());
        self.by_node.entry(node).or_default().insert(uid, Arc::new(needed_fields(pod)));
    }

    fn remove(&mut self, uid: &str) {
        let Some(node) = self.nodes.remove(uid) else { return };
        if let Some(pods) = self.by_node.get_mut(&node) {
            pods.remove(uid);
            if pods.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }
}

/// Returns the pod without the fields that neither the ranking nor the view reads.
pub(super) fn needed_fields(mut pod: ApiPod) -> ApiPod {
    pod.metadata.managed_fields = None;
    pod.metadata.labels = None;
    pod.metadata.owner_references = None;
    if let Some(annotations) = &mut pod.metadata.annotations {
        annotations.retain(|name, _| name.starts_with("kubernetes.io/config."));
    }
    if let Some(spec) = &mut pod.spec {
        (spec.affinity, spec.tolerations, spec.node_selector) = (None, None, None);
        spec.ephemeral_containers = None;
        let lists = [Some(&mut spec.containers), spec.init_containers.as_mut()];
        for container in lists.into_iter().flatten().flatten() {
            *container = Container {
                name: std::mem::take(&mut container.name),
                resources: container.resources.take(),
                restart_policy: container.restart_policy.take(),
                ..Container::default()
            };
        }
    }
    if let Some(status) = &mut pod.status {
        *status = PodStatus {
            phase: status.phase.take(),
            reason: status.reason.take(),
            qos_class: status.qos_class.take(),
            ..PodStatus::default()
        };
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, node: Option<&str>) -> ApiPod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"),
                "annotations": {"kubernetes.io/config.mirror": "1", "other": "2"}},
            "spec": {"nodeName": node, "containers": [
                {"name": "c", "image": "i", "env": [{"name": "A", "value": "b"}],
                    "resources": {"requests": {"memory": "1Mi"}}}]},
            "status": {"phase": "Running", "hostIP": "10.0.0.1"},
        }))
        .unwrap()
    }

    #[test]
    fn finds_the_pods_of_a_node() {
        let index = PodIndex::default();
        let names = |node: &str| index.on(node).iter().map(|pod| pod.name_any()).collect::<Vec<_>>();
        index.apply(&Event::Init);
        for one in [pod("b", Some("n")), pod("a", Some("n")), pod("pending", None)] {
            index.apply(&Event::InitApply(one));
        }
        assert!(names("n").is_empty(), "the list is not complete");
        index.apply(&Event::InitDone);
        assert_eq!(
            (names("n"), index.node_of("uid-a").as_deref()),
            (vec!["a".into(), "b".into()], Some("n"))
        );
        index.apply(&Event::Apply(pod("pending", Some("m"))));
        index.apply(&Event::Delete(pod("a", Some("n"))));
        assert_eq!((names("n"), names("m")), (vec!["b".to_owned()], vec!["pending".to_owned()]));
        assert_eq!(index.node_of("uid-a"), None);
        // A list after a gap replaces everything.
        index.apply(&Event::Init);
        index.apply(&Event::InitApply(pod("c", Some("n"))));
        index.apply(&Event::InitDone);
        assert_eq!((names("n"), names("m")), (vec!["c".to_owned()], vec![]));
    }

    #[test]
    fn keeps_what_the_ranking_reads() {
        let kept = serde_json::to_value(needed_fields(pod("a", Some("n")))).unwrap();
        assert_eq!(
            kept,
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "a", "namespace": "ns", "uid": "uid-a",
                    "annotations": {"kubernetes.io/config.mirror": "1"}},
                "spec": {"nodeName": "n",
                    "containers": [{"name": "c", "resources": {"requests": {"memory": "1Mi"}}}]},
                "status": {"phase": "Running"},
            })
        );
    }
}
