//! The kubelet's log (journald).

use crate::time::Time;

/// Lines with their times.
#[derive(Clone, Debug, Default)]
pub struct Log {
    lines: Vec<(Time, String)>,
}

impl Log {
    /// Adds a line as klog writes it, such as `I1121 00:41:07.701761    6587 eviction_manager.go:186] "…" key="value"`.
    pub fn add(&mut self, at: Time, line: String) {
        self.lines.push((at, line));
    }

    /// The lines since a moment.
    pub fn since(&self, from: Time) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(move |(at, _)| *at >= from).map(|(_, line)| line.as_str())
    }
}
