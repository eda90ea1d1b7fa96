//! The kubelet's log (journald).

use std::collections::VecDeque;
use std::fmt::Display;

use super::Kubelet;
use crate::time::Time;
use crate::world::Ctx;

/// How many lines are kept.
const KEPT: usize = 10_000;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For the record.
    Info,
    /// Something went wrong.
    Error,
}

/// Lines with their times, the newest last.
#[derive(Clone, Debug, Default)]
pub struct Log {
    lines: VecDeque<(Time, String)>,
}

impl Log {
    /// Adds a line as klog writes it, such as `I1121 00:41:07.701761    6587 eviction_manager.go:186] "…" key="value"`.
    pub fn add(&mut self, at: Time, line: String) {
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back((at, line));
    }

    /// The lines since a moment.
    pub fn since(&self, from: Time) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(move |(at, _)| *at >= from).map(|(_, line)| line.as_str())
    }
}

impl Kubelet {
    /// Writes a line: where in the source it comes from, such as `eviction_manager.go:186`, what it says, and its pairs, already
    /// written as klog writes them (`resourceName="memory"`).
    pub(super) fn say(&mut self, level: Level, source: impl Display, message: &str, pairs: &str, ctx: &Ctx) {
        let letter = match level {
            Level::Info => 'I',
            Level::Error => 'E',
        };
        let time = ctx.epoch().at(ctx.now).strftime("%m%d %H:%M:%S%.6f").to_string();
        let pid = self.identity.pid;
        let space = if pairs.is_empty() { "" } else { " " };
        self.log.add(ctx.now, format!("{letter}{time} {pid:7} {source}] {message:?}{space}{pairs}"));
    }
}
