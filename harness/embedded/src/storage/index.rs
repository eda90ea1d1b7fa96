//! Indexes of the stored objects, so that a lookup does not read every object of a large cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::change::{ObjectChange, WatchEventType};
use crate::resource::{Kind, ObjectExt};

/// Namespace, empty for cluster-scoped kinds, and name of an object.
type ObjectKey = (String, String);

/// Indexes of the objects.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Pods by their node.
    pods: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// Objects by the uid of an owner, except for events and leases.
    dependents: BTreeMap<String, BTreeSet<(Kind, ObjectKey)>>,
    /// Kubelet versions of the nodes, each with its nodes.
    kubelet_versions: BTreeMap<String, BTreeSet<ObjectKey>>,
}

impl Index {
    /// Returns the pods that are bound to a node, by namespace and name.
    pub(super) fn pods_on<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a ObjectKey> + use<'a> {
        self.pods.get(node).into_iter().flatten()
    }

    /// Returns the objects with an owner, by kind, namespace and name; not its events and leases.
    pub(super) fn dependents<'a>(
        &'a self,
        uid: &str,
    ) -> impl Iterator<Item = &'a (Kind, ObjectKey)> + use<'a> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// Returns the distinct kubelet versions of the nodes.
    pub(super) fn kubelet_versions(&self) -> impl Iterator<Item = &str> {
        self.kubelet_versions.keys().map(String::as_str)
    }

    /// Applies a change of an object with a key.
    pub(super) fn update(&mut self, (namespace, name): (&str, &str), change: &ObjectChange) {
        let key = || (namespace.to_owned(), name.to_owned());
        let before = change.before.as_deref();
        let after = Some(&*change.object).filter(|_| change.event_type != WatchEventType::Deleted);
        match change.kind {
            Kind::Pod => {
                let node = |pod: &Value| Some(pod.node_name().to_owned()).filter(|node| !node.is_empty());
                replace(&mut self.pods, before.and_then(node), after.and_then(node), key);
            }
            Kind::Node => {
                let version = |node: &Value| node.status()["nodeInfo"].text("kubeletVersion").to_owned();
                replace(&mut self.kubelet_versions, before.map(version), after.map(version), key);
            }
            Kind::Event | Kind::Lease => return,
            _ => {}
        }
        let [before, after] = [before, after].map(|object| object.map(owners).unwrap_or_default());
        let item = || (change.kind, key());
        for uid in before.difference(&after) {
            replace(&mut self.dependents, Some((*uid).to_owned()), None, item);
        }
        for uid in after.difference(&before) {
            replace(&mut self.dependents, None, Some((*uid).to_owned()), item);
        }
    }
}

/// Returns the uids of the owners of an object.
fn owners(object: &Value) -> BTreeSet<&str> {
    object.metadata().items("ownerReferences").map(|owner| owner.text("uid")).collect()
}

/// Moves an item from one group to another.
fn replace<T: Ord>(
    groups: &mut BTreeMap<String, BTreeSet<T>>,
    before: Option<String>,
    after: Option<String>,
    item: impl Fn() -> T,
) {
    if before == after {
        return;
    }
    if let Some(before) = before
        && let Some(group) = groups.get_mut(&before)
    {
        group.remove(&item());
        if group.is_empty() {
            groups.remove(&before);
        }
    }
    if let Some(after) = after {
        groups.entry(after).or_default().insert(item());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn follows_the_changes_of_objects() {
        let mut index = Index::default();
        let mut last: BTreeMap<&str, Arc<Value>> = BTreeMap::new();
        let mut apply = |index: &mut Index, kind: Kind, name: &'static str, object: Option<Value>| {
            let before = last.remove(name);
            let (event_type, object) = match object {
                Some(object) => (WatchEventType::Modified, Arc::new(object)),
                None => (WatchEventType::Deleted, before.clone().unwrap()),
            };
            if event_type == WatchEventType::Modified {
                last.insert(name, object.clone());
            }
            index.update(("ns", name), &ObjectChange { version: 1, event_type, kind, object, before });
        };
        let pod = |node: &str, owners: &[&str]| {
            let owners: Vec<Value> = owners.iter().map(|uid| json!({"uid": uid})).collect();
            Some(json!({"metadata": {"ownerReferences": owners}, "spec": {"nodeName": node}}))
        };
        let names = |keys: Vec<&ObjectKey>| keys.into_iter().map(|key| key.1.clone()).collect::<Vec<_>>();
        let on = |index: &Index, node: &str| names(index.pods_on(node).collect());
        let owned = |index: &Index, uid: &str| names(index.dependents(uid).map(|(_, key)| key).collect());

        apply(&mut index, Kind::Pod, "b", pod("", &["set"]));
        assert!(on(&index, "").is_empty(), "a pod without a node is on no node");
        apply(&mut index, Kind::Pod, "b", pod("n", &["set"]));
        apply(&mut index, Kind::Pod, "a", pod("n", &["set", "job"]));
        assert_eq!(
            (on(&index, "n"), owned(&index, "set")),
            (vec!["a".into(), "b".into()], vec!["a".into(), "b".into()])
        );
        apply(&mut index, Kind::Pod, "a", pod("n", &["job"]));
        assert_eq!(
            (owned(&index, "set"), owned(&index, "job")),
            (vec!["b".to_owned()], vec!["a".to_owned()])
        );
        apply(&mut index, Kind::Lease, "n", pod("", &["set"]));
        apply(&mut index, Kind::Pod, "b", None);
        assert_eq!((on(&index, "n"), owned(&index, "set")), (vec!["a".to_owned()], vec![]));

        let node = |version: &str| Some(json!({"status": {"nodeInfo": {"kubeletVersion": version}}}));
        for name in ["one", "two"] {
            apply(&mut index, Kind::Node, name, node("v1.31.1"));
        }
        apply(&mut index, Kind::Node, "one", node("v1.33.1"));
        assert_eq!(index.kubelet_versions().collect::<Vec<_>>(), ["v1.31.1", "v1.33.1"]);
        apply(&mut index, Kind::Node, "two", None);
        assert_eq!(index.kubelet_versions().collect::<Vec<_>>(), ["v1.33.1"]);
    }
}
