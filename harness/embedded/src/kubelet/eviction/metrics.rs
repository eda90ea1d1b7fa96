//! Metrics of the eviction manager.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Counters by signal.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    evictions: BTreeMap<&'static str, u64>,
}

impl Metrics {
    /// Counts an eviction by its signal or limit.
    pub(in crate::kubelet) fn count_eviction(&mut self, signal: &'static str) {
        *self.evictions.entry(signal).or_default() += 1;
    }

    /// Returns the response of `metrics`, in the Prometheus text format. The counter is missing
    /// before the first eviction.
    pub(in crate::kubelet) fn text(&self) -> String {
        const NAME: &str = "kubelet_evictions";
        let mut text = String::new();
        if !self.evictions.is_empty() {
            text += &format!("# HELP {NAME} [ALPHA] Cumulative number of pod evictions by eviction signal\n");
            text += &format!("# TYPE {NAME} counter\n");
        }
        for (signal, count) in &self.evictions {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{NAME}{{eviction_signal=\"{signal}\"}} {count}");
        }
        text
    }
}
