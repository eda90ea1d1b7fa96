//! Metrics of evictions, preemptions and rejections at admission.

use std::collections::BTreeMap;
use std::fmt::Write;

use evictlab_rules::message::EVICTED_REASON;

/// Counts of evictions, preemptions and rejections at admission, and ages of the statistics that
/// evictions were decided by.
#[derive(Clone, Debug, Default)]
pub(crate) struct EvictionMetrics {
    /// Evictions by signal or limit.
    evictions: BTreeMap<&'static str, u64>,
    /// Preemptions by the missing resource.
    preemptions: BTreeMap<String, u64>,
    /// Rejections at admission by reason.
    admission_rejections: BTreeMap<String, u64>,
    /// Ages of the statistics that evictions were decided by: their number and sum in seconds, by
    /// signal.
    stats_ages: BTreeMap<&'static str, (u64, f64)>,
}

impl EvictionMetrics {
    /// Counts an eviction by its signal or limit.
    pub(in crate::kubelet) fn count_eviction(&mut self, signal: &'static str) {
        *self.evictions.entry(signal).or_default() += 1;
    }

    /// Counts a preemption by the missing resource.
    pub(in crate::kubelet) fn count_preemption(&mut self, resource: &str) {
        *self.preemptions.entry(resource.to_owned()).or_default() += 1;
    }

    /// Counts a rejection at admission. Of the reasons that the model has, those that
    /// `admissionRejectionReasons` does not list (pkg/kubelet/kubelet.go) count as extended
    /// resources or as `Other`.
    pub(in crate::kubelet) fn count_admission_rejection(&mut self, reason: &str) {
        const LISTED: [&str; 8] = [
            EVICTED_REASON,
            "InitContainerRestartPolicyForbidden",
            "OutOfcpu",
            "OutOfmemory",
            "OutOfephemeral-storage",
            "OutOfpods",
            "PodLevelResourcesNotSupported",
            "UnexpectedAdmissionError",
        ];
        let counted = match reason {
            reason if LISTED.contains(&reason) => reason,
            reason if reason.starts_with("OutOf") => "OutOfExtendedResources",
            _ => "Other",
        };
        *self.admission_rejections.entry(counted.to_owned()).or_default() += 1;
    }

    /// Counts the age in seconds of the statistics of a signal that an eviction was decided by.
    pub(in crate::kubelet) fn observe_stats_age(&mut self, signal: &'static str, age: f64) {
        let (count, sum) = self.stats_ages.entry(signal).or_default();
        *count += 1;
        *sum += age;
    }

    /// Returns the response of `metrics`, in the Prometheus text format. A counter is missing
    /// before its first increase.
    pub(in crate::kubelet) fn text(&self) -> String {
        let mut text = String::new();
        let evictions = self.evictions.iter().map(|(signal, count)| (*signal, *count));
        let preemptions = self.preemptions.iter().map(|(resource, count)| (resource.as_str(), *count));
        EVICTIONS.write(&mut text, evictions);
        PREEMPTIONS.write(&mut text, preemptions);
        let rejections = self.admission_rejections.iter().map(|(reason, count)| (reason.as_str(), *count));
        ADMISSION_REJECTIONS.write(&mut text, rejections);
        self.write_stats_ages(&mut text);
        text
    }

    /// Writes the ages as a histogram with only the last bucket.
    fn write_stats_ages(&self, text: &mut String) {
        const NAME: &str = "kubelet_eviction_stats_age_seconds";
        if self.stats_ages.is_empty() {
            return;
        }
        *text += &format!(
            "# HELP {NAME} [ALPHA] Time between when stats are collected, and when pod is evicted based on those stats by eviction signal\n# TYPE {NAME} histogram\n"
        );
        for (signal, (count, sum)) in &self.stats_ages {
            let label = format!("eviction_signal=\"{signal}\"");
            *text += &format!("{NAME}_bucket{{{label},le=\"+Inf\"}} {count}\n");
            *text += &format!("{NAME}_sum{{{label}}} {sum}\n{NAME}_count{{{label}}} {count}\n");
        }
    }
}

/// A counter with one label.
struct Counter {
    name: &'static str,
    help: &'static str,
    label: &'static str,
}

const EVICTIONS: Counter = Counter {
    name: "kubelet_evictions",
    help: "Cumulative number of pod evictions by eviction signal",
    label: "eviction_signal",
};
const PREEMPTIONS: Counter = Counter {
    name: "kubelet_preemptions",
    help: "Cumulative number of pod preemptions by preemption resource",
    label: "preemption_signal",
};
const ADMISSION_REJECTIONS: Counter = Counter {
    name: "kubelet_admission_rejections_total",
    help: "Cumulative number pod admission rejections by the Kubelet.",
    label: "reason",
};

impl Counter {
    /// Writes the counts by the value of the label. Does not write anything without counts.
    fn write<'a>(&self, text: &mut String, counts: impl Iterator<Item = (&'a str, u64)>) {
        let Self { name, help, label } = self;
        for (index, (value, count)) in counts.enumerate() {
            if index == 0 {
                *text += &format!("# HELP {name} [ALPHA] {help}\n# TYPE {name} counter\n");
            }
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}{{{label}=\"{value}\"}} {count}");
        }
    }
}
