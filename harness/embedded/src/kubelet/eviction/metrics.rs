//! Metrics of the eviction manager.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;

use super::manager::Pressure;

/// Counters by signal.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    evictions: BTreeMap<&'static str, u64>,
    /// Ages of the observations that caused evictions, in seconds, by signal.
    ages: BTreeMap<&'static str, Vec<f64>>,
    preemptions: BTreeMap<String, u64>,
}

/// Bucket bounds of the histogram (`metrics.DefBuckets`).
const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

impl Metrics {
    /// Counts an eviction by its signal or limit.
    pub(in crate::kubelet) fn count_eviction(&mut self, signal: &'static str) {
        *self.evictions.entry(signal).or_default() += 1;
    }

    /// Counts a preemption by the missing resource.
    pub fn count_preemption(&mut self, resource: &str) {
        *self.preemptions.entry(resource.to_owned()).or_default() += 1;
    }

    /// Records the ages of observations.
    pub(super) fn record_ages(&mut self, pressure: &Pressure, now: Timestamp) {
        for threshold in &pressure.thresholds {
            let observed = pressure.observations.iter().find(|one| one.signal == threshold.signal);
            if let Some(time) = observed.and_then(|observed| observed.time) {
                let age = now.duration_since(time).as_secs_f64();
                self.ages.entry(threshold.signal.as_str()).or_default().push(age);
            }
        }
    }

    /// Writes the metrics in the Prometheus text format.
    pub fn write(&self, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = self.try_write(text);
    }

    fn try_write(&self, text: &mut String) -> std::fmt::Result {
        const AGE: &str = "kubelet_eviction_stats_age_seconds";
        if !self.ages.is_empty() {
            writeln!(
                text,
                "# HELP {AGE} [ALPHA] Time between when stats are collected, and when pod is evicted based on those stats by eviction signal"
            )?;
            writeln!(text, "# TYPE {AGE} histogram")?;
        }
        for (signal, ages) in &self.ages {
            for bound in BOUNDS {
                let under = ages.iter().filter(|age| **age <= bound).count();
                writeln!(text, "{AGE}_bucket{{eviction_signal=\"{signal}\",le=\"{bound}\"}} {under}")?;
            }
            writeln!(text, "{AGE}_bucket{{eviction_signal=\"{signal}\",le=\"+Inf\"}} {}", ages.len())?;
            writeln!(text, "{AGE}_sum{{eviction_signal=\"{signal}\"}} {}", ages.iter().sum::<f64>())?;
            writeln!(text, "{AGE}_count{{eviction_signal=\"{signal}\"}} {}", ages.len())?;
        }
        let evictions = "Cumulative number of pod evictions by eviction signal";
        counter(text, "kubelet_evictions", evictions, "eviction_signal", &self.evictions)?;
        let preemptions = "Cumulative number of pod preemptions by preemption resource";
        counter(text, "kubelet_preemptions", preemptions, "preemption_signal", &self.preemptions)
    }
}

/// Writes a counter, unless it is empty.
fn counter(
    text: &mut String,
    name: &str,
    help: &str,
    label: &str,
    counts: &BTreeMap<impl std::fmt::Display, u64>,
) -> std::fmt::Result {
    if !counts.is_empty() {
        writeln!(text, "# HELP {name} [ALPHA] {help}")?;
        writeln!(text, "# TYPE {name} counter")?;
    }
    for (value, count) in counts {
        writeln!(text, "{name}{{{label}=\"{value}\"}} {count}")?;
    }
    Ok(())
}
