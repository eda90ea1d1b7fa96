//! Deployments: a replica set for each template, and the way from one to the next (`pkg/controller/deployment`).
//!
//! Not here: pausing, rolling back, and scaling in the midst of a roll-out in proportion, which is taken as part of it.

use std::hash::Hasher;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::events::{Recorder, Weight};
use super::super::{has_ended, meta};
use super::pods::Owner;
use super::{Failed, Next, controller, number, owned_by, reference, rollout};
use crate::registry::share::{Round, scaled};
use crate::registry::{self, Create, DeleteOptions, Status, control_plane, selector};
use crate::store::Kind;
use crate::world::Ctx;

/// The label that tells the sets of a deployment apart.
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MOST: &str = "deployment.kubernetes.io/max-replicas";

/// A deployment with its replica sets.
pub(super) struct Deployment<'a> {
    pub(super) owner: Owner<'a>,
    /// The set of its template, once there is one.
    pub(super) new: Option<Arc<Value>>,
    /// Those of older templates, the oldest first.
    pub(super) old: Vec<Arc<Value>>,
}

/// Brings a deployment one step on.
pub(super) fn sync(object: &Value, recorder: &mut Recorder, ctx: &mut Ctx) -> Next {
    let owner = Owner { kind: Kind::Deployment, object, component: "deployment-controller" };
    let mut deployment = Deployment::read(owner, ctx);
    let deleting = !object["metadata"]["deletionTimestamp"].is_null();
    if !deleting && object["spec"]["paused"] != true {
        let recreate = object["spec"]["strategy"]["type"] == "Recreate";
        if recreate {
            deployment.recreate(recorder, ctx)?
        } else {
            deployment.roll(recorder, ctx)?
        }
        deployment.note_revision(ctx);
    }
    Ok(rollout::tell(&deployment, ctx))
}

impl<'a> Deployment<'a> {
    /// With the sets that it controls; those that it selects and nobody controls become its own.
    fn read(owner: Owner<'a>, ctx: &mut Ctx) -> Self {
        let (object, namespace) = (owner.object, meta(owner.object, "namespace"));
        let wanted = |set: &Value| selector::matches(&object["spec"]["selector"], &set["metadata"]["labels"]);
        let orphans = ctx.store.list(Kind::ReplicaSet, Some(namespace));
        let orphans: Vec<_> =
            orphans.filter(|set| controller(set).is_none() && wanted(set)).cloned().collect();
        if object["metadata"]["deletionTimestamp"].is_null() {
            for set in orphans {
                ctx.store.update(Kind::ReplicaSet, namespace, meta(&set, "name"), |set| {
                    set["metadata"]["ownerReferences"] = json!([reference(Kind::Deployment, object)]);
                });
            }
        }
        let own = ctx.store.list(Kind::ReplicaSet, Some(namespace));
        let mut own: Vec<_> =
            own.filter(|set| owned_by(set, meta(object, "uid")) && wanted(set)).cloned().collect();
        own.sort_by_key(|set| (set["metadata"]["creationTimestamp"].to_string(), revision(set)));
        let same = |set: &Arc<Value>| without_hash(&set["spec"]["template"]) == object["spec"]["template"];
        let new = own.iter().position(same).map(|place| own.remove(place));
        Self { owner, new, old: own }
    }

    /// All its sets.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.old.iter().chain(&self.new)
    }

    /// How many pods it is to have.
    pub(super) fn wanted(&self) -> i64 {
        number(&self.owner.object["spec"]["replicas"])
    }

    /// How many pods more than wanted there may be for a while, and how many fewer (`ResolveFenceposts`).
    pub(super) fn slack(&self) -> (i64, i64) {
        let strategy = &self.owner.object["spec"]["strategy"];
        if strategy["type"] == "Recreate" {
            return (0, 0);
        }
        let amount = |field: &str, round| scaled(&strategy["rollingUpdate"][field], self.wanted(), round);
        let surge = amount("maxSurge", Round::Up).unwrap_or(0);
        let unavailable = amount("maxUnavailable", Round::Down).unwrap_or(0);
        match (surge, unavailable) {
            (0, 0) => (0, self.wanted().min(1)),
            (surge, unavailable) => (surge, unavailable.min(self.wanted())),
        }
    }

    /// `RollingUpdate`: more of the new, then fewer of the old (`rolloutRolling`).
    fn roll(&mut self, recorder: &mut Recorder, ctx: &mut Ctx) -> Result<(), Failed> {
        if self.new.is_none() {
            let replicas = self.room();
            return self.make(replicas, recorder, ctx);
        }
        let Some(new) = self.new.clone() else { return Ok(()) };
        let has = number(&new["spec"]["replicas"]);
        let more =
            if has > self.wanted() { self.wanted() } else { has + self.room().min(self.wanted() - has) };
        if self.scale(&new, more, recorder, ctx) {
            return Ok(());
        }
        self.shrink(&new, recorder, ctx);
        self.forget(ctx);
        Ok(())
    }

    /// `Recreate`: none of the old, then the new (`rolloutRecreate`).
    fn recreate(&mut self, recorder: &mut Recorder, ctx: &mut Ctx) -> Result<(), Failed> {
        let mut scaled = false;
        for set in self.old.clone() {
            scaled |= self.scale(&set, 0, recorder, ctx);
        }
        let runs = |set: &Arc<Value>| {
            let mut pods = ctx.store.list(Kind::Pod, Some(meta(set, "namespace")));
            number(&set["status"]["replicas"]) > 0
                || pods.any(|pod| owned_by(pod, meta(set, "uid")) && !has_ended(pod))
        };
        if scaled || self.old.iter().any(runs) {
            return Ok(());
        }
        match self.new.clone() {
            None => self.make(self.wanted(), recorder, ctx)?,
            Some(new) => {
                self.scale(&new, self.wanted(), recorder, ctx);
            }
        }
        self.forget(ctx);
        Ok(())
    }

    /// How many pods may be added (`NewRSNewReplicas`).
    fn room(&self) -> i64 {
        let now: i64 = self.all().map(|set| number(&set["spec"]["replicas"])).sum();
        (self.wanted() + self.slack().0 - now).clamp(0, self.wanted())
    }

    /// Takes pods from the old sets: first those that are not available, then as many as the new ones replace (`reconcileOldReplicaSets`).
    fn shrink(&self, new: &Value, recorder: &mut Recorder, ctx: &mut Ctx) {
        let least = self.wanted() - self.slack().1;
        let available = |set: &Value| number(&set["status"]["availableReplicas"]);
        let replicas = |set: &Value| number(&set["spec"]["replicas"]);
        let all: i64 = self.all().map(|set| replicas(set)).sum();
        let mut spare = all - least - (replicas(new) - available(new));
        if spare <= 0 {
            return;
        }
        let mut sizes: Vec<i64> = self.old.iter().map(|set| replicas(set)).collect();
        for (set, size) in self.old.iter().zip(&mut sizes) {
            let ill = (*size - available(set)).clamp(0, spare);
            *size -= ill;
            spare -= ill;
        }
        let mut replaced = (self.all().map(|set| available(set)).sum::<i64>() - least).max(0);
        for size in &mut sizes {
            let fewer = (*size).min(replaced);
            *size -= fewer;
            replaced -= fewer;
        }
        for (set, size) in self.old.iter().zip(sizes) {
            self.scale(set, size, recorder, ctx);
        }
    }

    /// Makes the set of the template.
    fn make(&mut self, replicas: i64, recorder: &mut Recorder, ctx: &mut Ctx) -> Result<(), Failed> {
        let object = self.owner.object;
        let hash = hash(&object["spec"]["template"], number(&object["status"]["collisionCount"]));
        let name = format!("{}-{hash}", meta(object, "name"));
        let revision = self.old.iter().map(|set| revision(set)).max().unwrap_or(0) + 1;
        let mut template = object["spec"]["template"].clone();
        template["metadata"]["labels"][HASH] = json!(hash);
        let mut selector = object["spec"]["selector"].clone();
        selector["matchLabels"][HASH] = json!(hash);
        let mut set = json!({
            "metadata": {
                "name": name,
                "labels": template["metadata"]["labels"],
                "annotations": self.annotations(revision),
                "ownerReferences": [reference(Kind::Deployment, object)],
            },
            "spec": {"replicas": replicas, "selector": selector, "template": template},
        });
        if object["spec"]["minReadySeconds"].is_number() {
            set["spec"]["minReadySeconds"] = object["spec"]["minReadySeconds"].clone();
        }
        let namespace = meta(object, "namespace");
        match registry::create(ctx, Kind::ReplicaSet, namespace, set, Create::default()) {
            Ok((set, _)) => {
                if replicas > 0 {
                    self.tell_scaled(&name, 0, replicas, true, recorder, ctx);
                }
                self.new = Some(set);
                Ok(())
            }
            Err(status) => self.cannot_make(&name, &status, recorder, ctx),
        }
    }

    fn cannot_make(
        &self,
        name: &str,
        status: &Status,
        recorder: &mut Recorder,
        ctx: &mut Ctx,
    ) -> Result<(), Failed> {
        let object = self.owner.object;
        if status.reason == "AlreadyExists" {
            // Another template has the same hash: the next try has another one.
            ctx.store.update(Kind::Deployment, meta(object, "namespace"), meta(object, "name"), |object| {
                object["status"]["collisionCount"] = json!(number(&object["status"]["collisionCount"]) + 1);
            });
        } else {
            let message = format!("Failed to create new replica set {name:?}: {}", status.message);
            self.owner.tell(Weight::Warning, "ReplicaSetCreateError", &message, recorder, ctx);
        }
        Err(Failed)
    }

    /// Changes how many pods a set is to have; tells whether it did.
    fn scale(&self, set: &Value, to: i64, recorder: &mut Recorder, ctx: &mut Ctx) -> bool {
        let from = number(&set["spec"]["replicas"]);
        if from == to {
            return false;
        }
        let annotations = self.annotations(revision(set));
        ctx.store.update(Kind::ReplicaSet, meta(set, "namespace"), meta(set, "name"), |set| {
            set["spec"]["replicas"] = json!(to);
            set["metadata"]["annotations"] = annotations;
            set["metadata"]["generation"] = json!(number(&set["metadata"]["generation"]) + 1);
        });
        self.tell_scaled(meta(set, "name"), from, to, false, recorder, ctx);
        true
    }

    fn tell_scaled(
        &self,
        set: &str,
        from: i64,
        to: i64,
        first: bool,
        recorder: &mut Recorder,
        ctx: &mut Ctx,
    ) {
        let way = if from < to { "up" } else { "down" };
        // Reworded in 1.32 (deployment/sync.go).
        let message = match (control_plane(ctx).at_least(32), first) {
            (true, _) => format!("Scaled {way} replica set {set} from {from} to {to}"),
            (false, true) => format!("Scaled {way} replica set {set} to {to}"),
            (false, false) => format!("Scaled {way} replica set {set} to {to} from {from}"),
        };
        self.owner.tell(Weight::Normal, "ScalingReplicaSet", &message, recorder, ctx);
    }

    /// What is written on a set: what its deployment says, and how many pods that wants.
    fn annotations(&self, revision: i64) -> Value {
        let mut all = self.owner.object["metadata"]["annotations"].clone();
        all[DESIRED] = json!(self.wanted().to_string());
        all[MOST] = json!((self.wanted() + self.slack().0).to_string());
        all[REVISION] = json!(revision.to_string());
        all
    }

    /// Deletes the oldest sets without pods, of which more are left than are to be remembered (`cleanupDeployment`).
    fn forget(&self, ctx: &mut Ctx) {
        let most = number(&self.owner.object["spec"]["revisionHistoryLimit"]);
        let extra = self.old.len().saturating_sub(usize::try_from(most).unwrap_or(0));
        for set in self.old.iter().take(extra) {
            let empty = number(&set["spec"]["replicas"]) == 0 && number(&set["status"]["replicas"]) == 0;
            if empty && rollout::is_complete(self) {
                let (namespace, name) = (meta(set, "namespace"), meta(set, "name"));
                // What is gone meanwhile is as good as deleted.
                let _ = registry::delete(ctx, Kind::ReplicaSet, namespace, name, DeleteOptions::default());
            }
        }
    }

    /// The deployment is of the revision of its newest set, whose revision is the highest.
    fn note_revision(&self, ctx: &mut Ctx) {
        let Some(new) = &self.new else { return };
        let (object, namespace) = (self.owner.object, meta(new, "namespace"));
        let newest = self.old.iter().map(|set| revision(set)).max().unwrap_or(0) + 1;
        let number = revision(new).max(newest);
        let stated = json!(number.to_string());
        if revision(new) != number {
            // An older template is back.
            ctx.store.update(Kind::ReplicaSet, namespace, meta(new, "name"), |set| {
                set["metadata"]["annotations"][REVISION] = stated.clone();
            });
        }
        ctx.store.update(Kind::Deployment, namespace, meta(object, "name"), |object| {
            object["metadata"]["annotations"][REVISION] = stated;
        });
    }
}

/// A set's revision.
fn revision(set: &Value) -> i64 {
    set["metadata"]["annotations"][REVISION].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn without_hash(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.shift_remove(HASH);
    }
    template
}

/// A name for a template. The real one hashes Go's memory; all that shows of it are letters as these (`SafeEncodeString`).
fn hash(template: &Value, collisions: i64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hasher = Fnv(0x811c_9dc5);
    hasher.write(template.to_string().as_bytes());
    if collisions > 0 {
        hasher.write(&collisions.to_le_bytes());
    }
    let digits = hasher.0.to_string();
    digits.bytes().map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()])).collect()
}

/// FNV-1a of 32 bits, as Go's `fnv.New32a`.
struct Fnv(u32);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0.into()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    }
}
