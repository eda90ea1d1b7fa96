//! What the eviction manager counts.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;

use super::manager::Starved;

/// Counts by signal.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    evictions: BTreeMap<&'static str, u64>,
    /// Of each signal, the ages of measurements that were acted on, in seconds.
    ages: BTreeMap<&'static str, Vec<f64>>,
}

/// The bounds of the histogram (`metrics.DefBuckets`).
const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

impl Metrics {
    /// A pod was evicted for a signal or a limit.
    pub(super) fn evicted(&mut self, signal: &'static str) {
        *self.evictions.entry(signal).or_default() += 1;
    }

    /// Measurements are acted on.
    pub(super) fn aged(&mut self, starved: &Starved, now: Timestamp) {
        for threshold in &starved.thresholds {
            let observed = starved.observations.iter().find(|one| one.signal == threshold.signal);
            if let Some(time) = observed.and_then(|observed| observed.time) {
                let age = now.duration_since(time).as_secs_f64();
                self.ages.entry(threshold.signal.as_str()).or_default().push(age);
            }
        }
    }

    /// As Prometheus reads it.
    pub fn write(&self, text: &mut String) {
        // Writing to a string does not fail.
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
        if !self.evictions.is_empty() {
            writeln!(
                text,
                "# HELP kubelet_evictions [ALPHA] Cumulative number of pod evictions by eviction signal"
            )?;
            writeln!(text, "# TYPE kubelet_evictions counter")?;
        }
        for (signal, count) in &self.evictions {
            writeln!(text, "kubelet_evictions{{eviction_signal=\"{signal}\"}} {count}")?;
        }
        Ok(())
    }
}
