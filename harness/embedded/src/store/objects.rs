//! The store itself.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Weak};

use rand::RngExt;
use rand_chacha::rand_core::SeedableRng;
use serde_json::{Value, json};

use super::{Feed, Kind, Scope};
use crate::time::{Epoch, Time};
use crate::world::Rng;

/// How many changes are remembered for those who begin to watch.
const HISTORY: usize = 512;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was made.
    Added,
    /// It was changed.
    Modified,
    /// It was removed.
    Deleted,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The version of the store since this change.
    pub version: u64,
    /// What happened.
    pub what: ChangeKind,
    /// The object's kind.
    pub kind: Kind,
    /// The object since then; of a removed one, its last state with the version of its removal.
    pub object: Arc<Value>,
    /// The object before, if there was one.
    pub before: Option<Arc<Value>>,
}

/// A version that is no longer remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld {
    /// The oldest version from which changes can be told.
    pub oldest: u64,
}

/// Why an object could not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is one of this name.
    Exists,
    /// There is none of this name.
    Missing,
    /// It has another `resourceVersion` than was stated.
    Conflict,
}

/// The objects and their last changes.
pub struct Store {
    /// What the calendar says when the cluster begins.
    pub epoch: Epoch,
    /// By namespace and name.
    objects: BTreeMap<Kind, BTreeMap<String, BTreeMap<String, Arc<Value>>>>,
    version: u64,
    history: VecDeque<Change>,
    rng: Rng,
    feeds: BTreeMap<Kind, Vec<Weak<Feed>>>,
}

impl Store {
    /// An empty store. Uids and generated names come from the seed.
    pub fn new(seed: u64, epoch: Epoch) -> Self {
        Self {
            epoch,
            objects: BTreeMap::new(),
            version: 1,
            history: VecDeque::new(),
            rng: Rng::seed_from_u64(seed ^ 0x5eed),
            feeds: BTreeMap::new(),
        }
    }

    /// The version after the last change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Tells what happens from now on to the objects of a kind, in one namespace or in all, for as long as somebody has the feed.
    pub fn watch(&mut self, kind: Kind, namespace: Option<&str>) -> Arc<Feed> {
        let feed = Arc::new(Feed::new(namespace.map(str::to_owned)));
        self.feeds.entry(kind).or_default().push(Arc::downgrade(&feed));
        feed
    }

    /// An object; the namespace is empty for kinds that live in none.
    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.objects.get(&kind)?.get(namespace)?.get(name)
    }

    /// All objects of a kind, or those of one namespace, by namespace and name.
    pub fn list<'a>(
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

    /// Puts a new object in. It gets `uid`, `creationTimestamp` and `resourceVersion`, a name if it has only `generateName`, and `kind` and
    /// `apiVersion`.
    pub fn create(&mut self, kind: Kind, mut object: Value, now: Time) -> Result<Arc<Value>, Trouble> {
        let (name, version) = kind.names();
        object["kind"] = json!(name);
        object["apiVersion"] = json!(version);
        let generated = object["metadata"]["generateName"].as_str().map(|prefix| self.generated(prefix));
        let metadata = &mut object["metadata"];
        if metadata["name"].as_str().is_none_or(str::is_empty) {
            metadata["name"] = json!(generated.unwrap_or_default());
        }
        // One whose parts name it has its uid already.
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(self.uid());
        }
        metadata["creationTimestamp"] = json!(self.epoch.seconds(now));
        let (namespace, name) = key(kind, &object);
        if self.get(kind, namespace, name).is_some() {
            return Err(Trouble::Exists);
        }
        Ok(self.put(kind, object, None))
    }

    /// Replaces an object. `resourceVersion`, where the new one states it, must be that of the old one. Nothing happens when nothing changes.
    pub fn replace(&mut self, kind: Kind, object: Value) -> Result<Arc<Value>, Trouble> {
        let (namespace, name) = key(kind, &object);
        let old = self.get(kind, namespace, name).cloned().ok_or(Trouble::Missing)?;
        let stated = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if !stated.is_empty() && old["metadata"]["resourceVersion"] != stated {
            return Err(Trouble::Conflict);
        }
        let mut object = object;
        object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        if object == *old {
            return Ok(old);
        }
        Ok(self.put(kind, object, Some(old)))
    }

    /// Changes an object in place.
    pub fn update(
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

    /// Takes an object out; the answer is its last state.
    pub fn remove(&mut self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let all = self.objects.get_mut(&kind)?;
        let named = all.get_mut(namespace)?;
        let old = named.remove(name)?;
        if named.is_empty() {
            all.remove(namespace);
        }
        self.version += 1;
        let mut last = Value::clone(&old);
        last["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let last = Arc::new(last);
        self.remember(Change {
            version: self.version,
            what: ChangeKind::Deleted,
            kind,
            object: last.clone(),
            before: Some(old),
        });
        Some(last)
    }

    /// The changes after a version, in order.
    pub fn since(&self, version: u64) -> Result<impl Iterator<Item = &Change>, TooOld> {
        let oldest = self.history.front().map_or(self.version, |change| change.version - 1);
        if version < oldest {
            return Err(TooOld { oldest });
        }
        let skip = self.history.partition_point(|change| change.version <= version);
        Ok(self.history.range(skip..))
    }

    /// Forgets all changes so far: whoever watches, or begins to from an older version, is told that it is too old.
    pub fn forget_history(&mut self) {
        self.history.clear();
        self.version += 1;
        self.feeds.values().flatten().filter_map(Weak::upgrade).for_each(|feed| feed.lose());
    }

    /// A new uid.
    pub fn uid(&mut self) -> String {
        let mut bytes: [u8; 16] = self.rng.random();
        // RFC 9562: version 4, variant 1.
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(hex).join("-")
    }

    /// A name from a prefix, as `generateName` makes it.
    pub fn generated(&mut self, prefix: &str) -> String {
        // apimachinery's util/rand: letters and digits that make no words.
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let letter = |_| char::from(LETTERS[self.rng.random_range(0..LETTERS.len())]);
        let end: String = (0..5).map(letter).collect();
        let prefix: String = prefix.chars().take(58).collect();
        prefix + &end
    }

    fn put(&mut self, kind: Kind, mut object: Value, before: Option<Arc<Value>>) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        let (namespace, name) = key(kind, &object);
        let all = self.objects.entry(kind).or_default();
        all.entry(namespace.to_owned()).or_default().insert(name.to_owned(), object.clone());
        let what = if before.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.remember(Change { version: self.version, what, kind, object: object.clone(), before });
        object
    }

    fn remember(&mut self, change: Change) {
        let (namespace, _) = key(change.kind, &change.object);
        if let Some(feeds) = self.feeds.get_mut(&change.kind) {
            feeds.retain(|feed| {
                let feed = feed.upgrade();
                feed.inspect(|feed| feed.tell(namespace, &change)).is_some()
            });
        }
        self.history.push_back(change);
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
    }
}

/// The namespace, empty for kinds that live in none, and the name.
fn key(kind: Kind, object: &Value) -> (&str, &str) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match kind.scope() {
        Scope::Namespaced => (text("namespace"), text("name")),
        Scope::Cluster => ("", text("name")),
    }
}
