//! The lines of one node with all of its pods, of which one can be selected.

use jiff::Timestamp;

use super::focus::{Focus, first_visible};
use super::node::NodeView;
use super::node_table::{ColumnWidths, eviction_row, exempt_row, node_header, pod_row, pod_width};
use super::rank_reason::ranking_order;
use super::reading::Reading;
use super::state::ReportedEviction;
use evictlab_report::{Line, Style};

/// A node with its evictions, and what is selected.
#[derive(Clone, Copy)]
pub(super) struct NodePage<'a> {
    pub view: &'a NodeView,
    pub evictions: &'a [ReportedEviction],
    pub focus: &'a Focus,
    pub now: Timestamp,
}

/// Indentation of the reason for a rank and of evictions, and of continued lines.
const INDENT: usize = 6;

/// Returns the lines of a node, at most `room`, wrapped where they are wider than `columns`: its
/// header, the pods around the selected one, the reason for the rank of the selected one, and the
/// evictions.
pub(super) fn node_page(page: &NodePage<'_>, columns: usize, room: usize) -> Vec<Line> {
    let NodePage { view, evictions, focus, now } = *page;
    let wrapped = |line: Line| line.wrapped(columns, INDENT);
    let mut lines = wrapped(node_header(view, ColumnWidths::of_node(view), now));
    let Some(reading) = &view.reading else {
        let mut line = Line::default();
        line.push("waiting for the statistics of the kubelet", Style::Dim);
        lines.push(line);
        lines.truncate(room);
        return lines;
    };
    let details = details(reading, focus.pod.as_deref());
    let below = details.into_iter().chain(evictions.iter().map(eviction_row));
    let below: Vec<Line> = below.flat_map(wrapped).collect();
    let below = &below[..below.len().min(room.saturating_sub(lines.len()) / 2)];
    let rows = room.saturating_sub(lines.len() + below.len());
    lines.extend(pods(reading, focus.pod.as_deref(), rows));
    lines.extend(below.iter().cloned());
    lines.truncate(room);
    lines
}

/// Returns `rows` lines of the list of pods: the candidates in their order, then those that are
/// never evicted.
fn pods(reading: &Reading, selected: Option<&str>, rows: usize) -> Vec<Line> {
    let names = reading.order.iter().map(|own| &own.pod).chain(reading.exempt.iter().map(|own| &own.pod));
    let width = pod_width(names);
    let candidates =
        reading.order.iter().map(|candidate| (candidate.uid.as_str(), pod_row(reading, candidate, width)));
    let exempt = reading.exempt.iter().map(|exempt| (exempt.uid.as_str(), exempt_row(exempt, width)));
    let all: Vec<(&str, Line)> = candidates.chain(exempt).collect();
    let place = selected.and_then(|selected| all.iter().position(|(uid, _)| *uid == selected));
    let first = first_visible(all.len(), place, rows);
    let visible = all.into_iter().skip(first).take(rows);
    visible.map(|(uid, line)| line.marked(Some(uid) == selected)).collect()
}

/// Returns the rank of the selected pod, with its reason on a line of its own, and the rule.
fn details(reading: &Reading, selected: Option<&str>) -> Vec<Line> {
    let selected = reading.order.iter().find(|candidate| Some(candidate.uid.as_str()) == selected);
    let Some(candidate) = selected else { return Vec::new() };
    let equal = reading.order.iter().filter(|other| other.rank == candidate.rank).count() - 1;
    let equal = match equal {
        0 => String::new(),
        equal => format!(", equal to {equal} others: their order is random"),
    };
    let rank = format!("rank {} of {}{equal}", candidate.rank, reading.order.len());
    [rank, candidate.reason.clone(), ranking_order(reading.signal).to_owned()]
        .iter()
        .map(|text| {
            let mut line = Line::default();
            line.push_padded("", Style::Plain, INDENT);
            line.push(text, Style::Cyan);
            line
        })
        .collect()
}
