//! The pods of a cluster by node, with the fields that a ranking needs: a large cluster has more
//! than 100,000 pods.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::runtime::watcher::Event;

use super::pod_fields::{ApiPod, EncodedPod, WatchedPod};

/// Pods by node. Clones share their contents.
#[derive(Clone, Default)]
pub(super) struct PodIndex {
    pods: Arc<Mutex<IndexedPods>>,
}

#[derive(Default)]
struct IndexedPods {
    /// Pods by the name of their node, and by UID.
    by_node: HashMap<Arc<str>, HashMap<Arc<str>, EncodedPod>>,
    /// Names of nodes by the UID of their pods.
    nodes: HashMap<Arc<str>, Arc<str>>,
    /// Pods of a list that is not complete.
    listed: Option<Box<IndexedPods>>,
}

impl PodIndex {
    /// Indexes pods.
    pub(super) fn of(pods: &[ApiPod]) -> Self {
        let index = Self::default();
        pods.iter().for_each(|pod| index.lock().insert(pod));
        index
    }

    /// Applies an event of a watch.
    pub(super) fn apply(&self, event: &Event<ApiPod>) {
        let mut indexed = self.lock();
        match event {
            Event::Init => indexed.listed = Some(Box::default()),
            Event::InitApply(pod) => indexed.listed.get_or_insert_default().insert(pod),
            Event::InitDone => *indexed = *indexed.listed.take().unwrap_or_default(),
            Event::Apply(pod) => indexed.insert(pod),
            Event::Delete(pod) => indexed.remove(pod.uid()),
        }
    }

    /// Returns the pods bound to a node, by namespace and name.
    pub(super) fn pods_on(&self, node: &str) -> Vec<WatchedPod> {
        let encoded: Vec<EncodedPod> =
            self.lock().by_node.get(node).into_iter().flat_map(|pods| pods.values().cloned()).collect();
        let mut pods: Vec<WatchedPod> = encoded.iter().filter_map(EncodedPod::decode).collect();
        pods.sort_by(|one, other| one.key().cmp(&other.key()));
        pods
    }

    /// Returns the node of a pod.
    pub(super) fn node_of(&self, uid: &str) -> Option<String> {
        self.lock().nodes.get(uid).map(|node| node.to_string())
    }

    fn lock(&self) -> MutexGuard<'_, IndexedPods> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IndexedPods {
    fn insert(&mut self, pod: &ApiPod) {
        self.remove(pod.uid());
        let Some(node) = pod.node() else { return };
        let node = self.by_node.get_key_value(node).map_or_else(|| node.into(), |(node, _)| node.clone());
        let uid: Arc<str> = pod.uid().into();
        self.nodes.insert(uid.clone(), node.clone());
        self.by_node.entry(node).or_default().insert(uid, pod.encode());
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, node: Option<&str>) -> ApiPod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}")},
            "spec": {"nodeName": node, "containers": [{"name": "c"}]},
        }))
        .unwrap()
    }

    #[test]
    fn finds_the_pods_of_a_node() {
        let index = PodIndex::default();
        let names =
            |node: &str| index.pods_on(node).into_iter().map(|own| own.pod.metadata.name).collect::<Vec<_>>();
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
}
