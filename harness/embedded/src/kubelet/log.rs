//! Log of a kubelet (journald).

use std::collections::VecDeque;

use crate::sim::SimTime;

/// Number of lines that are kept.
const MAX_RETAINED_LINES: usize = 10_000;

/// Severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Information.
    Info,
    /// Error.
    Error,
}

/// Log lines with their times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    lines: VecDeque<(SimTime, String)>,
}

impl Log {
    /// Adds a line in klog's format, such as `I1121 00:41:07.701761    6587
    /// eviction_manager.go:186] "…" key="value"`.
    pub(crate) fn add(&mut self, at: SimTime, line: String) {
        if self.lines.len() == MAX_RETAINED_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back((at, line));
    }

    /// Returns the lines since a time.
    pub(crate) fn since(&self, from: SimTime) -> impl DoubleEndedIterator<Item = &str> {
        self.lines.iter().filter(move |(at, _)| *at >= from).map(|(_, line)| line.as_str())
    }
}
