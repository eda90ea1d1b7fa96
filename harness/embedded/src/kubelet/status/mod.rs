//! What the kubelet tells of its node: the node object, its conditions, its lease.

mod conditions;
mod images;
mod lease;
mod register;

use rand::RngExt;
use serde_json::{Value, json};

pub use images::Images;

use self::conditions::Condition;
use super::recorder::About;
use super::{Identity, Kubelet, KubeletEvent};
use crate::agenda::Due;
use crate::machine::{Cgroup, Machine};
use crate::node::NodeEvent;
use crate::options::CgroupVersion;
use crate::registry::is_extended_resource;
use crate::store::Kind;
use crate::time::Time;
use crate::world::Ctx;

/// Something to be told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatusEvent {
    /// The node's status.
    Update,
    /// The lease.
    Lease,
}

/// What was told last.
#[derive(Clone, Debug, Default)]
pub struct NodeStatus {
    /// The images on the node.
    pub images: Images,
    /// When the status was written last.
    written: Option<Time>,
    update_due: Option<Time>,
    lease_due: Option<Time>,
}

impl NodeStatus {
    /// Nothing was told yet.
    pub fn new(identity: &Identity) -> Self {
        Self { images: Images::of_kind(&identity.version), ..Self::default() }
    }
}

impl Kubelet {
    pub(super) fn status_start(&mut self, machine: &mut Machine, ctx: &mut Ctx) {
        self.tell(About::Node, "Normal", "Starting", "Starting kubelet.", None, ctx);
        if let Some(warning) = self.cgroup_warning() {
            self.tell(About::Node, "Warning", "CgroupV1", warning, None, ctx);
        }
        let limit = self.config.settings.pods_limit;
        machine.limit_memory(&Cgroup::Pods, limit);
        if limit.is_some() {
            let message = "Updated Node Allocatable limit across pods";
            self.tell(About::Node, "Normal", "NodeAllocatableEnforced", message, None, ctx);
        }
        self.register(ctx);
        // What a node is registered with has all conditions anew, whatever the API has from before.
        for condition in conditions::pressure(&[]) {
            self.tell_condition(&condition, ctx);
        }
        self.status.written = None;
        self.update_status(ctx);
        self.renew_lease(ctx);
    }

    pub(super) fn status_on(&mut self, event: StatusEvent, _machine: &mut Machine, ctx: &mut Ctx) {
        // What comes at another time was asked for by a kubelet before this one.
        match event {
            StatusEvent::Update if self.status.update_due == Some(ctx.now) => self.update_status(ctx),
            StatusEvent::Lease if self.status.lease_due == Some(ctx.now) => self.renew_lease(ctx),
            StatusEvent::Update | StatusEvent::Lease => {}
        }
    }

    /// Writes the status if something has changed or if it is time again (`tryUpdateNodeStatus`).
    fn update_status(&mut self, ctx: &mut Ctx) {
        let name = self.identity.node.clone();
        let now = ctx.epoch().seconds(ctx.now);
        let mut conditions = conditions::pressure(self.conditions());
        conditions.push(conditions::ready());
        if let Some(node) = ctx.store.get(Kind::Node, "", &name).cloned() {
            let (capacity, allocatable) = self.node_resources(&node["status"]["capacity"]);
            let images = self.status.images.listed();
            let told = |condition: &&Condition| condition.is_told(&node) == Some(true);
            let changed: Vec<Condition> =
                conditions.iter().filter(|condition| !told(condition)).cloned().collect();
            for condition in &changed {
                // The first status of a node is not a change.
                if condition.is_told(&node).is_some() || condition.kind == "Ready" {
                    self.tell_condition(condition, ctx);
                }
            }
            let status = &node["status"];
            let same = changed.is_empty()
                && status["allocatable"] == allocatable
                && status["capacity"] == capacity
                && status["images"] == images;
            let due = self
                .status
                .written
                .is_none_or(|written| ctx.now.since(written) >= self.config.settings.status_report);
            if !same || due {
                self.status.written = Some(ctx.now);
                ctx.store.update(Kind::Node, "", &name, |node| {
                    let status = &mut node["status"];
                    status["capacity"] = capacity;
                    status["allocatable"] = allocatable;
                    status["images"] = images;
                    conditions::write(status, &conditions, &now);
                });
            }
        }
        // `wait.JitterUntil` with a factor of 0.04
        let period = self.config.settings.status_update.mul_f64(1.0 + ctx.rng.random_range(0.0..0.04));
        self.status.update_due = Some(ctx.now + period);
        self.status_at(ctx.now + period, StatusEvent::Update, ctx);
    }

    fn tell_condition(&mut self, condition: &Condition, ctx: &mut Ctx) {
        let message = format!("Node {} status is now: {}", self.identity.node, condition.event);
        self.tell(About::Node, "Normal", condition.event, &message, None, ctx);
    }

    /// What a kubelet says of cgroup v1: since 1.31, in other words in 1.34 and from 1.35 on (`warnCgroupV1Usage`).
    fn cgroup_warning(&self) -> Option<&'static str> {
        let version = &self.identity.version;
        let warning = match () {
            () if version.at_least(35) => {
                "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. Please \
                 migrate to cgroup v2. More information at \
                 https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1"
            }
            () if version.at_least(34) => {
                "cgroup v1 support is in maintenance mode, please migrate to cgroup v2"
            }
            () => "Cgroup v1 support is in maintenance mode, please migrate to Cgroup v2.",
        };
        (self.identity.cgroup == CgroupVersion::V1 && version.at_least(31)).then_some(warning)
    }

    fn status_at(&self, time: Time, event: StatusEvent, ctx: &mut Ctx) {
        let node = self.identity.node.clone();
        ctx.agenda.at(time, Due::Node(node, NodeEvent::Kubelet(KubeletEvent::Status(event))));
    }

    /// Capacity and allocatable: what is not kept from pods. Of extended resources the node has what its object says already, and all of it
    /// is allocatable (`MachineInfo` of `setters.go`).
    fn node_resources(&self, known: &Value) -> (Value, Value) {
        use evictlab_rules::quantity::Quantity;
        let settings = &self.config.settings;
        let bytes = |bytes: u64| Quantity::from_bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
        let options = &self.identity.options;
        let cpus = Quantity::from_count(i64::from(options.cpus));
        let whole =
            [("cpu", cpus), ("ephemeral-storage", bytes(options.disk)), ("memory", bytes(options.memory))];
        let mut capacity = json!({});
        let mut allocatable = json!({});
        for (resource, amount) in whole {
            capacity[resource] = json!(amount.to_string());
            let kept = settings.kept(resource, u64::try_from(amount.value()).unwrap_or(0));
            allocatable[resource] = json!((amount - &kept).to_string());
        }
        for resources in [&mut capacity, &mut allocatable] {
            resources["hugepages-1Gi"] = json!("0");
            resources["hugepages-2Mi"] = json!("0");
            resources["pods"] = json!(settings.max_pods.to_string());
            for (name, amount) in extended(known) {
                resources[name] = amount.clone();
            }
        }
        (capacity, allocatable)
    }
}

/// The extended resources among others.
fn extended(resources: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let all = resources.as_object().into_iter().flatten();
    all.map(|(name, amount)| (name.as_str(), amount)).filter(|(name, _)| is_extended_resource(name))
}
