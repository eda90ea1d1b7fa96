//! One pass of the eviction manager (`managerImpl.synchronize`).

use std::time::Duration;

use evictlab_api_types::read;
use evictlab_rules::message::EVICTED_REASON;
use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use evictlab_rules::summary::Sample;
use evictlab_rules::threshold::{FsLayout, Resource};
use rand::seq::SliceRandom;

use super::log_message::{LogMessage, name, names};
use super::manager::{EvictionCandidate, Manager, ManagerSettings, Plan, Pressure, SyncResult, Victim};
use super::state::{PlannedEviction, SYNC_LOOP, SyncLoop};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::{EvictionEvent, KubeletEvent};
use crate::kubelet::pods::{ActivePod, PodEviction};
use crate::kubelet::recorder::EventObject;
use crate::kubelet::state::Kubelet;
use crate::machine::Machine;
use crate::resource::{EventBody, ObjectExt};
use crate::sim::SimTime;

/// Start of the eviction manager, after cAdvisor's first measurement.
const WARM_UP: Duration = Duration::from_millis(250);
impl Kubelet {
    pub(in crate::kubelet) fn eviction_start(&mut self, machine: &Machine, ctx: &mut SimContext) {
        let settings = &self.config.settings;
        let disks = match machine.fs_layout() {
            // `HasDedicatedImageFs` compares devices; older kubelets do not know containerfs.
            FsLayout::SplitImagefs if !self.options.version.at_least(29) => FsLayout::DedicatedImagefs,
            layout => layout,
        };
        let manager = Manager::new(
            self.options.version.clone(),
            ManagerSettings {
                thresholds: settings.thresholds.clone(),
                transition: settings.transition,
                max_pod_grace: settings.max_pod_grace,
                local_storage: settings.local_storage,
                gates: settings.gates,
                disks,
                defects: self.options.defects.clone(),
            },
        );
        self.eviction.manager = Some(manager);
        self.eviction.loops = vec![SyncLoop::default()];
        self.start_notifiers();
        if self.options.version.at_least(31) {
            self.log_eviction(LogMessage::Starting, "", ctx);
        }
        self.schedule_loop(SYNC_LOOP, ctx.now + WARM_UP, EvictionEvent::Synchronize, ctx);
    }

    pub(in crate::kubelet) fn handle_eviction_event(
        &mut self,
        event: EvictionEvent,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        match event {
            EvictionEvent::Synchronize => {
                if self.take_due(SYNC_LOOP, ctx.now) {
                    self.synchronize_loop(SYNC_LOOP, machine, ctx);
                    self.readmit_pods(machine, ctx);
                }
            }
            EvictionEvent::Notified(index) => {
                if self.take_due(index, ctx.now) {
                    self.synchronize_loop(index, machine, ctx);
                }
            }
            EvictionEvent::Stopped(uid) => self.pod_stopped(&uid, machine, ctx),
            EvictionEvent::Poll => self.poll_cleanup(machine, ctx),
        }
    }

    /// Runs one pass of a loop.
    pub(super) fn synchronize_loop(&mut self, index: usize, machine: &mut Machine, ctx: &mut SimContext) {
        let evictions = self.synchronize(index, machine, ctx);
        self.evict_all(index, evictions, machine, ctx);
    }

    /// Evaluates a fresh Summary, reclaims resources, and returns the pods to evict.
    fn synchronize(
        &mut self,
        index: usize,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) -> Vec<PlannedEviction> {
        let Some(mut manager) = self.eviction.manager.take() else { return Vec::new() };
        let evictions = if manager.has_work() && self.detect_fs_layout(index, &mut manager, ctx) {
            self.eviction_decide(&mut manager, machine, ctx)
        } else {
            Vec::new()
        };
        self.eviction.manager = Some(manager);
        evictions
    }

    /// Detects the layout of the file systems in the first pass, and returns whether it is known.
    ///
    /// `HasDedicatedImageFs` needs cAdvisor's first measurement of the root cgroup; without it the
    /// next pass tries again. Since 1.32, `HasDedicatedContainerFs` logs an error on containerd,
    /// for which cAdvisor has no label; a split layout is that of CRI-O.
    fn detect_fs_layout(&mut self, index: usize, manager: &mut Manager, ctx: &SimContext) -> bool {
        let version = self.options.version.clone();
        if manager.knows_fs_layout() {
            manager.detect_fs_layout();
            return true;
        }
        if !self.has_measured_root() {
            // Older kubelets log nothing.
            if version.at_least(29) {
                let error = "unable to find data in memory cache";
                self.log_eviction(LogMessage::NoLayout, &format!("err={error:?}"), ctx);
                if index == SYNC_LOOP {
                    let error = format!("eviction manager: failed to get HasDedicatedImageFs: {error}");
                    self.log_eviction(LogMessage::NotSynchronized, &format!("err={error:?}"), ctx);
                }
            }
            return false;
        }
        if manager.rejects_fs_layout() {
            if index == SYNC_LOOP {
                let error = "KubeletSeparateDiskGC is turned off but we still have a split filesystem";
                self.log_eviction(LogMessage::NotSynchronized, &format!("err={error:?}"), ctx);
            }
            return false;
        }
        if version.at_least(32) && !manager.has_split_layers() {
            let error = "no imagefs label for configured runtime";
            self.log_eviction(LogMessage::NoContainerfs, &format!("err={error:?}"), ctx);
        }
        if let Some(conflict) = manager.detect_fs_layout() {
            self.log_eviction(LogMessage::Containerfs, &format!("err={conflict:?}"), ctx);
        }
        true
    }

    fn eviction_decide(
        &mut self,
        manager: &mut Manager,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) -> Vec<PlannedEviction> {
        let Some(sample) = self.fresh_sample(machine, ctx) else { return Vec::new() };
        self.arm_notifiers(&sample, machine, ctx);
        let mut active = self.pods.active();
        if self.has(Defect::RankSparesTerminating) {
            active.retain(|pod| !pod.object.is_deleting());
        }
        // The pod manager returns pods from a map.
        active.shuffle(ctx.rng);
        let stated = self.stated_pods(&active);
        let candidates = candidates(&active, &stated);
        let result = manager.evaluate(ctx.now, &sample, &candidates, ctx.rng);
        self.log_critical(manager.spared(), &active, ctx);
        match result {
            SyncResult::Idle => Vec::new(),
            SyncResult::OverLimits(victims) => evictions(victims, &active),
            SyncResult::Pressure(pressure) => {
                if self.eviction_reclaim(manager, &pressure, machine, ctx) {
                    return Vec::new();
                }
                let plan = self.eviction_plan(manager, &pressure, &sample, &active, ctx);
                evictions(plan.map(|plan| plan.victims).unwrap_or_default(), &active)
            }
        }
    }

    /// Reclaims node-level resources, and returns whether that was enough.
    fn eviction_reclaim(
        &mut self,
        manager: &Manager,
        pressure: &Pressure,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) -> bool {
        let resource = pressure.resource();
        let pair = format!("resourceName=\"{resource}\"");
        self.log_eviction(LogMessage::Reclaiming, &pair, ctx);
        let event_after_reclaim = self.has(Defect::ThresholdEventAfterReclaim);
        if !event_after_reclaim {
            self.record_threshold_met(resource, ctx);
        }
        let actions = manager.node_level_reclaim(pressure);
        if !actions.is_empty() {
            self.eviction_reclaim_node_level(actions, machine, ctx);
            let sample = self.fresh_sample(machine, ctx);
            if sample.is_some_and(|sample| manager.relieved(&sample)) {
                self.log_eviction(LogMessage::Relieved, &pair, ctx);
                return true;
            }
        }
        if event_after_reclaim {
            self.record_threshold_met(resource, ctx);
        }
        self.log_eviction(LogMessage::MustEvict, &pair, ctx);
        false
    }

    fn record_threshold_met(&mut self, resource: Resource, ctx: &mut SimContext) {
        if self.has(Defect::ThresholdEventMissing) {
            return;
        }
        let named = if self.has(Defect::ThresholdEventIsMemory) { Resource::Memory } else { resource };
        let message = format!("Attempting to reclaim {named}");
        let event = if self.has(Defect::ThresholdEventNormal) {
            EventBody::normal("EvictionThresholdMet", &message)
        } else {
            EventBody::warning("EvictionThresholdMet", &message)
        };
        self.record_event(EventObject::Node, event, ctx);
    }

    /// Ranks the pods, and returns the plan; `None` without pods.
    fn eviction_plan(
        &mut self,
        manager: &Manager,
        pressure: &Pressure,
        sample: &Sample,
        active: &[ActivePod],
        ctx: &mut SimContext,
    ) -> Option<Plan> {
        if manager.lacks_ranking() {
            self.log_eviction(
                LogMessage::NoRanking,
                &format!("threshold={:?}", pressure.signal().as_str()),
                ctx,
            );
            return None;
        }
        if active.is_empty() {
            self.log_eviction(LogMessage::NoPods, "", ctx);
            return None;
        }
        self.observe_stats_ages(pressure, ctx);
        let stated = self.stated_pods(active);
        let plan = manager.plan(pressure, sample, &candidates(active, &stated));
        let names = names(plan.ranked.iter().filter_map(|at| active.get(*at)));
        self.log_eviction(LogMessage::Ranked, &format!("pods={names}"), ctx);
        self.log_critical(&plan.critical, active, ctx);
        if self.has(Defect::MetricCountsSpared) {
            for _ in &plan.critical {
                self.eviction.metrics.count_eviction(pressure.signal().as_str());
            }
        }
        if plan.victims.is_empty() {
            self.log_eviction(LogMessage::Unable, "", ctx);
        }
        Some(plan)
    }

    fn observe_stats_ages(&mut self, pressure: &Pressure, ctx: &SimContext) {
        let now = ctx.epoch().at(ctx.now);
        let unit = if self.has(Defect::MetricAgeInMilliseconds) { 1000.0 } else { 1.0 };
        let counted = if self.has(Defect::MetricAgeOfFirst) { 1 } else { pressure.thresholds.len() };
        for threshold in pressure.thresholds.iter().take(counted) {
            let observed = pressure.observations.iter().find(|observed| observed.signal == threshold.signal);
            if let Some(time) = observed.and_then(|observed| observed.time) {
                let age = now.duration_since(time).as_secs_f64();
                self.eviction.metrics.observe_stats_age(threshold.signal.as_str(), age * unit);
            }
        }
    }

    /// Returns the pods whose requests messages contain. Through 1.31 with the gate
    /// `InPlacePodVerticalScaling`, these are the `allocatedResources` of the container statuses
    /// for memory (`evictionMessage` in helpers.go), which an API server without the gate drops.
    fn stated_pods(&self, active: &[ActivePod]) -> Vec<Option<Pod>> {
        let reads_status = self.config.settings.gates.message_reads_status;
        if self.has(Defect::MessageRequestIsPending) {
            return active.iter().map(|active| read(&active.object).ok()).collect();
        }
        active.iter().map(|active| reads_status.then(|| with_allocated_memory(active))).collect()
    }

    /// Logs critical pods that are not evicted (`evictPod`).
    fn log_critical(&mut self, critical: &[usize], active: &[ActivePod], ctx: &SimContext) {
        for pod in critical.iter().filter_map(|at| active.get(*at)) {
            self.log_eviction(LogMessage::Critical, &format!("pod={:?}", name(pod)), ctx);
        }
    }

    fn fresh_sample(&mut self, machine: &Machine, ctx: &mut SimContext) -> Option<Sample> {
        match self.summary(true, machine, ctx) {
            Ok(sample) => Some(sample),
            Err(error) => {
                self.log_eviction(LogMessage::NoSummary, &format!("err={error:?}"), ctx);
                None
            }
        }
    }

    /// Records the eviction of a pod and starts to kill it (`evictPod`).
    pub(super) fn begin_eviction(
        &mut self,
        job: &PlannedEviction,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let Victim { message, grace, disruption, .. } = &job.victim;
        if !self.has(Defect::EvictedEventAfterKill) {
            self.record_evicted(job, ctx);
        }
        let differs = self.has(Defect::StatusMessageDiffers);
        let eviction = PodEviction {
            message: if differs { message.trim_end().to_owned() } else { message.clone() },
            disruption: *disruption,
            grace: Some(*grace),
        };
        self.evict(&job.pod.pod.metadata.uid, eviction, machine, ctx);
    }

    /// Records the Evicted event of a pod.
    pub(super) fn record_evicted(&mut self, job: &PlannedEviction, ctx: &mut SimContext) {
        let Victim { message, annotations, .. } = &job.victim;
        let about = if self.has(Defect::EvictedEventOfNode) {
            EventObject::Node
        } else {
            EventObject::Pod(&job.pod.object, None)
        };
        let event = if self.has(Defect::EvictedEventNormal) {
            EventBody::normal(EVICTED_REASON, message)
        } else {
            EventBody::warning(EVICTED_REASON, message)
        };
        if !self.has(Defect::EvictedEventMissing) {
            self.record_event(about, event.annotated(annotations.clone()), ctx);
        }
    }

    pub(super) fn log_eviction(&mut self, message: LogMessage, pairs: &str, ctx: &SimContext) {
        let (level, line, text) = message.parts();
        self.write_log(level, format_args!("eviction_manager.go:{line}"), text, pairs, ctx);
    }

    /// Schedules the next pass of a loop.
    pub(super) fn schedule_loop(
        &mut self,
        index: usize,
        time: SimTime,
        event: EvictionEvent,
        ctx: &mut SimContext,
    ) {
        if let Some(sync_loop) = self.eviction.loops.get_mut(index) {
            sync_loop.due = Some(time);
        }
        self.schedule(time, KubeletEvent::Eviction(event), ctx);
    }

    /// Returns whether a loop's pass is due; passes scheduled before a restart are not.
    pub(super) fn take_due(&mut self, index: usize, now: SimTime) -> bool {
        let sync_loop = self.eviction.loops.get_mut(index);
        sync_loop.is_some_and(|sync_loop| sync_loop.due.take_if(|due| *due == now).is_some())
    }
}

/// Returns a pod whose containers request the memory that their status has allocated.
fn with_allocated_memory(active: &ActivePod) -> Pod {
    let mut pod = active.pod.clone();
    for status in active.object.status().items("containerStatuses") {
        let name = status.text("name");
        let allocated = status["allocatedResources"].read::<Option<Quantity>>("memory");
        for container in pod.spec.containers.iter_mut().filter(|container| container.name == name) {
            let requests = &mut container.resources.requests;
            match &allocated {
                Some(allocated) => drop(requests.insert("memory".to_owned(), allocated.clone())),
                None => drop(requests.remove("memory")),
            }
        }
    }
    pod
}

fn candidates<'a>(active: &'a [ActivePod], stated: &'a [Option<Pod>]) -> Vec<EvictionCandidate<'a>> {
    let own = |active: &ActivePod| {
        active.object.spec().read::<Option<i64>>("terminationGracePeriodSeconds").unwrap_or(30)
    };
    let candidate = |(active, stated): (&'a ActivePod, &'a Option<Pod>)| EvictionCandidate {
        pod: &active.pod,
        grace: own(active),
        stated: stated.as_ref(),
    };
    active.iter().zip(stated).map(candidate).collect()
}

fn evictions(victims: impl IntoIterator<Item = Victim>, active: &[ActivePod]) -> Vec<PlannedEviction> {
    let job = |victim: Victim| Some(PlannedEviction { pod: active.get(victim.at)?.clone(), victim });
    victims.into_iter().filter_map(job).collect()
}

#[cfg(test)]
mod tests {
    use evictlab_rules::KubeletVersion;

    use super::*;
    use crate::kubelet::stats::Stats;
    use crate::options::{ClusterOptions, NodeOptions};
    use crate::simulation::Simulation;

    /// Without a measurement of the root cgroup, `HasDedicatedImageFs` fails, and the next pass
    /// tries again. Through 1.28 nothing is logged.
    #[test]
    fn layout_is_detected_again_after_an_error() {
        for (minor, errors, containerfs) in [(28, 0, 0), (29, 2, 0), (32, 2, 1), (36, 2, 1)] {
            let node = NodeOptions::new("n1", KubeletVersion::from_minor(minor));
            let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
            let mut simulation = Simulation::new(ClusterOptions::new(3, epoch, vec![node])).unwrap();
            let mut lines = simulation.with(|_, nodes, ctx| {
                let node = nodes.get_mut("n1").unwrap();
                node.kubelet.log = Default::default();
                node.kubelet.stats = Stats::default();
                node.kubelet.eviction_start(&node.machine, ctx);
                let mut lines = Vec::new();
                for measured in [false, true] {
                    if measured {
                        node.kubelet.stats_begin(&node.machine, ctx);
                    }
                    node.kubelet.eviction.loops[SYNC_LOOP].due = Some(ctx.now);
                    node.kubelet.handle_eviction_event(EvictionEvent::Synchronize, &mut node.machine, ctx);
                    lines.push(node.kubelet.log.since(SimTime::ZERO).map(str::to_owned).collect::<Vec<_>>());
                }
                lines
            });
            let count =
                |lines: &[String], text: &str| lines.iter().filter(|line| line.contains(text)).count();
            let (last, first) = (lines.pop().unwrap(), lines.pop().unwrap());
            assert_eq!(count(&first, "HasDedicatedImageFs"), errors, "1.{minor}: {first:#?}");
            assert_eq!(count(&first, "failed to synchronize"), errors / 2, "1.{minor}: {first:#?}");
            assert_eq!(count(&first, "separate container filesystem"), 0, "1.{minor}");
            assert_eq!(count(&last, "HasDedicatedImageFs"), errors, "1.{minor}: {last:#?}");
            assert_eq!(count(&last, "separate container filesystem"), containerfs, "1.{minor}");
        }
    }
}
