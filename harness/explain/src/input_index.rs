//! Lookups in the input of an explanation. A list of all events of a large cluster has more than
//! 100,000 items, so none of them is searched for each pod.

use std::collections::{HashMap, HashSet};

use evictlab_rules::{EvictedEvent, KubeletVersion};

use crate::input::Input;
use crate::objects::{Event, Pod};
use crate::stated_version::StatedVersion;

/// Namespace and name of a pod.
pub(crate) type PodKey<'a> = (&'a str, &'a str);

/// Objects of an [`Input`] by the fields that connect them.
#[derive(Default)]
pub(crate) struct InputIndex<'a> {
    /// Evicted events, oldest first, as in the lists below.
    evicted: Vec<&'a EvictedEvent>,
    evicted_by_pod: HashMap<PodKey<'a>, Vec<&'a EvictedEvent>>,
    evicted_by_uid: HashMap<&'a str, Vec<&'a EvictedEvent>>,
    /// UIDs and names of the pods of the input.
    pods: PodNames<'a>,
    /// The input; `None` only by default.
    input: Option<&'a Input>,
    /// Names of nodes in the first Evicted event of each pod.
    hosts: HashMap<PodKey<'a>, Option<&'a str>>,
    /// Components other than the kubelet that evicted a pod, by pod and message.
    evictors: HashMap<(PodKey<'a>, &'a str), &'a str>,
    versions: HashMap<&'a str, KubeletVersion>,
}

/// Pods as events refer to them: by UID, or by name if either side has none.
#[derive(Default)]
struct PodNames<'a> {
    uids: HashSet<&'a str>,
    all: HashSet<PodKey<'a>>,
    without_uid: HashSet<PodKey<'a>>,
}

impl<'a> InputIndex<'a> {
    pub(crate) fn of(input: &'a Input) -> Self {
        let mut index = Self { evicted: distinct(&input.evicted), input: Some(input), ..Self::default() };
        index.evicted.sort_by_key(|event| event.at);
        for event in &index.evicted {
            index.evicted_by_pod.entry(pod_of(event)).or_default().push(event);
            index.evicted_by_uid.entry(&event.uid).or_default().push(event);
        }
        for event in &input.evicted_sources {
            let object = &event.involved_object;
            let namespace = object.namespace.as_deref().unwrap_or_default();
            let name = object.name.as_deref().unwrap_or_default();
            match event.component().filter(|component| *component != "kubelet") {
                Some(component) => {
                    let message = event.message.as_deref().unwrap_or_default();
                    index.evictors.insert(((namespace, name), message), component);
                }
                None => drop(index.hosts.entry((namespace, name)).or_insert_with(|| host(event))),
            }
        }
        for pod in &input.pods {
            index.pods.add(pod);
        }
        for node in &input.nodes {
            let version = node.status.node_info.kubelet_version.as_ref();
            let version = version.and_then(|version| version.parse().ok());
            if let (Some(name), Some(version)) = (&node.metadata.name, version) {
                index.versions.entry(name).or_insert(version);
            }
        }
        index
    }

    /// Returns the evictions of a pod, oldest first.
    pub(crate) fn evictions_of(&self, pod: &Pod) -> Vec<EvictedEvent> {
        let named = self.evicted_by_pod.get(&key_of(pod)).into_iter().flatten();
        match pod.metadata.uid.as_deref() {
            None => named.map(|event| (*event).clone()).collect(),
            Some(uid) => {
                let by_uid = self.evicted_by_uid.get(uid).into_iter().flatten();
                let without_uid = named.filter(|event| event.uid.is_empty() && !uid.is_empty());
                let mut events: Vec<EvictedEvent> =
                    by_uid.chain(without_uid).map(|event| (*event).clone()).collect();
                events.sort_by_key(|event| event.at);
                events
            }
        }
    }

    /// Returns the evictions of the pods that the input does not contain, by pod, each oldest
    /// first; pods in the order of their first eviction.
    pub(crate) fn evictions_without_pod(&self) -> Vec<&[&'a EvictedEvent]> {
        let mut explained = HashSet::new();
        let others = self.evicted.iter().copied().filter(|event| !self.pods.contain(event)).map(pod_of);
        others.filter(|key| explained.insert(*key)).map(|key| self.evicted_by_pod[&key].as_slice()).collect()
    }

    /// Returns whether a kubelet sent other events about the pod.
    pub(crate) fn has_other_events(&self, pod: &Pod) -> bool {
        self.input.is_some_and(|input| input.other_kubelet_events.contains(&pod.metadata.uid))
    }

    /// Returns the node that reported the first eviction of a pod.
    pub(crate) fn host_of(&self, event: &EvictedEvent) -> Option<&'a str> {
        self.hosts.get(&pod_of(event)).copied().flatten()
    }

    /// Returns the component that evicted a pod, if it is known and not the kubelet.
    pub(crate) fn evictor_of(&self, event: &EvictedEvent) -> Option<&'a str> {
        self.evictors.get(&(pod_of(event), event.message.as_str())).copied()
    }

    /// Returns the kubelet version of a node.
    pub(crate) fn version_of(&self, node: Option<&str>) -> Option<StatedVersion> {
        self.versions.get(node?).cloned().map(StatedVersion::from)
    }
}

impl<'a> PodNames<'a> {
    fn add(&mut self, pod: &'a Pod) {
        self.all.insert(key_of(pod));
        match pod.metadata.uid.as_deref() {
            Some(uid) => self.uids.insert(uid),
            None => self.without_uid.insert(key_of(pod)),
        };
    }

    fn contain(&self, event: &EvictedEvent) -> bool {
        match event.uid.as_str() {
            "" => self.all.contains(&pod_of(event)),
            uid => self.uids.contains(uid) || self.without_uid.contains(&pod_of(event)),
        }
    }
}

/// Returns each event once: an input may contain several versions of it, as of a watch, or the
/// event in both API groups. They have the same time and message.
fn distinct(events: &[EvictedEvent]) -> Vec<&EvictedEvent> {
    let mut seen = HashSet::new();
    let mut distinct: Vec<&EvictedEvent> = events.iter().collect();
    distinct.retain(|event| {
        event.at.is_none_or(|at| seen.insert((pod_of(event), &event.uid, at, &event.message)))
    });
    distinct
}

fn pod_of(event: &EvictedEvent) -> PodKey<'_> {
    (&event.namespace, &event.pod)
}

fn key_of(pod: &Pod) -> PodKey<'_> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    (pod.metadata.namespace.as_deref().unwrap_or_default(), name)
}

fn host(event: &Event) -> Option<&str> {
    let hosts = [&event.source.host, &event.reporting_instance];
    hosts.into_iter().find_map(|host| host.as_deref().filter(|host| !host.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_an_event_are_one_event() {
        let event = |name: &str, message: &str, count: u32| {
            format!(
                "{{kind: Event, metadata: {{name: a.{name}}}, reason: Evicted, message: {message}, count: {count}, \
                 involvedObject: {{kind: Pod, namespace: x, name: a, uid: u1}}}}\n---\n"
            )
        };
        let (first, second) = ("187f000000000001", "187f000000000002");
        let rows = [
            (event(first, "low", 1) + &event(first, "low", 2), 1),
            (event(first, "low", 1) + &event(second, "low", 1), 2),
            (event(first, "low", 1) + &event(first, "lower", 1), 2),
            // Without a time, events cannot be told from versions of one event.
            (event("1", "low", 1) + &event("2", "low", 1), 2),
        ];
        for (events, count) in rows {
            let pod = "{kind: Pod, metadata: {name: a, namespace: x, uid: u1}}";
            let input = Input::read(&(events.clone() + pod)).unwrap();
            let index = InputIndex::of(&input);
            assert_eq!(index.evictions_of(&input.pods[0]).len(), count, "{events}");
        }
    }

    #[test]
    fn connects_pods_events_and_nodes() {
        let input = Input::read(
            "
kind: List
items:
- {kind: Pod, metadata: {name: a, namespace: x, uid: u1}}
- {kind: Pod, metadata: {name: b, namespace: x}}
- {kind: Event, reason: Evicted, message: first, involvedObject: {kind: Pod, namespace: x, name: a, uid: u1}, source: {host: n1}}
- {kind: Event, reason: Evicted, message: replaced, involvedObject: {kind: Pod, namespace: x, name: a, uid: u0}}
- {kind: Event, reason: Evicted, message: nameless, involvedObject: {kind: Pod, namespace: x, name: a}}
- {kind: Event, reason: Evicted, message: b, involvedObject: {kind: Pod, namespace: x, name: b, uid: u2}}
- {kind: Event, reason: Evicted, message: elsewhere, involvedObject: {kind: Pod, namespace: y, name: a, uid: u3}, source: {host: n2}}
- {kind: Event, reason: Killing, involvedObject: {kind: Pod, namespace: x, name: a, uid: u1}, source: {component: kubelet}}
- {kind: Node, metadata: {name: n2}, status: {nodeInfo: {kubeletVersion: v1.33.1}}}
",
        )
        .unwrap();
        let index = InputIndex::of(&input);
        let messages = |pod: usize| {
            index.evictions_of(&input.pods[pod]).iter().map(|event| event.message.clone()).collect::<Vec<_>>()
        };
        assert_eq!(messages(0), ["first", "nameless"]);
        assert_eq!(messages(1), ["b"]);
        assert!(index.has_other_events(&input.pods[0]) && !index.has_other_events(&input.pods[1]));
        let without: Vec<Vec<&str>> = index
            .evictions_without_pod()
            .iter()
            .map(|events| events.iter().map(|event| event.message.as_str()).collect())
            .collect();
        assert_eq!(without, [vec!["first", "replaced", "nameless"], vec!["elsewhere"]]);
        let [.., elsewhere] = &input.evicted[..] else { panic!() };
        assert_eq!(
            index.host_of(elsewhere),
            Some("n2"),
            "pods of one name in two namespaces are different pods"
        );
        assert_eq!(index.version_of(Some("n2")).unwrap().version().minor, 33);
    }
}
