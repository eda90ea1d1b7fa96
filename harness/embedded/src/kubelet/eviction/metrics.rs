//! Counters of evictions and preemptions.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    /// Evictions by signal or limit.
    evictions: BTreeMap<&'static str, u64>,
    /// Preemptions by the missing resource.
    preemptions: BTreeMap<String, u64>,
}

impl Metrics {
    /// Counts an eviction by its signal or limit.
    pub(in crate::kubelet) fn count_eviction(&mut self, signal: &'static str) {
        *self.evictions.entry(signal).or_default() += 1;
    }

    /// Counts a preemption by the missing resource.
    pub(in crate::kubelet) fn count_preemption(&mut self, resource: &str) {
        *self.preemptions.entry(resource.to_owned()).or_default() += 1;
    }

    /// Returns the response of `metrics`, in the Prometheus text format. A counter is missing
    /// before its first increase.
    pub(in crate::kubelet) fn text(&self) -> String {
        let mut text = String::new();
        let evictions = self.evictions.iter().map(|(signal, count)| (*signal, *count));
        let preemptions = self.preemptions.iter().map(|(resource, count)| (resource.as_str(), *count));
        let help = "Cumulative number of pod evictions by eviction signal";
        write_counter(&mut text, ("kubelet_evictions", help, "eviction_signal"), evictions);
        let help = "Cumulative number of pod preemptions by preemption resource";
        write_counter(&mut text, ("kubelet_preemptions", help, "preemption_signal"), preemptions);
        text
    }
}

fn write_counter<'a>(
    text: &mut String,
    (name, help, label): (&str, &str, &str),
    values: impl Iterator<Item = (&'a str, u64)>,
) {
    for (index, (value, count)) in values.enumerate() {
        if index == 0 {
            *text += &format!("# HELP {name} [ALPHA] {help}\n# TYPE {name} counter\n");
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}{{{label}=\"{value}\"}} {count}");
    }
}
