//! The controllers of what makes pods: deployments, replica sets and jobs.
//!
//! Each has a queue of objects to look at, as the real ones have; here it is one queue, in order of time.

mod deployment;
mod job;
mod pods;
mod replica_set;
mod rollout;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::events::Recorder;
use super::{ControlEvent, at, meta};
use crate::store::{Change, ChangeKind, Kind};
use crate::time::Time;
use crate::world::Ctx;

/// How long a controller takes to get to an object.
const SOON: Duration = Duration::from_millis(5);

/// How long the job controller gathers what happens to the pods of a job (`syncJobBatchPeriod`).
const BATCH: Duration = Duration::from_secs(1);

/// An object of a controller. A pod stands for itself when its job no longer wants it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    kind: Kind,
    namespace: String,
    name: String,
}

impl Key {
    fn of(kind: Kind, object: &Value) -> Self {
        Self { kind, namespace: meta(object, "namespace").to_owned(), name: meta(object, "name").to_owned() }
    }
}

/// What the controllers have to look at, and what they remember.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    /// When an object is looked at next.
    due: BTreeMap<Key, Time>,
    /// How often in a row something could not be done for an object.
    failures: BTreeMap<Key, u32>,
    backoffs: job::Backoffs,
}

impl Workloads {
    /// Something has changed.
    pub(super) fn changed(&mut self, change: &Change, ctx: &mut Ctx) {
        let object = &change.object;
        match change.kind {
            Kind::Deployment => self.ask(Key::of(Kind::Deployment, object), SOON, ctx),
            Kind::ReplicaSet => {
                self.ask(Key::of(Kind::ReplicaSet, object), SOON, ctx);
                self.ask_owners(change, Kind::Deployment, SOON, ctx);
            }
            Kind::Job => self.job_changed(change, ctx),
            Kind::Pod => self.pod_changed(change, ctx),
            _ => {}
        }
    }

    /// An object's time has come, unless it was changed.
    pub(super) fn due(&mut self, key: &Key, recorder: &mut Recorder, ctx: &mut Ctx) {
        if self.due.get(key).is_none_or(|due| ctx.now < *due) {
            return;
        }
        self.due.remove(key);
        let object = ctx.store.get(key.kind, &key.namespace, &key.name).cloned();
        let Some(object) = object else {
            self.failures.remove(key);
            self.backoffs.forget(&key.namespace, &key.name);
            return;
        };
        let next = match key.kind {
            Kind::Deployment => deployment::sync(&object, recorder, ctx),
            Kind::ReplicaSet => replica_set::sync(&object, recorder, ctx),
            Kind::Job => job::sync(&object, &mut self.backoffs, recorder, ctx),
            _ => {
                job::let_go(&object, ctx);
                Ok(None)
            }
        };
        match next {
            Ok(next) => {
                self.failures.remove(key);
                if let Some(wait) = next {
                    self.ask(key.clone(), wait, ctx);
                }
            }
            Err(Failed) => {
                // `DefaultTypedControllerRateLimiter`: 5 ms, doubled each time, 1000 s at most.
                const MOST: Duration = Duration::from_secs(1000);
                let times = self.failures.entry(key.clone()).or_default();
                let wait = SOON.saturating_mul(1 << (*times).min(20)).min(MOST);
                *times += 1;
                self.ask(key.clone(), wait, ctx);
            }
        }
    }

    fn pod_changed(&mut self, change: &Change, ctx: &mut Ctx) {
        let pod = &change.object;
        self.ask_owners(change, Kind::ReplicaSet, SOON, ctx);
        self.ask_owners(change, Kind::Job, BATCH, ctx);
        if job::is_tracked(pod) && change.what != ChangeKind::Deleted && !job::is_wanted(pod, ctx) {
            self.ask(Key::of(Kind::Pod, pod), SOON, ctx);
        }
        if controller(pod).is_none() && change.what != ChangeKind::Deleted {
            for (kind, wait) in [(Kind::ReplicaSet, SOON), (Kind::Job, BATCH)] {
                let all = ctx.store.list(kind, Some(meta(pod, "namespace")));
                let mine: Vec<Key> =
                    all.filter(|owner| pods::selects(owner, pod)).map(|owner| Key::of(kind, owner)).collect();
                mine.into_iter().for_each(|key| self.ask(key, wait, ctx));
            }
        }
    }

    fn job_changed(&mut self, change: &Change, ctx: &mut Ctx) {
        let job = &change.object;
        let spec = |job: &Value| job["metadata"]["generation"].clone();
        let same = change.before.as_ref().is_some_and(|before| spec(before) == spec(job));
        let gone = change.what == ChangeKind::Deleted;
        self.ask(Key::of(Kind::Job, job), if same && !gone { BATCH } else { SOON }, ctx);
        if gone || job::is_finished(job) {
            let all = ctx.store.list(Kind::Pod, Some(meta(job, "namespace")));
            let left = all.filter(|pod| job::is_tracked(pod) && owned_by(pod, meta(job, "uid")));
            let left: Vec<Key> = left.map(|pod| Key::of(Kind::Pod, pod)).collect();
            left.into_iter().for_each(|key| self.ask(key, SOON, ctx));
        }
    }

    /// Has the controllers of a kind look that control an object, or did before.
    fn ask_owners(&mut self, change: &Change, kind: Kind, wait: Duration, ctx: &mut Ctx) {
        let namespace = meta(&change.object, "namespace");
        for object in [Some(&change.object), change.before.as_ref()].into_iter().flatten() {
            let Some(owner) = controller(object) else { continue };
            let name = owner["name"].as_str().unwrap_or_default();
            if owner["kind"] == kind.names().0
                && ctx
                    .store
                    .get(kind, namespace, name)
                    .is_some_and(|own| own["metadata"]["uid"] == owner["uid"])
            {
                let key = Key { kind, namespace: namespace.to_owned(), name: name.to_owned() };
                self.ask(key, wait, ctx);
            }
        }
    }

    /// Asks for an object to be looked at, if that is sooner than what was asked for.
    fn ask(&mut self, key: Key, wait: Duration, ctx: &mut Ctx) {
        let due = ctx.now + wait;
        if self.due.get(&key).is_none_or(|asked| due < *asked) {
            self.due.insert(key.clone(), due);
            at(ctx, due, ControlEvent::Workload(key));
        }
    }
}

/// Something could not be done; it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failed;

/// When an object is to be looked at again without anything happening.
type Next = Result<Option<Duration>, Failed>;

/// The reference to an object's controller (`metav1.GetControllerOf`).
fn controller(object: &Value) -> Option<&Value> {
    object["metadata"]["ownerReferences"].as_array()?.iter().find(|owner| owner["controller"] == true)
}

/// Whether an object is controlled by that of a uid.
fn owned_by(object: &Value, uid: &str) -> bool {
    controller(object).is_some_and(|owner| owner["uid"] == uid)
}

/// A reference by which an object is controlled (`metav1.NewControllerRef`).
fn reference(kind: Kind, owner: &Value) -> Value {
    let (name, version) = kind.names();
    json!({
        "apiVersion": version,
        "kind": name,
        "name": meta(owner, "name"),
        "uid": meta(owner, "uid"),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// A reference to an object in an event.
fn about(kind: Kind, object: &Value) -> Value {
    let (name, version) = kind.names();
    json!({
        "kind": name,
        "namespace": object["metadata"]["namespace"],
        "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"],
        "apiVersion": version,
        "resourceVersion": object["metadata"]["resourceVersion"],
    })
}

/// A number of an object's; 0 if it is absent.
fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// Sets a count of a status, where the API does not tell none.
fn count(status: &mut Value, field: &str, count: i64) {
    if count != 0 {
        status[field] = json!(count);
    } else if let Some(fields) = status.as_object_mut() {
        fields.shift_remove(field);
    }
}

/// How long ago something was, by its time in an object; nothing if that is none.
fn age(time: &Value, ctx: &Ctx) -> Option<Duration> {
    let then: jiff::Timestamp = time.as_str()?.parse().ok()?;
    Some(Duration::try_from(ctx.epoch().at(ctx.now).duration_since(then)).unwrap_or_default())
}
