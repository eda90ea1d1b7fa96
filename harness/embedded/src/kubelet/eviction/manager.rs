//! Decisions of the eviction manager: `synchronize` of `pkg/kubelet/eviction/eviction_manager.go`,
//! without its effects on the node and its pods.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use evictlab_rules::message::{EvictionMessage, STARVED_RESOURCE_KEY, ThresholdClause};
use evictlab_rules::pod::{Pod, SYSTEM_CRITICAL_PRIORITY};
use evictlab_rules::ranking::RankedPod;
use evictlab_rules::summary::{NodeStats, Sample};
use evictlab_rules::threshold::{
    ContainerfsThresholds, FsLayout, NodeCondition, Observation, ReclaimAction, Resource, Signal, Threshold,
    ThresholdValue, reclaim_actions, sort_by_eviction_priority, update_containerfs_thresholds,
};
use jiff::Timestamp;
use rand::RngExt;
use rand::seq::SliceRandom;

use super::limits::exceeded_limits;
use super::message::{EvictionTexts, eviction_texts};
use super::ranking::rank;
use crate::defect::{Defect, Defects};
use crate::kubelet::config::FeatureGates;
use crate::sim::{Rng, SimTime};

/// Configuration of a manager.
#[derive(Clone, Debug, Default)]
pub(crate) struct ManagerSettings {
    /// Configured thresholds.
    pub thresholds: Vec<Threshold>,
    /// Duration for which a condition is reported after its threshold was last met.
    pub transition: Duration,
    /// `evictionMaxPodGracePeriod`, in seconds.
    pub max_pod_grace: i64,
    /// True if local-storage limits are enforced (`localStorageCapacityIsolation`).
    pub local_storage: bool,
    /// Feature gates.
    pub gates: FeatureGates,
    /// Layout of the file systems.
    pub disks: FsLayout,
    /// Defects of the kubelet.
    pub defects: Defects,
}

/// Pod that may be evicted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EvictionCandidate<'a> {
    /// Pod.
    pub pod: &'a Pod,
    /// Its `terminationGracePeriodSeconds`.
    pub grace: i64,
    /// Pod whose requests the message contains, if they are not those of `pod`.
    pub stated: Option<&'a Pod>,
}

/// Pod to evict.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Victim {
    /// Index in the candidates.
    pub at: usize,
    /// Message of status and event.
    pub message: String,
    /// Annotations of the event; `None` where the kubelet sets none.
    pub annotations: Option<BTreeMap<String, String>>,
    /// Grace period in seconds, instead of the pod's own.
    pub grace: i64,
    /// True if the pod gets the condition `DisruptionTarget`.
    pub disruption: bool,
    /// True if the threshold has a grace period.
    pub is_soft: bool,
    /// Signal or limit that `kubelet_evictions` counts.
    pub signal: &'static str,
}

/// Result of one `synchronize`.
#[derive(Clone, Debug)]
pub(crate) enum SyncResult {
    /// Nothing to do.
    Idle,
    /// Pods exceed their own limits.
    OverLimits(Vec<Victim>),
    /// A resource is below its threshold.
    Pressure(Pressure),
}

/// Thresholds that are met.
#[derive(Clone, Debug)]
pub(crate) struct Pressure {
    /// Thresholds that have been met for their grace period; the first one decides.
    pub thresholds: Vec<Threshold>,
    /// Observations of all signals.
    pub observations: Vec<Observation>,
}

/// Pods to evict for a threshold.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Indexes of the candidates in the order of eviction.
    pub ranked: Vec<usize>,
    /// Critical pods that are skipped before the victim.
    pub critical: Vec<usize>,
    /// Pod to evict; none if all are critical.
    pub victims: Vec<Victim>,
}

/// State of the eviction manager between passes.
#[derive(Clone, Debug)]
pub(crate) struct Manager {
    version: KubeletVersion,
    settings: ManagerSettings,
    /// Thresholds that are met, by signal.
    thresholds: Vec<Threshold>,
    /// Additional thresholds of the passes after the one that detects the file systems.
    appended: Vec<Threshold>,
    knows_disks: bool,
    /// Images and writable layers have different file systems, although the gate
    /// `KubeletSeparateDiskGC` is off: the kubelet neither reclaims nor ranks.
    lacks_ranking: bool,
    met: Vec<Threshold>,
    first_met: Vec<(Threshold, SimTime)>,
    /// Those of past pressure, for a kubelet that remembers them.
    past_first_met: Vec<(Threshold, SimTime)>,
    /// Times at which conditions were last observed, in the order of insertion into a map.
    conditions_met: Vec<(NodeCondition, SimTime)>,
    conditions: Vec<NodeCondition>,
    /// Indexes of the critical candidates that exceeded a limit in the last pass, once for each
    /// kind of limit.
    spared: Vec<usize>,
    measured: BTreeMap<Signal, Option<Timestamp>>,
}

impl Manager {
    /// Creates a manager before its first pass.
    pub(crate) fn new(version: KubeletVersion, settings: ManagerSettings) -> Self {
        Self {
            version,
            thresholds: defective(settings.thresholds.clone(), &settings.defects),
            settings,
            appended: Vec::new(),
            knows_disks: false,
            lacks_ranking: false,
            met: Vec::new(),
            first_met: Vec::new(),
            past_first_met: Vec::new(),
            conditions_met: Vec::new(),
            conditions: Vec::new(),
            spared: Vec::new(),
            measured: BTreeMap::new(),
        }
    }

    /// Returns the node conditions that are reported.
    pub(crate) fn conditions(&self) -> &[NodeCondition] {
        &self.conditions
    }

    /// Returns whether a threshold of a condition was met in the last pass.
    pub(crate) fn is_under(&self, condition: NodeCondition) -> bool {
        self.first_met.iter().any(|(threshold, _)| threshold.signal.condition() == condition)
    }

    /// Returns the indexes of the critical candidates that exceeded a limit in the last pass, once
    /// for each kind of limit: `evictPod` logs them instead of evicting them.
    pub(crate) fn spared(&self) -> &[usize] {
        &self.spared
    }

    /// Returns whether a pass can have a result.
    pub(crate) fn has_work(&self) -> bool {
        let needs_thresholds = self.has(Defect::LimitsNeedThresholds);
        !self.thresholds.is_empty() || self.settings.local_storage && !needs_thresholds
    }

    /// Returns whether [`Manager::detect_fs_layout`] was called.
    pub(crate) fn knows_fs_layout(&self) -> bool {
        self.knows_disks
    }

    /// Returns whether the layout of the file systems is detected, but not supported. The pass that
    /// detects it ends with an error, later ones have neither thresholds on containerfs nor
    /// functions to reclaim and to rank (`synchronize`).
    pub(crate) fn rejects_fs_layout(&mut self) -> bool {
        let settings = &self.settings;
        if self.knows_disks || settings.disks != FsLayout::SplitImagefs || settings.gates.separate_disk_gc {
            return false;
        }
        (self.knows_disks, self.lacks_ranking) = (true, true);
        true
    }

    /// Returns whether images and writable layers have different file systems.
    pub(crate) fn has_split_layers(&self) -> bool {
        self.settings.disks == FsLayout::SplitImagefs
    }

    /// Returns whether the kubelet cannot rank pods for the layout of the file systems.
    pub(crate) fn lacks_ranking(&self) -> bool {
        self.lacks_ranking
    }

    /// Returns the layout for which thresholds on containerfs are copied.
    fn layout_of_thresholds(&self) -> FsLayout {
        if self.has(Defect::ContainerfsThresholdOfNodefs) { FsLayout::Single } else { self.settings.disks }
    }

    /// Detects the layout of the file systems. The first call returns the log message about ignored
    /// thresholds. The pass that detects the layout does not have the appended thresholds yet.
    pub(crate) fn detect_fs_layout(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.knows_disks, true) {
            self.thresholds.append(&mut self.appended);
            return None;
        }
        let ContainerfsThresholds { first, mut later, conflict } =
            update_containerfs_thresholds(&self.version, &self.thresholds, self.layout_of_thresholds());
        self.appended = later.split_off(first.len());
        for threshold in &mut self.appended {
            let defect = match threshold.signal {
                Signal::ContainerfsAvailable => Defect::ContainerfsBytesActAtOnce,
                _ => Defect::ContainerfsInodesActAtOnce,
            };
            threshold.grace.take_if(|_| self.settings.defects.has(defect));
        }
        self.thresholds = first;
        conflict
    }

    /// Evaluates a Summary.
    pub(crate) fn evaluate(
        &mut self,
        now: SimTime,
        sample: &Sample,
        candidates: &[EvictionCandidate<'_>],
        rng: &mut Rng,
    ) -> SyncResult {
        let observations = observations(&sample.node, &self.settings.defects);
        self.update_met(now, &observations);
        self.update_conditions(now, &observations, rng);
        let mut due = self.take_due(now, &observations, rng);
        self.spared.clear();
        if self.settings.local_storage && self.checks_limits() {
            let over = self.over_limits(sample, candidates);
            if !over.is_empty() {
                return SyncResult::OverLimits(over);
            }
        }
        if due.is_empty() {
            return SyncResult::Idle;
        }
        self.sort_due(&mut due);
        SyncResult::Pressure(Pressure { thresholds: due, observations })
    }

    /// Returns whether a pass checks limits of local storage, if they are enforced at all.
    fn checks_limits(&self) -> bool {
        if self.first_met.is_empty() {
            !self.has(Defect::LimitsNeedPressure)
        } else {
            !self.has(Defect::LimitsIgnoredUnderPressure)
        }
    }

    /// Sorts thresholds into the order in which the kubelet reclaims their resources.
    fn sort_due(&self, due: &mut [Threshold]) {
        sort_by_eviction_priority(due);
        if self.has(Defect::DiskReclaimedFirst) {
            due.reverse();
        }
        if self.has(Defect::AllocatableReclaimedLast) {
            due.sort_by_key(|threshold| threshold.signal == Signal::AllocatableMemoryAvailable);
        }
        if self.has(Defect::PidsReclaimedFirst) {
            due.sort_by_key(|threshold| threshold.signal != Signal::PidAvailable);
        }
    }

    /// Updates the thresholds that are met, with the times since when.
    fn update_met(&mut self, now: SimTime, observations: &[Observation]) {
        let mut met = met(&self.thresholds, observations, |_| self.has(Defect::MinimumReclaimAlways));
        for threshold in self::met(&self.met, observations, |threshold| self.has_minimum_reclaim(threshold)) {
            let same = |other: &Threshold| {
                (other.signal, &other.value, other.grace)
                    == (threshold.signal, &threshold.value, threshold.grace)
            };
            if !met.iter().any(same) {
                met.push(threshold);
            }
        }
        if self.has(Defect::SoftGraceRemembers) {
            self.past_first_met.extend(self.first_met.iter().cloned());
        }
        let first_met = |threshold: Threshold| {
            let mut known = self.past_first_met.iter().chain(&self.first_met);
            let since = known.find(|(known, _)| *known == threshold);
            let since = since.map_or(now, |(_, since)| *since);
            (threshold, since)
        };
        self.first_met = met.into_iter().map(first_met).collect();
        if self.has(Defect::SoftGraceOfAnother)
            && let Some(first) = self.first_met.iter().map(|(_, since)| *since).min()
        {
            self.first_met.iter_mut().for_each(|(_, since)| *since = first);
        }
    }

    /// Returns whether a threshold that is met stays met until its minimum is reclaimed.
    fn has_minimum_reclaim(&self, threshold: &Threshold) -> bool {
        let is_ignored = self.has(Defect::SoftMinimumReclaimIgnored) && threshold.grace.is_some();
        !is_ignored && !self.has(Defect::MinimumReclaimIgnored)
    }

    /// Updates the conditions that are reported: those of thresholds that are met, then those that
    /// were observed before (`nodeConditionsLastObservedAt`, `nodeConditionsObservedSince`).
    fn update_conditions(&mut self, now: SimTime, observations: &[Observation], rng: &mut Rng) {
        let mut before = std::mem::take(&mut self.conditions_met);
        let mut observed: Vec<(NodeCondition, SimTime)> = Vec::new();
        for (threshold, since) in &self.first_met {
            let condition = threshold.signal.condition();
            let is_known = observed.iter().any(|(known, _)| *known == condition);
            if is_known
                || self.is_condition_late(threshold, now.since(*since))
                || self.lacks_condition(threshold, observations)
            {
                continue;
            }
            let last = before.iter().find(|(known, _)| *known == condition);
            let last = last.filter(|_| self.has(Defect::TransitionFromFirst));
            observed.push((condition, last.map_or(now, |(_, at)| *at)));
        }
        start_at_random_slot(&mut before, rng);
        before.retain(|(condition, _)| observed.iter().all(|(known, _)| known != condition));
        observed.append(&mut before);
        let transition = self.transition();
        if self.has(Defect::TransitionOfAnother) && !self.first_met.is_empty() {
            let held = observed.iter_mut().filter(|(_, at)| now.since(*at) < transition);
            held.for_each(|(_, at)| *at = now);
        }
        let mut reported = observed.clone();
        start_at_random_slot(&mut reported, rng);
        reported.retain(|(_, at)| now.since(*at) < transition);
        self.conditions = reported.into_iter().map(|(condition, _)| condition).collect();
        self.conditions_met = observed;
    }

    /// Returns the thresholds that have been met for their grace period, with new observations.
    fn take_due(&mut self, now: SimTime, observations: &[Observation], rng: &mut Rng) -> Vec<Threshold> {
        let is_of_disk = |threshold: &Threshold| threshold.signal.condition() == NodeCondition::DiskPressure;
        let grace = |threshold: &Threshold| match threshold.grace {
            Some(_) if self.has(Defect::SoftActsAtOnce) => Duration::ZERO,
            Some(_) if self.has(Defect::SoftDiskActsAtOnce) && is_of_disk(threshold) => Duration::ZERO,
            Some(grace) if self.has(Defect::SoftWaitsTwice) => grace * 2,
            Some(_) if self.has(Defect::SoftNeverActs) => Duration::MAX,
            grace => grace.unwrap_or_default(),
        };
        let mut first_met = self.first_met.clone();
        start_at_random_slot(&mut first_met, rng);
        first_met.retain(|(threshold, since)| now.since(*since) >= grace(threshold));
        let mut due: Vec<Threshold> = first_met.into_iter().map(|(threshold, _)| threshold).collect();
        self.met = if self.has(Defect::MinimumReclaimInGrace) {
            self.first_met.iter().map(|(threshold, _)| threshold.clone()).collect()
        } else {
            due.clone()
        };
        due.retain(|threshold| {
            let observed = observations.iter().find(|observed| observed.signal == threshold.signal);
            observed.is_some_and(|observed| is_new(observed, self.measured.get(&threshold.signal)))
        });
        self.measured = observations.iter().map(|observed| (observed.signal, observed.time)).collect();
        due
    }

    fn has(&self, defect: Defect) -> bool {
        self.settings.defects.has(defect)
    }

    /// Returns whether a met threshold does not change its condition yet.
    fn is_condition_late(&self, threshold: &Threshold, met_for: Duration) -> bool {
        self.has(Defect::SoftConditionLate) && threshold.grace.is_some_and(|grace| met_for < grace)
    }

    /// Returns whether a met threshold does not change its condition.
    fn lacks_condition(&self, threshold: &Threshold, observations: &[Observation]) -> bool {
        let is_missing = match threshold.signal {
            Signal::AllocatableMemoryAvailable => self.has(Defect::PressureOfAllocatableMissing),
            Signal::NodefsAvailable => self.has(Defect::PressureOfNodefsMissing),
            Signal::ImagefsAvailable => self.has(Defect::PressureOfImagefsMissing),
            Signal::NodefsInodesFree => self.has(Defect::PressureOfNodefsInodesMissing),
            _ => false,
        };
        let only_minimum_is_left =
            || met(std::slice::from_ref(threshold), observations, |_| false).is_empty();
        is_missing
            || self.has(Defect::PressureOfInodesMissing) && threshold.signal.resource() == Resource::Inodes
            || self.has(Defect::PressureEndsAtThreshold) && only_minimum_is_left()
    }

    fn transition(&self) -> Duration {
        const DEFAULT: Duration = Duration::from_secs(300);
        match () {
            // A condition holds at least until the next pass.
            () if self.has(Defect::TransitionIgnored) => Duration::from_nanos(1),
            () if self.has(Defect::TransitionHalved) => self.settings.transition / 2,
            () if self.has(Defect::TransitionDoubled) => self.settings.transition * 2,
            () if self.has(Defect::TransitionIsDefault) => DEFAULT,
            () => self.settings.transition,
        }
    }

    /// Returns whether no threshold is met after a reclaim.
    pub(crate) fn relieved(&self, sample: &Sample) -> bool {
        let observations = observations(&sample.node, &self.settings.defects);
        let with_minimum = !self.has(Defect::ReclaimMinimumIgnored);
        let is_spared =
            |threshold: &Threshold| self.has(Defect::ReclaimCheckSparesSoft) && threshold.grace.is_some();
        let is_met = |thresholds: &[Threshold]| {
            let met = met(thresholds, &observations, |_| with_minimum);
            met.iter().any(|threshold| !is_spared(threshold))
        };
        !self.has(Defect::ReclaimWithoutCheck) && !is_met(&self.thresholds) && !is_met(&self.appended)
    }

    /// Returns the actions that are tried before a pod is evicted.
    pub(crate) fn node_level_reclaim(&self, pressure: &Pressure) -> &'static [ReclaimAction] {
        let layout =
            if self.has(Defect::ReclaimIgnoresLayout) { FsLayout::Single } else { self.settings.disks };
        let signal = pressure.signal();
        if signal.resource() == Resource::Inodes && self.has(Defect::InodeReclaimKeepsImages) {
            return &[ReclaimAction::DeleteContainers];
        }
        if layout == FsLayout::Single
            && signal == Signal::ImagefsAvailable
            && self.has(Defect::ReclaimKeepsImagesOfOneDisk)
        {
            return &[ReclaimAction::DeleteContainers];
        }
        if self.lacks_ranking { &[] } else { reclaim_actions(&self.version, signal, layout) }
    }

    /// Plans the eviction for a threshold. Equal candidates keep their order.
    pub(crate) fn plan(
        &self,
        pressure: &Pressure,
        sample: &Sample,
        candidates: &[EvictionCandidate<'_>],
    ) -> Plan {
        let [first, ..] = &pressure.thresholds[..] else {
            return Plan { ranked: Vec::new(), critical: Vec::new(), victims: Vec::new() };
        };
        let mut ranked: Vec<RankedPod<'_>> = candidates
            .iter()
            .map(|candidate| RankedPod { pod: candidate.pod, stats: sample.pod(&candidate.pod.metadata.uid) })
            .collect();
        let defects = &self.settings.defects;
        rank(&self.version, first.signal, self.settings.disks, &mut ranked, defects);
        let place = |ranked: &RankedPod<'_>| {
            candidates.iter().position(|candidate| std::ptr::eq(candidate.pod, ranked.pod))
        };
        let order: Vec<usize> = ranked.iter().filter_map(place).collect();
        let mut critical = Vec::new();
        let mut victims = Vec::new();
        for (at, ranked) in order.iter().zip(&ranked) {
            if self.is_critical(ranked.pod) {
                critical.push(*at);
                if defects.has(Defect::CriticalStopsEviction) {
                    break;
                }
                continue;
            }
            victims.push(self.victim(pressure, ranked, *at, &candidates[*at]));
            if victims.len() > usize::from(defects.has(Defect::RankEvictsTwo)) {
                break;
            }
        }
        Plan { ranked: order, critical, victims }
    }

    fn victim(
        &self,
        pressure: &Pressure,
        ranked: &RankedPod<'_>,
        at: usize,
        candidate: &EvictionCandidate<'_>,
    ) -> Victim {
        let (defects, resource) = (&self.settings.defects, pressure.resource());
        let is_soft = pressure.thresholds.first().is_some_and(|threshold| threshold.grace.is_some());
        let lacks_disruption =
            defects.has(Defect::DisruptionMissing) || is_soft && defects.has(Defect::DisruptionMissingOnSoft);
        let stated = RankedPod { pod: candidate.stated.unwrap_or(ranked.pod), stats: ranked.stats };
        let EvictionTexts { message, annotations } =
            eviction_texts(&self.version, &stated, resource, self.clause(pressure), defects);
        Victim {
            at,
            message,
            annotations,
            grace: self.grace(pressure.thresholds.first(), candidate.grace),
            disruption: self.settings.gates.disruption_conditions && !lacks_disruption,
            is_soft,
            signal: match pressure.signal() {
                _ if defects.has(Defect::MetricSignalIsMemory) => Signal::MemoryAvailable,
                Signal::AllocatableMemoryAvailable if defects.has(Defect::MetricAllocatableIsMemory) => {
                    Signal::MemoryAvailable
                }
                signal => signal,
            }
            .as_str(),
        }
    }

    /// Returns the part of the message about the threshold.
    fn clause(&self, pressure: &Pressure) -> Option<ThresholdClause> {
        let mut clause = pressure.clause()?;
        if self.has(Defect::MessageThresholdWithReclaim) {
            let threshold = pressure.thresholds.first();
            let observed = pressure.observations.iter().find(|one| one.signal == pressure.signal());
            let reclaim = threshold.and_then(|threshold| threshold.min_reclaim.as_ref());
            if let Some(reclaim) =
                reclaim.and_then(|reclaim| reclaim.resolve(observed.and_then(|one| one.capacity.as_ref())))
            {
                clause.quantity = clause.quantity + &reclaim;
            }
        }
        if !self.has(Defect::MessageQuotesOtherThreshold) {
            return Some(clause);
        }
        let mut same_signal = self.thresholds.iter().filter(|one| one.signal == pressure.signal());
        let hard = same_signal.find(|threshold| threshold.grace.is_none());
        let observed = pressure.observations.iter().find(|one| one.signal == pressure.signal());
        let quantity = hard.and_then(|hard| hard.value.resolve(observed?.capacity.as_ref()));
        Some(ThresholdClause { quantity: quantity.unwrap_or(clause.quantity), ..clause })
    }

    /// Returns whether a pod is never evicted.
    fn is_critical(&self, pod: &Pod) -> bool {
        if self.has(Defect::PriorityIsCritical) && pod.priority() > 0 {
            return true;
        }
        if self.has(Defect::ClusterCriticalIsOrdinary) && pod.priority() == SYSTEM_CRITICAL_PRIORITY {
            return false;
        }
        let has_class = pod.has_critical_priority();
        pod.is_critical()
            && !self.has(if has_class { Defect::CriticalIsEvicted } else { Defect::StaticIsEvicted })
    }

    /// Returns the pods that exceed their own limits, without critical ones, which it remembers.
    fn over_limits(&mut self, sample: &Sample, candidates: &[EvictionCandidate<'_>]) -> Vec<Victim> {
        let dedicated = self.settings.disks.has_dedicated_imagefs();
        let defects = &self.settings.defects;
        let mut spared = Vec::new();
        let per_pod = if defects.has(Defect::LimitsEvictTwice) { 2 } else { 1 };
        let mut victims = Vec::new();
        for (at, candidate) in candidates.iter().enumerate() {
            let Some(stats) = sample.pod(&candidate.pod.metadata.uid) else { continue };
            let messages = exceeded_limits(&self.version, candidate.pod, stats, dedicated, defects);
            let of_static =
                !candidate.pod.has_critical_priority() && defects.has(Defect::StaticLimitEnforced);
            if candidate.pod.is_critical() && !of_static && !defects.has(Defect::CriticalLimitEnforced) {
                spared.extend(messages.iter().map(|_| at));
                continue;
            }
            let counted = messages.iter().take(per_pod);
            victims.extend(counted.map(|message| self.limit_victim(at, candidate, message)));
        }
        if defects.has(Defect::LimitsEvictOne) {
            victims.truncate(1);
        }
        self.spared = spared;
        victims
    }

    /// Returns the eviction of a pod that exceeds a limit.
    fn limit_victim(
        &self,
        at: usize,
        candidate: &EvictionCandidate<'_>,
        message: &EvictionMessage,
    ) -> Victim {
        let annotations =
            || BTreeMap::from([(STARVED_RESOURCE_KEY.to_owned(), "ephemeral-storage".to_owned())]);
        Victim {
            at,
            message: message.to_string(),
            annotations: self.has(Defect::AnnotationsOnLimits).then(annotations),
            grace: self.limit_grace(message, candidate.grace),
            disruption: self.has(Defect::DisruptionOnLimits),
            is_soft: false,
            signal: if self.has(Defect::MetricLimitIsPod) {
                "ephemeralpodfs.limit"
            } else {
                limit_label(message)
            },
        }
    }

    /// Returns the grace period of a pod that exceeds a limit, in seconds.
    fn limit_grace(&self, message: &EvictionMessage, own: i64) -> i64 {
        let (of_own, of_maximum) = match message {
            EvictionMessage::EmptyDirLimit { .. } => (self.has(Defect::VolumeLimitGraceIsOwn), false),
            EvictionMessage::ContainerLimit { .. } => {
                (self.has(Defect::ContainerLimitGraceIsOwn), self.has(Defect::ContainerLimitGraceIsMaximum))
            }
            _ => (false, false),
        };
        match () {
            () if of_own || self.has(Defect::LimitGraceIsOwn) => own,
            () if (of_maximum || self.has(Defect::LimitGraceIsMaximum))
                && self.settings.max_pod_grace > 0 =>
            {
                self.settings.max_pod_grace.min(own)
            }
            () if self.has(Defect::LimitGraceTenSeconds) => 10,
            () if self.has(Defect::LimitGraceFiveSeconds) => 5,
            () => self.immediate(),
        }
    }

    /// Returns the grace period of an eviction in seconds (`synchronize` in eviction_manager.go).
    fn grace(&self, threshold: Option<&Threshold>, own: i64) -> i64 {
        match threshold.and_then(|threshold| threshold.grace) {
            None if self.has(Defect::HardGraceIsOwn) => own,
            None if self.has(Defect::HardGraceIsMaximum) && self.settings.max_pod_grace > 0 => {
                self.settings.max_pod_grace.min(own)
            }
            None if self.has(Defect::HardGraceTenSeconds) => 10,
            None if self.has(Defect::HardGraceFiveSeconds) => 5,
            None => self.immediate(),
            Some(_) if self.has(Defect::SoftGraceIsImmediate) => 1,
            Some(_) if self.has(Defect::SoftGraceIsOwn) => own,
            Some(_) if self.has(Defect::SoftGraceZeroIsOwn) && self.settings.max_pod_grace == 0 => own,
            Some(_) if self.has(Defect::SoftGraceIsMaximum) => self.settings.max_pod_grace,
            Some(_) if self.settings.gates.overwrites_grace => self.settings.max_pod_grace,
            Some(_) => self.settings.max_pod_grace.min(own),
        }
    }

    /// Returns `immediateEvictionGracePeriodSeconds`, 1 since 1.31 (kubernetes/kubernetes#124063).
    /// Before, 0 means the pod's own grace period. OpenShift backported the change to 1.30.
    fn immediate(&self) -> i64 {
        i64::from(self.version.at_least(31))
    }
}

impl Pressure {
    /// Returns the signal of the first threshold.
    pub(crate) fn signal(&self) -> Signal {
        self.thresholds.first().map_or(Signal::MemoryAvailable, |threshold| threshold.signal)
    }

    /// Returns the resource to reclaim.
    pub(crate) fn resource(&self) -> Resource {
        self.signal().resource()
    }

    /// Returns the part of the message about the threshold: the first one on the resource that was
    /// observed.
    fn clause(&self) -> Option<ThresholdClause> {
        self.thresholds.iter().filter(|threshold| threshold.signal.resource() == self.resource()).find_map(
            |threshold| {
                let observed = self.observations.iter().find(|one| one.signal == threshold.signal)?;
                let quantity = threshold.value.resolve(observed.capacity.as_ref())?;
                Some(ThresholdClause { quantity, available: observed.available.clone() })
            },
        )
    }
}

/// Returns the observations of all signals, with the defects in them.
fn observations(node: &NodeStats, defects: &Defects) -> Vec<Observation> {
    let mut node = Cow::Borrowed(node);
    if defects.has(Defect::MemoryAvailableOmitsCache)
        && let Some(memory) = &mut node.to_mut().memory
    {
        let cache = memory.usage_bytes.unwrap_or(0) - memory.working_set_bytes.unwrap_or(0);
        memory.available_bytes = memory.available_bytes.map(|available| available - cache);
    }
    let observed = |signal| Observation::from_node_stats(signal, &node);
    let mut all: Vec<Observation> = Signal::ALL.into_iter().filter_map(observed).collect();
    if defects.has(Defect::PercentOfAvailable) {
        all.iter_mut().for_each(|one| one.capacity = Some(one.available.clone()));
    }
    if defects.has(Defect::InodePercentOfFree) {
        let inodes = all.iter_mut().filter(|one| one.signal == Signal::NodefsInodesFree);
        inodes.for_each(|one| one.capacity = Some(one.available.clone()));
    }
    let node_memory = all.iter().find(|one| one.signal == Signal::MemoryAvailable);
    let node_memory = node_memory.and_then(|one| one.capacity.clone());
    if let Some(allocatable) = all.iter_mut().find(|one| one.signal == Signal::AllocatableMemoryAvailable) {
        if defects.has(Defect::AllocatablePercentOfAvailable) {
            allocatable.capacity = Some(allocatable.available.clone());
        }
        if defects.has(Defect::AllocatablePercentOfCapacity) {
            allocatable.capacity = node_memory;
        }
    }
    if defects.has(Defect::ImagefsInodesOfNodefs)
        && let Some(source) = all.iter().find(|one| one.signal == Signal::NodefsInodesFree).cloned()
    {
        let others = [Signal::ImagefsInodesFree, Signal::ContainerfsInodesFree];
        for one in all.iter_mut().filter(|one| others.contains(&one.signal)) {
            (one.available, one.capacity) = (source.available.clone(), source.capacity.clone());
        }
    }
    all
}

/// Returns the thresholds that are met. `with_min_reclaim`: a threshold is met until its minimum is
/// reclaimed.
fn met(
    thresholds: &[Threshold],
    observations: &[Observation],
    with_min_reclaim: impl Fn(&Threshold) -> bool,
) -> Vec<Threshold> {
    let is_met = |threshold: &&Threshold| {
        let observed = observations.iter().find(|observed| observed.signal == threshold.signal);
        observed.is_some_and(|observed| threshold.is_met(observed, with_min_reclaim(threshold)))
    };
    thresholds.iter().filter(is_met).cloned().collect()
}

/// Gives every hard threshold the grace period of the soft threshold of its signal, for allocatable
/// memory that of memory.
fn wait_for_soft_thresholds(thresholds: &mut [Threshold]) {
    let graces: Vec<_> = thresholds.iter().map(|one| (one.signal, one.grace)).collect();
    for hard in thresholds.iter_mut().filter(|threshold| threshold.grace.is_none()) {
        let configured = match hard.signal {
            Signal::AllocatableMemoryAvailable => Signal::MemoryAvailable,
            signal => signal,
        };
        let soft = graces.iter().find(|(signal, grace)| *signal == configured && grace.is_some());
        hard.grace = soft.and_then(|(_, grace)| *grace);
    }
}

/// Returns the thresholds with the defects in them.
fn defective(mut thresholds: Vec<Threshold>, defects: &Defects) -> Vec<Threshold> {
    let is_fraction = |threshold: &Threshold| matches!(threshold.value, ThresholdValue::Fraction(_));
    if defects.has(Defect::PercentIgnored) {
        thresholds.retain(|threshold| !is_fraction(threshold));
    }
    if defects.has(Defect::AllocatableIgnored) {
        thresholds.retain(|threshold| threshold.signal != Signal::AllocatableMemoryAvailable);
    }
    if defects.has(Defect::SoftLimitsAllocatable) {
        let soft =
            |threshold: &&Threshold| threshold.signal == Signal::MemoryAvailable && threshold.grace.is_some();
        let of_allocatable = |threshold: &Threshold| Threshold {
            signal: Signal::AllocatableMemoryAvailable,
            ..threshold.clone()
        };
        let copies: Vec<_> = thresholds.iter().filter(soft).map(of_allocatable).collect();
        thresholds.extend(copies);
    }
    if defects.has(Defect::SoftGraceIsShortest) {
        let shortest = thresholds.iter().filter_map(|threshold| threshold.grace).min();
        let soft = thresholds.iter_mut().filter(|threshold| threshold.grace.is_some());
        soft.for_each(|threshold| threshold.grace = shortest);
    }
    if defects.has(Defect::SoftGraceIsLongest) {
        let longest = thresholds.iter().filter_map(|threshold| threshold.grace).max();
        let soft = thresholds.iter_mut().filter(|threshold| threshold.grace.is_some());
        soft.for_each(|threshold| threshold.grace = longest);
    }
    if defects.has(Defect::HardWaitsForSoft) {
        wait_for_soft_thresholds(&mut thresholds);
    }
    if defects.has(Defect::MinimumReclaimPercentIgnored) {
        let is_fraction = |reclaim: &mut ThresholdValue| matches!(reclaim, ThresholdValue::Fraction(_));
        for threshold in &mut thresholds {
            threshold.min_reclaim.take_if(is_fraction);
        }
    }
    if defects.has(Defect::MinimumReclaimOfNodeOnly) {
        let of_pods = |one: &&mut Threshold| one.signal == Signal::AllocatableMemoryAvailable;
        thresholds.iter_mut().filter(of_pods).for_each(|threshold| threshold.min_reclaim = None);
    }
    if defects.has(Defect::MinimumReclaimDoubled) {
        for reclaim in thresholds.iter_mut().filter_map(|threshold| threshold.min_reclaim.as_mut()) {
            *reclaim = match reclaim {
                ThresholdValue::Quantity(amount) => ThresholdValue::Quantity(amount.clone() + amount),
                ThresholdValue::Fraction(fraction) => ThresholdValue::Fraction(2.0 * *fraction),
            };
        }
    }
    thresholds
}

/// Brings the entries of a small map, which are in the order of their insertion, into the order of
/// an iteration: Go starts at a random one of eight slots, of which the last ones may be empty.
fn start_at_random_slot<T>(entries: &mut [T], rng: &mut Rng) {
    const SLOTS: usize = 8;
    if entries.len() > SLOTS {
        entries.shuffle(rng);
    } else if entries.len() > 1 {
        let slot = rng.random_range(0..SLOTS);
        entries.rotate_left(if slot < entries.len() { slot } else { 0 });
    }
}

/// Returns whether an observation is newer than the last one (`thresholdsUpdatedStats`).
fn is_new(observed: &Observation, last: Option<&Option<Timestamp>>) -> bool {
    match (observed.time, last) {
        (None, _) | (_, None | Some(None)) => true,
        (Some(time), Some(Some(last))) => time > *last,
    }
}

/// Returns the label of a limit, such as `signalEmptyDirFsLimit`.
fn limit_label(message: &EvictionMessage) -> &'static str {
    match message {
        EvictionMessage::EmptyDirLimit { .. } => "emptydirfs.limit",
        EvictionMessage::PodLimit { .. } => "ephemeralpodfs.limit",
        _ => "ephemeralcontainerfs.limit",
    }
}

#[cfg(test)]
mod tests;
