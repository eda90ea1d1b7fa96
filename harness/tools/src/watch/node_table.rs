//! The lines of a node: its signal and thresholds, its pods in eviction order, its evictions.

use jiff::Timestamp;

use super::node::NodeView;
use super::ranking::{EvictionCandidate, ExemptPod};
use super::reading::{Reading, ThresholdStatus};
use super::state::{ReportedEviction, WatchState};
use evictlab_explain::amount;
use evictlab_report::{Line, Style};

/// Width of the bar in columns.
const BAR_WIDTH: usize = 10;
/// Maximum width of pod names.
const MAX_NAME_WIDTH: usize = 48;

/// Column widths shared by all nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnWidths {
    node: usize,
    kubelet: usize,
}

impl ColumnWidths {
    pub(crate) fn of(state: &WatchState) -> Self {
        let widest = |cell: fn(&NodeView) -> &str| {
            state.nodes.values().map(|view| cell(view).chars().count()).max().unwrap_or(0)
        };
        Self { node: widest(|view| &view.name), kubelet: widest(|view| &view.kubelet) }
    }

    pub(super) fn of_node(view: &NodeView) -> Self {
        Self { node: view.name.chars().count(), kubelet: view.kubelet.chars().count() }
    }
}

/// A node with its evictions, and the parameters of its lines.
#[derive(Clone, Copy)]
pub(super) struct NodeRows<'a> {
    pub view: &'a NodeView,
    pub evictions: &'a [ReportedEviction],
    pub widths: ColumnWidths,
    /// Maximum number of listed pods.
    pub pods: usize,
    pub now: Timestamp,
}

/// Returns the lines of a node: at least its header, at most `room` lines.
pub(super) fn node_rows(rows: &NodeRows<'_>, room: usize) -> Vec<Line> {
    let NodeRows { view, evictions, widths, pods, now } = *rows;
    let mut lines = vec![node_header(view, widths, now)];
    let left = room.saturating_sub(1);
    // Recent evictions are more important than the end of the ranking.
    let shown = evictions.len().min(left.div_ceil(3));
    if let Some(reading) = &view.reading {
        lines.extend(pod_rows(reading, pods, left - shown));
    }
    lines.extend(evictions[evictions.len() - shown..].iter().map(eviction_row));
    lines
}

/// Returns the line with the conditions, the available amount and the thresholds of a node.
pub(super) fn node_header(view: &NodeView, widths: ColumnWidths, now: Timestamp) -> Line {
    let mut line = Line::default();
    line.push_padded(&view.name, Style::Bold, widths.node);
    line.gap();
    line.push_padded(&view.kubelet, Style::Plain, widths.kubelet);
    for (name, message) in &view.conditions {
        line.gap();
        line.push(name, Style::Red);
        if name == "NotReady" && !message.is_empty() {
            line.raw(" ");
            line.push(&format!("({message})"), Style::Dim);
        }
    }
    if let Some(reading) = &view.reading {
        threshold_cells(&mut line, reading, now);
    }
    if let Some(problem) = &view.problem {
        let age = view.reading.as_ref().map(|reading| now.duration_since(reading.at).as_secs());
        let age = age.map(|seconds| format!(", values are {seconds}s old")).unwrap_or_default();
        line.gap();
        line.push(&format!("query failed{age}: {problem}"), Style::Red);
    }
    line
}

/// Appends the available amount and each threshold.
fn threshold_cells(line: &mut Line, reading: &Reading, now: Timestamp) {
    let resource = reading.signal.resource();
    line.gap();
    let Some(available) = &reading.available else {
        line.push(&format!("{} is not in the Summary", reading.signal), Style::Yellow);
        return;
    };
    line.push(&format!("{} {}", reading.signal, amount(available.value(), resource)), Style::Plain);
    if reading.thresholds.is_empty() {
        line.gap();
        line.push("no threshold: no evictions for this signal", Style::Yellow);
    }
    for status in &reading.thresholds {
        let style = if status.met { Style::Red } else { Style::Plain };
        line.gap();
        line.push(&threshold_cell(status, reading, now), style);
    }
    for signal in &reading.also_met {
        line.gap();
        line.push(&format!("also below its threshold: {signal}"), Style::Red);
    }
    if let Some(used) = reading.used() {
        let full = (used * BAR_WIDTH as f64).round() as usize;
        let style = match reading.nearest().map(|status| status.met) {
            Some(true) => Style::Red,
            _ if full >= BAR_WIDTH - 1 => Style::Yellow,
            _ => Style::Green,
        };
        line.gap();
        line.push(&"█".repeat(full), style);
        line.push(&"░".repeat(BAR_WIDTH - full), Style::Dim);
    }
}

fn threshold_cell(status: &ThresholdStatus, reading: &Reading, now: Timestamp) -> String {
    let format = |value: i64| amount(value, reading.signal.resource());
    let quantity = format(status.quantity.value());
    let configured =
        if status.configured.ends_with('%') { format!(" ({})", status.configured) } else { String::new() };
    let left = format(status.margin.saturating_abs());
    let seconds = status.since.map_or(0, |since| now.duration_since(since).as_secs());
    let left = match (status.met, seconds) {
        (false, _) => format!("{left} above"),
        (true, ..=0) => format!("{left} below"),
        (true, seconds) => format!("{left} below for {seconds}s"),
    };
    format!("{} {quantity}{configured}: {left}", status.kind())
}

/// Returns the first pods, the number of remaining pods, and the exempt pods.
fn pod_rows(reading: &Reading, pods: usize, room: usize) -> Vec<Line> {
    if room == 0 {
        return Vec::new();
    }
    let mut lines = Vec::new();
    let summary_lines = usize::from(!reading.exempt.is_empty() || reading.order.len() > pods.min(room));
    let listed = reading.order.len().min(pods).min(room - summary_lines.min(room - 1));
    let first = &reading.order[..listed];
    let width = pod_width(first.iter().map(|own| &own.pod));
    lines.extend(first.iter().map(|candidate| pod_row(reading, candidate, width)));
    if reading.order.is_empty() {
        let mut line = Line::default();
        line.raw("      ");
        line.push("no pod can be evicted", Style::Dim);
        lines.push(line);
    }
    if lines.len() < room {
        lines.extend(remaining_row(reading, listed));
    }
    lines
}

/// Width of the column of the pods' names.
pub(super) fn pod_width<'a>(pods: impl Iterator<Item = &'a String>) -> usize {
    pods.map(|name| name.chars().count()).max().unwrap_or(0).min(MAX_NAME_WIDTH)
}

/// Returns the line of a pod that can be evicted, with its rank and the reason.
pub(super) fn pod_row(reading: &Reading, candidate: &EvictionCandidate, width: usize) -> Line {
    let has_pressure = reading.thresholds.iter().any(|status| status.met);
    let mut line = Line::default();
    line.push_padded_left(&candidate.rank.to_string(), 4);
    line.gap();
    let style = if has_pressure && candidate.is_first() { Style::Red } else { Style::Bold };
    line.push_padded(&candidate.pod, style, width);
    line.gap();
    line.push_padded(&format!("{:?}", candidate.qos), Style::Dim, "BestEffort".len());
    line.gap();
    line.push(&candidate.reason, Style::Plain);
    line
}

/// Returns the line of a pod that is never evicted.
pub(super) fn exempt_row(exempt: &ExemptPod, width: usize) -> Line {
    let mut line = Line::default();
    line.push_padded_left("-", 4);
    line.gap();
    line.push_padded(&exempt.pod, Style::Dim, width);
    line.gap();
    line.push(&format!("never evicted: {}", exempt.reason), Style::Dim);
    line
}

fn remaining_row(reading: &Reading, listed: usize) -> Option<Line> {
    let mut parts = Vec::new();
    let more = reading.order.len() - listed;
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    if !reading.exempt.is_empty() {
        let exempt: Vec<String> =
            reading.exempt.iter().map(|pod| format!("{} ({})", pod.pod, pod.reason)).collect();
        parts.push(format!("never evicted: {}", exempt.join(", ")));
    }
    let mut line = Line::default();
    line.raw("   …  ");
    line.push(&parts.join("; "), Style::Dim);
    (!parts.is_empty()).then_some(line)
}

/// Returns the line of an eviction.
pub(super) fn eviction_row(eviction: &ReportedEviction) -> Line {
    let mut line = Line::default();
    line.raw("      ");
    line.push(&format!("evicted {}", eviction.at.strftime("%H:%M:%SZ")), Style::Magenta);
    line.gap();
    line.push(&eviction.pod, Style::Bold);
    line.raw(": ");
    line.push(&format!("{}; {}", eviction.prediction, eviction.summary), Style::Plain);
    line
}
