//! Decisions of the eviction manager: `synchronize` of `pkg/kubelet/eviction/eviction_manager.go`,
//! without its effects on the node and its pods.

use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use evictlab_rules::message::{ThresholdClause, local_storage_eviction, pressure_eviction};
use evictlab_rules::pod::Pod;
use evictlab_rules::ranking::{RankedPod, rank_pods};
use evictlab_rules::summary::{NodeStats, Sample};
use evictlab_rules::threshold::{
    FsLayout, NodeCondition, Observation, ReclaimAction, Resource, Signal, Threshold, reclaim_actions,
    sort_by_eviction_priority, update_containerfs_thresholds,
};
use jiff::Timestamp;
use rand::seq::SliceRandom;

use crate::sim::{Rng, Time};

/// Configuration of a manager.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Configured thresholds.
    pub thresholds: Vec<Threshold>,
    /// Duration for which a condition is reported after its threshold was last met.
    pub transition: Duration,
    /// `evictionMaxPodGracePeriod`, in seconds.
    pub max_pod_grace: i64,
    /// True if local-storage limits are enforced (`localStorageCapacityIsolation`).
    pub local_storage: bool,
    /// Layout of the file systems.
    pub disks: FsLayout,
}

/// Pod that may be evicted.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Pod.
    pub pod: &'a Pod,
    /// Its `terminationGracePeriodSeconds`.
    pub grace: i64,
}

/// Pod to evict.
#[derive(Clone, Debug, PartialEq)]
pub struct Victim {
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
    /// Signal or limit that `kubelet_evictions` counts.
    pub signal: &'static str,
}

/// Result of one `synchronize`.
#[derive(Clone, Debug)]
pub enum SyncResult {
    /// Nothing to do.
    Idle,
    /// Pods exceed their own limits.
    OverLimits(Vec<Victim>),
    /// A resource is below its threshold.
    Pressure(Pressure),
}

/// Thresholds that are met.
#[derive(Clone, Debug)]
pub struct Pressure {
    /// Thresholds that have been met for their grace period; the first one decides.
    pub thresholds: Vec<Threshold>,
    /// Observations of all signals.
    pub observations: Vec<Observation>,
}

/// Pods to evict for a threshold.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Indexes of the candidates in the order of eviction.
    pub ranked: Vec<usize>,
    /// Critical pods that are skipped before the victim.
    pub critical: Vec<usize>,
    /// Pod to evict, unless all are critical.
    pub victim: Option<Victim>,
}

/// State of the eviction manager between passes.
#[derive(Clone, Debug)]
pub struct Manager {
    version: KubeletVersion,
    settings: Settings,
    /// Thresholds that are met, by signal.
    thresholds: Vec<Threshold>,
    /// Thresholds from the second pass on.
    learned: Option<Vec<Threshold>>,
    knows_disks: bool,
    met: Vec<Threshold>,
    first_met: Vec<(Threshold, Time)>,
    conditions_met: BTreeMap<NodeCondition, Time>,
    conditions: Vec<NodeCondition>,
    measured: BTreeMap<Signal, Option<Timestamp>>,
}

impl Manager {
    /// Creates a manager before its first pass.
    pub fn new(version: KubeletVersion, settings: Settings) -> Self {
        Self {
            version,
            thresholds: settings.thresholds.clone(),
            settings,
            learned: None,
            knows_disks: false,
            met: Vec::new(),
            first_met: Vec::new(),
            conditions_met: BTreeMap::new(),
            conditions: Vec::new(),
            measured: BTreeMap::new(),
        }
    }

    /// Returns the configuration.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the node conditions that are reported.
    pub fn conditions(&self) -> &[NodeCondition] {
        &self.conditions
    }

    /// Returns whether a pass can have a result.
    pub fn has_work(&self) -> bool {
        !self.thresholds.is_empty() || self.settings.local_storage
    }

    /// Detects the layout of the file systems. The first call returns the log message about ignored
    /// thresholds.
    pub fn detect_fs_layout(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.knows_disks, true) {
            return None;
        }
        let (all, conflict) =
            update_containerfs_thresholds(&self.version, &self.thresholds, self.settings.disks);
        self.learned = Some(all);
        conflict
    }

    /// Evaluates a Summary.
    pub fn evaluate(
        &mut self,
        now: Time,
        sample: &Sample,
        candidates: &[Candidate<'_>],
        rng: &mut Rng,
    ) -> SyncResult {
        let observations = observations(&sample.node);
        let mut met = met(&self.thresholds, &observations, false);
        for threshold in self::met(&self.met, &observations, true) {
            let same = |other: &Threshold| {
                (other.signal, &other.value, other.grace)
                    == (threshold.signal, &threshold.value, threshold.grace)
            };
            if !met.iter().any(same) {
                met.push(threshold);
            }
        }
        // `synchronize` reads its thresholds before it detects the file systems.
        if let Some(all) = self.learned.take() {
            self.thresholds = all;
        }
        let first_met = |threshold: Threshold| {
            let since = self.first_met.iter().find(|(known, _)| *known == threshold);
            let since = since.map_or(now, |(_, since)| *since);
            (threshold, since)
        };
        self.first_met = met.into_iter().map(first_met).collect();
        for (threshold, _) in &self.first_met {
            self.conditions_met.insert(threshold.signal.condition(), now);
        }
        let reported =
            self.conditions_met.iter().filter(|(_, at)| now.since(**at) < self.settings.transition);
        self.conditions = reported.map(|(condition, _)| *condition).collect();
        // Thresholds and conditions are maps in the kubelet, so their order is random.
        self.conditions.shuffle(rng);
        let long_enough = |(threshold, since): &(Threshold, Time)| {
            (now.since(*since) >= threshold.grace.unwrap_or_default()).then(|| threshold.clone())
        };
        let mut due: Vec<Threshold> = self.first_met.iter().filter_map(long_enough).collect();
        due.shuffle(rng);
        self.met.clone_from(&due);
        due.retain(|threshold| {
            let observed = observations.iter().find(|observed| observed.signal == threshold.signal);
            observed.is_some_and(|observed| is_new(observed, self.measured.get(&threshold.signal)))
        });
        self.measured = observations.iter().map(|observed| (observed.signal, observed.time)).collect();
        if self.settings.local_storage {
            let over = self.over_limits(sample, candidates);
            if !over.is_empty() {
                return SyncResult::OverLimits(over);
            }
        }
        if due.is_empty() {
            return SyncResult::Idle;
        }
        sort_by_eviction_priority(&mut due);
        SyncResult::Pressure(Pressure { thresholds: due, observations })
    }

    /// Returns whether no threshold is met after a reclaim.
    pub fn relieved(&self, sample: &Sample) -> bool {
        met(&self.thresholds, &observations(&sample.node), true).is_empty()
    }

    /// Returns the actions that are tried before a pod is evicted.
    pub fn node_level_reclaim(&self, pressure: &Pressure) -> &'static [ReclaimAction] {
        reclaim_actions(&self.version, pressure.signal(), self.settings.disks)
    }

    /// Plans the eviction for a threshold. Equal candidates keep their order.
    pub fn plan(&self, pressure: &Pressure, sample: &Sample, candidates: &[Candidate<'_>]) -> Plan {
        let [first, ..] = &pressure.thresholds[..] else {
            return Plan { ranked: Vec::new(), critical: Vec::new(), victim: None };
        };
        let mut ranked: Vec<RankedPod<'_>> = candidates
            .iter()
            .map(|candidate| RankedPod { pod: candidate.pod, stats: sample.pod(&candidate.pod.metadata.uid) })
            .collect();
        rank_pods(&self.version, first.signal, self.settings.disks, &mut ranked);
        let place = |ranked: &RankedPod<'_>| {
            candidates.iter().position(|candidate| std::ptr::eq(candidate.pod, ranked.pod))
        };
        let order: Vec<usize> = ranked.iter().filter_map(place).collect();
        let mut critical = Vec::new();
        let mut victim = None;
        for (at, ranked) in order.iter().zip(&ranked) {
            if ranked.pod.is_critical() {
                critical.push(*at);
                continue;
            }
            let resource = first.signal.resource();
            let message =
                pressure_eviction(&self.version, ranked.pod, ranked.stats, resource, pressure.clause());
            victim = Some(Victim {
                at: *at,
                message: message.message.to_string(),
                annotations: message.annotations.map(|annotations| annotations.to_map()),
                grace: self.grace(first, candidates[*at].grace),
                disruption: true,
                signal: first.signal.as_str(),
            });
            break;
        }
        Plan { ranked: order, critical, victim }
    }

    /// Returns the pods that exceed their own limits, without critical ones.
    fn over_limits(&self, sample: &Sample, candidates: &[Candidate<'_>]) -> Vec<Victim> {
        let dedicated = self.settings.disks == FsLayout::DedicatedImagefs;
        let over = |(at, candidate): (usize, &Candidate<'_>)| {
            let stats = sample.pod(&candidate.pod.metadata.uid).filter(|_| !candidate.pod.is_critical())?;
            let message = local_storage_eviction(&self.version, candidate.pod, stats, dedicated)?;
            Some(Victim {
                at,
                message: message.to_string(),
                annotations: None,
                grace: self.immediate(),
                disruption: false,
                signal: limit_label(&message),
            })
        };
        candidates.iter().enumerate().filter_map(over).collect()
    }

    /// Returns the grace period of an eviction in seconds. Since 1.32 a soft threshold never
    /// extends the pod's own.
    fn grace(&self, threshold: &Threshold, own: i64) -> i64 {
        match threshold.grace {
            None => self.immediate(),
            Some(_) if self.version.at_least(32) => self.settings.max_pod_grace.min(own),
            Some(_) => self.settings.max_pod_grace,
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
    pub fn signal(&self) -> Signal {
        self.thresholds.first().map_or(Signal::MemoryAvailable, |threshold| threshold.signal)
    }

    /// Returns the resource to reclaim.
    pub fn resource(&self) -> Resource {
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

fn observations(node: &NodeStats) -> Vec<Observation> {
    Signal::ALL.into_iter().filter_map(|signal| Observation::from_node_stats(signal, node)).collect()
}

fn met(thresholds: &[Threshold], observations: &[Observation], with_min_reclaim: bool) -> Vec<Threshold> {
    let is_met = |threshold: &&Threshold| {
        let observed = observations.iter().find(|observed| observed.signal == threshold.signal);
        observed.is_some_and(|observed| threshold.is_met(observed, with_min_reclaim))
    };
    thresholds.iter().filter(is_met).cloned().collect()
}

/// Returns whether an observation is newer than the last one (`thresholdsUpdatedStats`).
fn is_new(observed: &Observation, last: Option<&Option<Timestamp>>) -> bool {
    match (observed.time, last) {
        (None, _) | (_, None | Some(None)) => true,
        (Some(time), Some(Some(last))) => time > *last,
    }
}

/// Returns the label of a limit, such as `signalEmptyDirFsLimit`.
fn limit_label(message: &evictlab_rules::message::EvictionMessage) -> &'static str {
    use evictlab_rules::message::EvictionMessage;
    match message {
        EvictionMessage::EmptyDirLimit { .. } => "emptydirfs.limit",
        EvictionMessage::PodLimit { .. } => "ephemeralpodfs.limit",
        _ => "ephemeralcontainerfs.limit",
    }
}
