//! A node as lines: what it has left, then its pods in order, then what happened.

use jiff::Timestamp;

use super::ledger::{Ledger, Told};
use super::node::NodeView;
use super::reading::{Limit, Reading};
use crate::explain::amount;
use crate::report::{Ink, Line};

/// The cells of the bar.
const BAR: usize = 10;
/// No name of a pod takes more columns, unless there are no more columns to be spared for.
const NAME: usize = 48;

/// The widths that the lines of all nodes share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Widths {
    node: usize,
    kubelet: usize,
}

impl Widths {
    pub fn of(ledger: &Ledger) -> Self {
        let widest = |of: fn(&NodeView) -> &str| {
            ledger.nodes.values().map(|view| of(view).chars().count()).max().unwrap_or(0)
        };
        Self { node: widest(|view| &view.name), kubelet: widest(|view| &view.kubelet) }
    }
}

/// One node. At most `pods` of its pods are listed, and nothing takes more than `room` lines, of which the first is there in any case.
pub(super) fn node(
    view: &NodeView,
    told: &[Told],
    widths: Widths,
    pods: usize,
    room: usize,
    now: Timestamp,
) -> Vec<Line> {
    let mut lines = vec![header(view, widths, now)];
    let left = room.saturating_sub(1);
    // What happened last is worth more than the tail of the order.
    let happened = told.len().min(left.div_ceil(3));
    if let Some(reading) = &view.reading {
        lines.extend(order(reading, pods, left - happened));
    }
    lines.extend(told[told.len() - happened..].iter().map(happening));
    lines
}

fn header(view: &NodeView, widths: Widths, now: Timestamp) -> Line {
    let mut line = Line::default();
    line.push_padded(&view.name, Ink::Bold, widths.node);
    line.gap();
    line.push_padded(&view.kubelet, Ink::Plain, widths.kubelet);
    for (name, message) in &view.conditions {
        line.gap();
        line.push(name, Ink::Red);
        if name == "NotReady" && !message.is_empty() {
            line.raw(" ");
            line.push(&format!("({message})"), Ink::Dim);
        }
    }
    if let Some(reading) = &view.reading {
        levels(&mut line, reading, now);
    }
    if let Some(problem) = &view.problem {
        let old = view.reading.as_ref().map(|reading| now.duration_since(reading.at).as_secs());
        let old = old.map(|seconds| format!(", the figures are {seconds}s old")).unwrap_or_default();
        line.gap();
        line.push(&format!("cannot be read{old}: {problem}"), Ink::Red);
    }
    line
}

/// What is left, against each threshold.
fn levels(line: &mut Line, reading: &Reading, now: Timestamp) {
    let resource = reading.signal.resource();
    line.gap();
    let Some(available) = &reading.available else {
        line.push(&format!("its Summary does not tell {}", reading.signal), Ink::Yellow);
        return;
    };
    line.push(&format!("{} {}", reading.signal, amount(available.value(), resource)), Ink::Plain);
    if reading.thresholds.is_empty() {
        line.gap();
        line.push("no threshold: nobody is evicted for it", Ink::Yellow);
    }
    for limit in &reading.thresholds {
        let ink = if limit.met { Ink::Red } else { Ink::Plain };
        line.gap();
        line.push(&level(limit, reading, now), ink);
    }
    for signal in &reading.also_met {
        line.gap();
        line.push(&format!("below its threshold, too: {signal}"), Ink::Red);
    }
    if let Some(used) = reading.used() {
        let full = (used * BAR as f64).round() as usize;
        let ink = match reading.nearest().map(|limit| limit.met) {
            Some(true) => Ink::Red,
            _ if full >= BAR - 1 => Ink::Yellow,
            _ => Ink::Green,
        };
        line.gap();
        line.push(&"█".repeat(full), ink);
        line.push(&"░".repeat(BAR - full), Ink::Dim);
    }
}

fn level(limit: &Limit, reading: &Reading, now: Timestamp) -> String {
    let say = |value: i64| amount(value, reading.signal.resource());
    let quantity = say(limit.quantity.value());
    let stated = if limit.stated.ends_with('%') { format!(" ({})", limit.stated) } else { String::new() };
    let left = say(limit.left.saturating_abs());
    let seconds = limit.since.map_or(0, |since| now.duration_since(since).as_secs());
    let left = match (limit.met, seconds) {
        (false, _) => format!("{left} to go"),
        (true, ..=0) => format!("{left} below"),
        (true, seconds) => format!("{left} below for {seconds}s"),
    };
    format!("{} {quantity}{stated}: {left}", limit.kind())
}

/// The first pods in order, how many more there are, and those that are never evicted.
fn order(reading: &Reading, pods: usize, room: usize) -> Vec<Line> {
    if room == 0 {
        return Vec::new();
    }
    let mut lines = Vec::new();
    let rest = usize::from(!reading.never.is_empty() || reading.order.len() > pods.min(room));
    let listed = reading.order.len().min(pods).min(room - rest.min(room - 1));
    let first = &reading.order[..listed];
    let name = first.iter().map(|own| own.pod.chars().count()).max().unwrap_or(0).min(NAME);
    let starved = reading.thresholds.iter().any(|limit| limit.met);
    for candidate in first {
        let mut line = Line::default();
        line.push_padded_left(&candidate.place.to_string(), 4);
        line.gap();
        let ink = if starved && candidate.place == 1 { Ink::Red } else { Ink::Bold };
        line.push_padded(&candidate.pod, ink, name);
        line.gap();
        line.push_padded(&format!("{:?}", candidate.qos), Ink::Dim, "BestEffort".len());
        line.gap();
        line.push(&candidate.why, Ink::Plain);
        lines.push(line);
    }
    if reading.order.is_empty() {
        let mut line = Line::default();
        line.raw("      ");
        line.push("no pod that may be evicted", Ink::Dim);
        lines.push(line);
    }
    if lines.len() < room {
        lines.extend(others(reading, listed));
    }
    lines
}

fn others(reading: &Reading, listed: usize) -> Option<Line> {
    let mut parts = Vec::new();
    let more = reading.order.len() - listed;
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    if !reading.never.is_empty() {
        let never: Vec<String> =
            reading.never.iter().map(|never| format!("{} ({})", never.pod, never.why)).collect();
        parts.push(format!("never: {}", never.join(", ")));
    }
    let mut line = Line::default();
    line.raw("   …  ");
    line.push(&parts.join("; "), Ink::Dim);
    (!parts.is_empty()).then_some(line)
}

fn happening(told: &Told) -> Line {
    let mut line = Line::default();
    line.raw("      ");
    line.push(&format!("evicted {}", told.at.strftime("%H:%M:%SZ")), Ink::Magenta);
    line.gap();
    line.push(&told.pod, Ink::Bold);
    line.raw(": ");
    line.push(&format!("{}; {}", told.foreseen, told.short), Ink::Plain);
    line
}
