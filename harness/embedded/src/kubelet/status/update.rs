//! Updates of the node object and its conditions.

use std::collections::BTreeMap;

use evictlab_rules::quantity::Quantity;
use k8s_openapi::api::core::v1::{ContainerImage, NodeCondition};
use rand::RngExt;

use super::conditions::{self, Condition};
use crate::apiserver::is_extended_resource;
use crate::context::SimContext;
use crate::defect::{Defect, Defects};
use crate::kubelet::event::{KubeletEvent, StatusEvent};
use crate::kubelet::recorder::EventObject;
use crate::kubelet::state::Kubelet;
use crate::machine::{Cgroup, Machine};
use crate::options::CgroupVersion;
use crate::resource::{EventBody, Kind, ObjectExt};
use crate::sim::SimTime;

/// Amounts of resources, such as the capacity of a node, in canonical form.
pub(super) type ResourceList = BTreeMap<String, String>;

impl Kubelet {
    pub(in crate::kubelet) fn status_start(&mut self, machine: &mut Machine, ctx: &mut SimContext) {
        self.record_event(EventObject::Node, EventBody::normal("Starting", "Starting kubelet."), ctx);
        if let Some(warning) = self.cgroup_warning() {
            self.record_event(EventObject::Node, EventBody::warning("CgroupV1", warning), ctx);
        }
        let limit = self.config.settings.pods_limit;
        let limit = limit.filter(|_| !self.has(Defect::AllocatableUnlimited));
        machine.limit_memory(&Cgroup::Pods, limit);
        let tasks = self.config.settings.pods_task_limit;
        machine.limit_tasks_of_pods(tasks.filter(|_| !self.has(Defect::AllocatableTasksUnlimited)));
        if limit.is_some() {
            let message = "Updated Node Allocatable limit across pods";
            self.record_event(EventObject::Node, EventBody::normal("NodeAllocatableEnforced", message), ctx);
        }
        self.status.huge_pages = machine.huge_pages();
        self.register(ctx);
        // Registration sets all conditions, whatever the API object has.
        for condition in conditions::pressure(&[], &Defects::default()) {
            self.record_condition(&condition, ctx);
        }
        self.status.written = None;
        self.update_status(ctx);
        self.renew_lease(ctx);
        self.start_image_gc(ctx);
        self.start_image_detection(ctx);
    }

    pub(in crate::kubelet) fn handle_status_event(
        &mut self,
        event: StatusEvent,
        machine: &Machine,
        ctx: &mut SimContext,
    ) {
        // Events at other times were scheduled before a restart of the kubelet.
        match event {
            StatusEvent::Update if self.status.update_due == Some(ctx.now) => self.update_status(ctx),
            StatusEvent::Lease if self.status.lease_due == Some(ctx.now) => self.renew_lease(ctx),
            StatusEvent::CollectImages if self.status.image_gc_due == Some(ctx.now) => {
                self.collect_images(machine, ctx);
            }
            StatusEvent::DetectImages if self.status.detection_due == Some(ctx.now) => {
                self.detect_images(ctx);
            }
            StatusEvent::Update
            | StatusEvent::Lease
            | StatusEvent::CollectImages
            | StatusEvent::DetectImages => {}
        }
    }

    /// Writes the status if it has changed or its report is due (`tryUpdateNodeStatus`).
    fn update_status(&mut self, ctx: &mut SimContext) {
        let name = self.options.name.clone();
        let now = ctx.epoch().meta_time(ctx.now);
        let mut conditions = conditions::pressure(self.conditions(), &self.options.defects);
        conditions.push(conditions::ready());
        if let Some(node) = ctx.store.get(Kind::Node, "", &name).cloned() {
            let status = node.status();
            let (capacity, allocatable) = self.node_resources(&status.read("capacity"));
            let images = self.status.images.listed();
            let before: Vec<NodeCondition> = status.read("conditions");
            let reported = |condition: &&Condition| condition.is_reported(&before) == Some(true);
            let changed: Vec<Condition> =
                conditions.iter().filter(|condition| !reported(condition)).cloned().collect();
            for condition in &changed {
                // The conditions of a new node are not changes.
                if condition.is_reported(&before).is_some() || condition.kind == "Ready" {
                    self.record_condition(condition, ctx);
                }
            }
            if self.has(Defect::PressureTransitionOfAll) && changed.iter().any(|one| one.kind != "Ready") {
                let pressure = conditions.iter_mut().filter(|one| one.kind != "Ready");
                pressure.for_each(Condition::change_transition);
            }
            let same = changed.iter().all(|condition| self.waits_for_report(condition))
                && status.read::<ResourceList>("allocatable") == allocatable
                && status.read::<ResourceList>("capacity") == capacity
                && status.read::<Vec<ContainerImage>>("images") == images;
            let due = self
                .status
                .written
                .is_none_or(|written| ctx.now.since(written) >= self.config.settings.status_report);
            if !same || due {
                self.status.written = Some(ctx.now);
                ctx.store.update(Kind::Node, "", &name, |node| {
                    let status = node.status_mut();
                    status.write("capacity", capacity);
                    status.write("allocatable", allocatable);
                    status.write("images", images);
                    status.change("conditions", |reported: &mut Vec<NodeCondition>| {
                        conditions.iter().for_each(|condition| condition.write(reported, &now));
                    });
                });
            }
        }
        // `wait.JitterUntil` with a factor of 0.04
        let period = self.config.settings.status_update.mul_f64(1.0 + ctx.rng.random_range(0.0..0.04));
        self.status.update_due = Some(ctx.now + period);
        self.status_at(ctx.now + period, StatusEvent::Update, ctx);
    }

    /// Returns whether a defect delays the write of the status if only this condition has changed.
    fn waits_for_report(&self, condition: &Condition) -> bool {
        match condition.kind {
            "MemoryPressure" => self.has(Defect::MemoryPressureReportedLate),
            "DiskPressure" => self.has(Defect::DiskPressureReportedLate),
            "PIDPressure" => self.has(Defect::PidPressureReportedLate),
            _ => false,
        }
    }

    fn record_condition(&mut self, condition: &Condition, ctx: &mut SimContext) {
        let is_missing = match condition.event {
            "NodeReady" => false,
            "NodeHasSufficientMemory" if self.has(Defect::MemoryPressureEndWithoutEvent) => true,
            "NodeHasNoDiskPressure" if self.has(Defect::DiskPressureEndWithoutEvent) => true,
            "NodeHasSufficientPID" if self.has(Defect::PidPressureEndWithoutEvent) => true,
            _ => self.has(Defect::PressureEventMissing),
        };
        if is_missing {
            return;
        }
        let message = format!("Node {} status is now: {}", self.options.name, condition.event);
        self.record_event(EventObject::Node, EventBody::normal(condition.event, &message), ctx);
    }

    /// Returns the kubelet's warning about cgroup v1, since 1.31; reworded in 1.34 and 1.35
    /// (`warnCgroupV1Usage`).
    fn cgroup_warning(&self) -> Option<&'static str> {
        let version = &self.options.version;
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
        (self.options.cgroup == CgroupVersion::V1 && version.at_least(31)).then_some(warning)
    }

    pub(in crate::kubelet) fn status_at(&mut self, time: SimTime, event: StatusEvent, ctx: &mut SimContext) {
        self.schedule(time, KubeletEvent::Status(event), ctx);
    }

    /// Returns capacity and allocatable resources. The amounts of extended resources are kept, and
    /// all of them is allocatable (`MachineInfo` of `setters.go`).
    pub(super) fn node_resources(&self, known: &ResourceList) -> (ResourceList, ResourceList) {
        let settings = &self.config.settings;
        let bytes = |bytes: u64| Quantity::from_bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
        let options = &self.options;
        let cpus = Quantity::from_count(i64::from(options.cpus));
        // Decimal units since 1.37 (`EphemeralStorageCapacityFromFsInfo` of
        // `pkg/kubelet/cadvisor/util.go`, kubernetes/kubernetes#137652).
        let disk = if self.options.version.at_least(37) {
            Quantity::from_count(bytes(options.disk).value())
        } else {
            bytes(options.disk)
        };
        let whole = [("cpu", cpus), ("ephemeral-storage", disk), ("memory", bytes(options.memory))];
        let huge_pages = bytes(self.status.huge_pages);
        let fixed = [
            ("hugepages-1Gi", "0"),
            ("hugepages-2Mi", &huge_pages.to_string()),
            ("pods", &settings.max_pods.to_string()),
        ];
        let fixed = fixed.map(|(resource, amount)| (resource.to_owned(), amount.to_owned()));
        let mut capacity = ResourceList::from(fixed);
        capacity.extend(extended(known).map(|(name, amount)| (name.to_owned(), amount.to_owned())));
        let mut allocatable = capacity.clone();
        for (resource, amount) in whole {
            capacity.insert(resource.to_owned(), amount.to_string());
            let reference = if self.has(Defect::AllocatablePercentOfMemory) {
                options.memory
            } else {
                u64::try_from(amount.value()).unwrap_or(0)
            };
            let kept = settings.reserved_amount(resource, reference);
            let mut rest = amount - &kept;
            if resource == "memory" && !self.has(Defect::AllocatableCountsHugePages) {
                rest = (rest - &huge_pages).max(Quantity::ZERO);
            }
            allocatable.insert(resource.to_owned(), rest.to_string());
        }
        (capacity, allocatable)
    }
}

/// Returns the extended resources.
pub(super) fn extended(resources: &ResourceList) -> impl Iterator<Item = (&str, &str)> {
    let all = resources.iter().map(|(name, amount)| (name.as_str(), amount.as_str()));
    all.filter(|(name, _)| is_extended_resource(name))
}
