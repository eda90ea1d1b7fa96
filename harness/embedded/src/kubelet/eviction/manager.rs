//! What the eviction manager decides at one look: `synchronize` of `pkg/kubelet/eviction/eviction_manager.go`, without what it does to the
//! node and its pods.

use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use evictlab_rules::message::{ThresholdClause, local_storage_eviction, pressure_eviction};
use evictlab_rules::pod::{NodeStats, Pod, Sample};
use evictlab_rules::ranking::{Disks, Ranked, rank};
use evictlab_rules::threshold::{
    NodeCondition, Observation, Reclaim, Resource, Signal, Threshold, node_level_reclaim, sort_for_eviction,
    with_containerfs,
};
use jiff::Timestamp;
use rand::seq::SliceRandom;

use crate::time::Time;
use crate::world::Rng;

/// What a manager is configured with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The thresholds, as configured.
    pub thresholds: Vec<Threshold>,
    /// How long a condition is reported after its thresholds were last met.
    pub transition: Duration,
    /// `evictionMaxPodGracePeriod`, in seconds.
    pub max_pod_grace: i64,
    /// Whether local-storage limits are enforced (`localStorageCapacityIsolation`).
    pub local_storage: bool,
    /// How the file systems are laid out.
    pub disks: Disks,
}

/// A pod that may be evicted.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Its `terminationGracePeriodSeconds`.
    pub grace: i64,
}

/// A pod that is to be evicted, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Victim {
    /// Its place among the candidates.
    pub at: usize,
    /// What is said.
    pub message: String,
    /// The event's annotations; none at all where the kubelet gives none.
    pub annotations: Option<BTreeMap<String, String>>,
    /// In place of the pod's own grace period, in seconds.
    pub grace: i64,
    /// Whether the pod gets the condition `DisruptionTarget`.
    pub disruption: bool,
    /// What `kubelet_evictions` counts it as.
    pub signal: &'static str,
}

/// What a look comes to.
#[derive(Clone, Debug)]
pub enum Look {
    /// Nothing is to be done.
    Idle,
    /// These pods are over their own limits.
    Limits(Vec<Victim>),
    /// A resource runs out.
    Starved(Starved),
}

/// What runs out.
#[derive(Clone, Debug)]
pub struct Starved {
    /// The thresholds that are met long enough; the first decides.
    pub thresholds: Vec<Threshold>,
    /// What was observed of all signals.
    pub observations: Vec<Observation>,
}

/// Whom to evict.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The candidates, the first to go first.
    pub ranked: Vec<usize>,
    /// Those before the victim whom nobody evicts.
    pub critical: Vec<usize>,
    /// The victim, unless nobody can be evicted.
    pub victim: Option<Victim>,
}

/// What the manager remembers from look to look.
#[derive(Clone, Debug)]
pub struct Manager {
    version: KubeletVersion,
    settings: Settings,
    /// The thresholds that it holds now.
    thresholds: Vec<Threshold>,
    /// Those that it holds from its second look on.
    learned: Option<Vec<Threshold>>,
    knows_disks: bool,
    met: Vec<Threshold>,
    first_met: Vec<(Threshold, Time)>,
    conditions_met: BTreeMap<NodeCondition, Time>,
    conditions: Vec<NodeCondition>,
    measured: BTreeMap<Signal, Option<Timestamp>>,
}

impl Manager {
    /// A manager that has not looked yet.
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

    /// What it is configured with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The node conditions that it reports.
    pub fn conditions(&self) -> &[NodeCondition] {
        &self.conditions
    }

    /// Whether a look can come to anything.
    pub fn has_work(&self) -> bool {
        !self.thresholds.is_empty() || self.settings.local_storage
    }

    /// Learns the file systems. What it says of thresholds that it does not heed is the answer of the first time.
    pub fn learn_disks(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.knows_disks, true) {
            return None;
        }
        let (all, conflict) = with_containerfs(&self.version, &self.thresholds, self.settings.disks);
        self.learned = Some(all);
        conflict
    }

    /// Looks at what a Summary shows.
    pub fn look(&mut self, now: Time, sample: &Sample, candidates: &[Candidate<'_>], rng: &mut Rng) -> Look {
        let observations = observations(&sample.node);
        let mut met = met(&self.thresholds, &observations, false);
        for threshold in self::met(&self.met, &observations, true) {
            let same = |other: &Threshold| {
                (other.signal, &other.amount, other.grace)
                    == (threshold.signal, &threshold.amount, threshold.grace)
            };
            if !met.iter().any(same) {
                met.push(threshold);
            }
        }
        // `synchronize` takes its thresholds before it learns the file systems.
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
        // Thresholds and conditions are maps in the kubelet: their order is chance.
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
                return Look::Limits(over);
            }
        }
        if due.is_empty() {
            return Look::Idle;
        }
        sort_for_eviction(&mut due);
        Look::Starved(Starved { thresholds: due, observations })
    }

    /// Whether, after something was freed, no threshold is met any more.
    pub fn relieved(&self, sample: &Sample) -> bool {
        met(&self.thresholds, &observations(&sample.node), true).is_empty()
    }

    /// What is tried before a pod is evicted.
    pub fn node_level_reclaim(&self, starved: &Starved) -> &'static [Reclaim] {
        node_level_reclaim(&self.version, starved.signal(), self.settings.disks)
    }

    /// Whom to evict. Equal candidates keep their order.
    pub fn plan(&self, starved: &Starved, sample: &Sample, candidates: &[Candidate<'_>]) -> Plan {
        let [first, ..] = &starved.thresholds[..] else {
            return Plan { ranked: Vec::new(), critical: Vec::new(), victim: None };
        };
        let mut ranked: Vec<Ranked<'_>> = candidates
            .iter()
            .map(|candidate| Ranked { pod: candidate.pod, stats: sample.pod(&candidate.pod.metadata.uid) })
            .collect();
        rank(&self.version, first.signal, self.settings.disks, &mut ranked);
        let place = |ranked: &Ranked<'_>| {
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
            let said = pressure_eviction(&self.version, ranked.pod, ranked.stats, resource, starved.clause());
            victim = Some(Victim {
                at: *at,
                message: said.message.to_string(),
                annotations: said.annotations.map(|annotations| annotations.write()),
                grace: self.grace(first, candidates[*at].grace),
                disruption: true,
                signal: first.signal.as_str(),
            });
            break;
        }
        Plan { ranked: order, critical, victim }
    }

    /// Those over their limits; whoever is critical does not count.
    fn over_limits(&self, sample: &Sample, candidates: &[Candidate<'_>]) -> Vec<Victim> {
        let dedicated = self.settings.disks == Disks::DedicatedImages;
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

    /// The grace of a pod that is evicted for a threshold. Since 1.32 a soft one never lengthens the pod's own.
    fn grace(&self, threshold: &Threshold, own: i64) -> i64 {
        match threshold.grace {
            None => self.immediate(),
            Some(_) if self.version.at_least(32) => self.settings.max_pod_grace.min(own),
            Some(_) => self.settings.max_pod_grace,
        }
    }

    /// `immediateEvictionGracePeriodSeconds`, since 1.31 (kubernetes/kubernetes#124063); what OpenShift has of 1.30 got it later. The 0 of before
    /// means the pod's own.
    fn immediate(&self) -> i64 {
        i64::from(self.version.at_least(31))
    }
}

impl Starved {
    /// The signal that is acted on.
    pub fn signal(&self) -> Signal {
        self.thresholds.first().map_or(Signal::MemoryAvailable, |threshold| threshold.signal)
    }

    /// The resource that is to be reclaimed.
    pub fn resource(&self) -> Resource {
        self.signal().resource()
    }

    /// The clause of the message: the first threshold on the resource that was observed.
    fn clause(&self) -> Option<ThresholdClause> {
        self.thresholds.iter().filter(|threshold| threshold.signal.resource() == self.resource()).find_map(
            |threshold| {
                let observed = self.observations.iter().find(|one| one.signal == threshold.signal)?;
                let quantity = threshold.amount.of(observed.capacity.as_ref())?;
                Some(ThresholdClause { quantity, available: observed.available.clone() })
            },
        )
    }
}

fn observations(node: &NodeStats) -> Vec<Observation> {
    Signal::ALL.into_iter().filter_map(|signal| Observation::of(signal, node)).collect()
}

fn met(thresholds: &[Threshold], observations: &[Observation], with_min_reclaim: bool) -> Vec<Threshold> {
    let is_met = |threshold: &&Threshold| {
        let observed = observations.iter().find(|observed| observed.signal == threshold.signal);
        observed.is_some_and(|observed| threshold.is_met(observed, with_min_reclaim))
    };
    thresholds.iter().filter(is_met).cloned().collect()
}

/// Whether a measurement is newer than the last one (`thresholdsUpdatedStats`).
fn is_new(observed: &Observation, last: Option<&Option<Timestamp>>) -> bool {
    match (observed.time, last) {
        (None, _) | (_, None | Some(None)) => true,
        (Some(time), Some(Some(last))) => time > *last,
    }
}

/// `signalEmptyDirFsLimit` and the like.
fn limit_label(message: &evictlab_rules::message::EvictionMessage) -> &'static str {
    use evictlab_rules::message::EvictionMessage;
    match message {
        EvictionMessage::EmptyDirLimit { .. } => "emptydirfs.limit",
        EvictionMessage::PodLimit { .. } => "ephemeralpodfs.limit",
        _ => "ephemeralcontainerfs.limit",
    }
}
