//! Store of objects and of their last changes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Weak};

use rand::RngExt;
use rand_chacha::rand_core::SeedableRng;
use serde_json::{Value, json};

use super::change::{ObjectChange, WatchEventType};
use super::index::Index;
use super::watch_channel::{WatchChannel, WatchEnd};
use crate::resource::{Kind, ObjectExt, Scope};
use crate::sim::{Epoch, Rng, SimTime};

/// Number of changes that new watches can resume from.
const MAX_REMEMBERED_CHANGES: usize = 512;

/// A version is older than the remembered changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResourceExpired {
    /// Oldest version whose later changes are remembered.
    pub oldest: u64,
}

/// Reason why an object was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreError {
    /// An object of this name exists.
    Exists,
    /// No object of this name exists.
    Missing,
    /// The object has another `resourceVersion`.
    Conflict,
}

/// Letters and digits that do not form words (apimachinery's `util/rand`).
pub(crate) const SAFE_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Objects and their last changes.
pub(crate) struct Store {
    /// Calendar time of the simulation's start.
    pub epoch: Epoch,
    /// Objects by kind, namespace and name.
    objects: BTreeMap<Kind, BTreeMap<String, BTreeMap<String, Arc<Value>>>>,
    index: Index,
    version: u64,
    history: VecDeque<ObjectChange>,
    rng: Rng,
    channels: BTreeMap<Kind, Vec<Weak<WatchChannel>>>,
}

impl Store {
    /// Creates an empty store. Uids and generated names derive from the seed.
    pub(crate) fn new(seed: u64, epoch: Epoch) -> Self {
        Self {
            epoch,
            objects: BTreeMap::new(),
            index: Index::default(),
            version: 1,
            history: VecDeque::new(),
            rng: Rng::seed_from_u64(seed ^ 0x5eed),
            channels: BTreeMap::new(),
        }
    }

    /// Returns the version after the last change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Opens a channel with the later changes of a kind, in one namespace or in all. Dropping the
    /// channel closes it.
    pub(crate) fn watch(&mut self, kind: Kind, namespace: Option<&str>) -> Arc<WatchChannel> {
        let channel = Arc::new(WatchChannel::new(namespace.map(str::to_owned)));
        self.channels.entry(kind).or_default().push(Arc::downgrade(&channel));
        channel
    }

    /// Ends the open watches of the selected kinds and namespaces; `None` is a watch of all
    /// namespaces.
    pub(crate) fn end_watches(&self, end: WatchEnd, selects: impl Fn(Kind, Option<&str>) -> bool) {
        for (kind, channels) in &self.channels {
            let open = channels.iter().filter_map(Weak::upgrade);
            open.filter(|channel| selects(*kind, channel.namespace())).for_each(|channel| channel.end(end));
        }
    }

    /// Returns an object; the namespace is empty for cluster-scoped kinds.
    pub(crate) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.objects.get(&kind)?.get(namespace)?.get(name)
    }

    /// Lists the objects of a kind, in one namespace or in all, by namespace and name.
    pub(crate) fn list<'a>(
        &'a self,
        kind: Kind,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Value>> {
        let chosen = match namespace {
            Some(namespace) => (Bound::Included(namespace), Bound::Included(namespace)),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let namespaces = self.objects.get(&kind).into_iter();
        namespaces.flat_map(move |all| all.range::<str, _>(chosen)).flat_map(|(_, named)| named.values())
    }

    /// Lists the pods that are bound to a node, by namespace and name.
    pub(crate) fn pods_on<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a Arc<Value>> + use<'a> {
        let keys = self.index.pods_on(node);
        keys.filter_map(|(namespace, name)| self.get(Kind::Pod, namespace, name))
    }

    /// Lists the objects that refer to the uid of an owner, by kind, namespace and name. Events and
    /// leases are ignored.
    pub(crate) fn dependents<'a>(
        &'a self,
        uid: &str,
    ) -> impl Iterator<Item = (Kind, &'a Arc<Value>)> + use<'a> {
        let keys = self.index.dependents(uid);
        keys.filter_map(|(kind, (namespace, name))| Some((*kind, self.get(*kind, namespace, name)?)))
    }

    /// Returns the distinct kubelet versions of the nodes.
    pub(crate) fn kubelet_versions(&self) -> impl Iterator<Item = &str> {
        self.index.kubelet_versions()
    }

    /// Stores a new object. Sets `kind`, `apiVersion`, `uid`, `creationTimestamp` and
    /// `resourceVersion`, and generates a name from `generateName`.
    pub(crate) fn create(
        &mut self,
        kind: Kind,
        mut object: Value,
        now: SimTime,
    ) -> Result<Arc<Value>, StoreError> {
        let (name, version) = kind.names();
        object.write("kind", name);
        object.write("apiVersion", version);
        let metadata = object.metadata_mut();
        let generated =
            metadata.get("generateName").and_then(Value::as_str).map(|prefix| self.generated(prefix));
        metadata.set_default("name", json!(generated.unwrap_or_default()));
        // An object whose template refers to its uid already has one.
        if metadata.get("uid").is_none_or(Value::is_null) {
            metadata.write("uid", self.uid());
        }
        metadata.write("creationTimestamp", self.epoch.meta_time(now));
        let (namespace, name) = key(kind, &object);
        if self.get(kind, namespace, name).is_some() {
            return Err(StoreError::Exists);
        }
        Ok(self.put(kind, object, None))
    }

    /// Replaces an object. A `resourceVersion` in the new object must match the stored one. An
    /// equal object does not make a change.
    pub(crate) fn replace(&mut self, kind: Kind, object: Value) -> Result<Arc<Value>, StoreError> {
        let (namespace, name) = key(kind, &object);
        let old = self.get(kind, namespace, name).cloned().ok_or(StoreError::Missing)?;
        let stated = object.resource_version();
        if !stated.is_empty() && old.resource_version() != stated {
            return Err(StoreError::Conflict);
        }
        let mut object = object;
        object.metadata_mut().write("resourceVersion", old.resource_version());
        if object == *old {
            return Ok(old);
        }
        Ok(self.put(kind, object, Some(old)))
    }

    /// Applies a change to an object; `None` if the object does not exist.
    pub(crate) fn update(
        &mut self,
        kind: Kind,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Option<Arc<Value>> {
        let mut object = Value::clone(self.get(kind, namespace, name)?);
        change(&mut object);
        self.replace(kind, object).ok()
    }

    /// Removes an object and returns its last state.
    pub(crate) fn remove(&mut self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let all = self.objects.get_mut(&kind)?;
        let named = all.get_mut(namespace)?;
        let old = named.remove(name)?;
        if named.is_empty() {
            all.remove(namespace);
        }
        self.version += 1;
        let mut last = Value::clone(&old);
        last.metadata_mut().write("resourceVersion", self.version.to_string());
        let last = Arc::new(last);
        self.remember(ObjectChange {
            version: self.version,
            event_type: WatchEventType::Deleted,
            kind,
            object: last.clone(),
            before: Some(old),
        });
        Some(last)
    }

    /// Returns the changes after a version, in order.
    pub(crate) fn since(&self, version: u64) -> Result<impl Iterator<Item = &ObjectChange>, ResourceExpired> {
        let oldest = self.history.front().map_or(self.version, |change| change.version - 1);
        if version < oldest {
            return Err(ResourceExpired { oldest });
        }
        let skip = self.history.partition_point(|change| change.version <= version);
        Ok(self.history.range(skip..))
    }

    /// Drops the remembered changes, as etcd's compaction does: open watches and watches of older
    /// versions expire.
    #[cfg(test)]
    pub(crate) fn forget_history(&mut self) {
        self.history.clear();
        self.version += 1;
        self.end_watches(WatchEnd::Expired, |_, _| true);
    }

    /// Generates a uid.
    pub(crate) fn uid(&mut self) -> String {
        let mut bytes: [u8; 16] = self.rng.random();
        // RFC 9562: version 4, variant 1.
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(hex).join("-")
    }

    /// Generates a name from a prefix (`generateName`).
    pub(crate) fn generated(&mut self, prefix: &str) -> String {
        let letter = |_| char::from(SAFE_LETTERS[self.rng.random_range(0..SAFE_LETTERS.len())]);
        let end: String = (0..5).map(letter).collect();
        let prefix: String = prefix.chars().take(58).collect();
        prefix + &end
    }

    fn put(&mut self, kind: Kind, mut object: Value, before: Option<Arc<Value>>) -> Arc<Value> {
        self.version += 1;
        object.metadata_mut().write("resourceVersion", self.version.to_string());
        let object = Arc::new(object);
        let (namespace, name) = key(kind, &object);
        let all = self.objects.entry(kind).or_default();
        all.entry(namespace.to_owned()).or_default().insert(name.to_owned(), object.clone());
        let event_type = if before.is_some() { WatchEventType::Modified } else { WatchEventType::Added };
        self.remember(ObjectChange {
            version: self.version,
            event_type,
            kind,
            object: object.clone(),
            before,
        });
        object
    }

    fn remember(&mut self, change: ObjectChange) {
        let (namespace, name) = key(change.kind, &change.object);
        self.index.update((namespace, name), &change);
        if let Some(channels) = self.channels.get_mut(&change.kind) {
            channels.retain(|channel| {
                let channel = channel.upgrade();
                channel.inspect(|channel| channel.send(namespace, &change)).is_some()
            });
        }
        self.history.push_back(change);
        if self.history.len() > MAX_REMEMBERED_CHANGES {
            self.history.pop_front();
        }
    }
}

/// Returns namespace, empty for cluster-scoped kinds, and name.
fn key(kind: Kind, object: &Value) -> (&str, &str) {
    match kind.scope() {
        Scope::Namespaced => (object.namespace(), object.name()),
        Scope::Cluster => ("", object.name()),
    }
}
