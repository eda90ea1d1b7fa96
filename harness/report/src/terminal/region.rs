//! The live region: running cases, totals, and a progress bar.

use std::time::Duration;

use jiff::Timestamp;

use super::style::{Line, Style};
use crate::run_state::{Cluster, RunStart, RunState, RunningCase};
use crate::text::count_noun;
use evictlab_judge::Verdict;

/// Maximum number of lines of the region. A run on many nodes leaves room for failures above it.
const MAX_LINES: usize = 10;
/// Maximum width of the progress bar.
const MAX_BAR_WIDTH: usize = 24;
/// Width of a terminal below which the bar is left out.
const MIN_COLUMNS_FOR_BAR: usize = 40;
/// Minimum number of finished cases for an estimate of the remaining time.
const MIN_FINISHED: usize = 3;

/// Times of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The current time of the run, simulated in a model.
    pub now: Timestamp,
    /// Real time since the start of the run.
    pub elapsed: Duration,
    /// Real time since the start of the first case.
    pub busy: Duration,
}

/// Draws the region: at most `room` lines, each narrower than `columns`.
pub(super) fn draw_region(state: &RunState, times: Times, columns: usize, room: usize) -> Vec<Line> {
    let Some(run) = &state.run else { return vec![] };
    let room = room.min(MAX_LINES);
    let mut lines = vec![];
    if room > 2 {
        lines = activities(state, run, times.now, columns, room - 2);
    }
    if room > 1 {
        lines.extend(totals(state));
    }
    if room > 0 {
        lines.push(progress(state, run, times, columns));
    }
    lines.into_iter().map(|line| line.cut(columns.saturating_sub(1))).collect()
}

/// The running cases, the longest first; the steps of clusters while no case runs.
fn activities(state: &RunState, run: &RunStart, now: Timestamp, columns: usize, room: usize) -> Vec<Line> {
    if state.running.is_empty() {
        let is_busy = |cluster: &&Cluster| cluster.creation.is_none() && !cluster.step.is_empty();
        return state.clusters.iter().filter(is_busy).take(room).map(cluster_line).collect();
    }
    let shown = if state.running.len() > room { room - 1 } else { room };
    let names = NameWidths::of(state, columns);
    let line = |running| running_line(running, run, now, names);
    let mut lines: Vec<Line> = state.running.iter().take(shown).map(line).collect();
    let hidden = state.running.len().saturating_sub(shown);
    if hidden > 0 {
        let noun = if shown > 0 { "more case" } else { "case" };
        let mut line = Line::default();
        line.push(&format!("{} running", count_noun(hidden, noun)), Style::Dim);
        lines.push(line);
    }
    lines
}

fn cluster_line(cluster: &Cluster) -> Line {
    let mut line = Line::default();
    line.push(&cluster.name, Style::Plain);
    line.gap();
    line.push(&cluster.step, Style::Dim);
    line
}

#[derive(Clone, Copy)]
struct NameWidths {
    kubelet: usize,
    case: usize,
}

impl NameWidths {
    /// The widths of the running cases' names. The phase stays visible on a narrow terminal.
    fn of(state: &RunState, columns: usize) -> Self {
        const PHASE_WIDTH: usize = 18;
        let longest =
            |width: &dyn Fn(&RunningCase) -> usize| state.running.iter().map(width).max().unwrap_or(0);
        let kubelet = longest(&|running| running.id.kubelet.chars().count());
        let case = longest(&|running| running.id.title().chars().count());
        let kubelet = kubelet.min(columns / 3);
        Self { kubelet, case: case.min(columns.saturating_sub(kubelet + PHASE_WIDTH)) }
    }
}

fn running_line(running: &RunningCase, run: &RunStart, now: Timestamp, names: NameWidths) -> Line {
    let mut line = Line::default();
    line.push_padded(&running.id.kubelet, Style::Plain, names.kubelet);
    line.gap();
    line.push_padded(&running.id.title(), Style::Plain, names.case);
    line.gap();
    line.push(&running.phase.to_string(), Style::Bold);
    // Simulated seconds beside real ones would be mistaken for them.
    if run.model.is_none() {
        line.raw(" ");
        let seconds = now.duration_since(running.since).as_secs().unsigned_abs();
        line.push(&clock(Duration::from_secs(seconds)), Style::Plain);
    }
    if !running.text.is_empty() {
        line.gap();
        line.push(&running.text, Style::Dim);
    }
    line
}

/// The number of verdicts, those first that need attention; `None` before the first verdict.
fn totals(state: &RunState) -> Option<Line> {
    let notes = [(state.interrupted > 0, "interrupted"), (state.timed_out, "timed out")];
    let notes = notes.iter().filter(|(is, _)| *is).map(|(_, note)| ((*note).to_owned(), Style::Yellow));
    let mut counts = state.verdict_counts();
    counts.sort_by_key(|(verdict, _)| !verdict.needs_attention());
    let counts = counts.iter().map(|(verdict, count)| (format!("{count} {verdict}"), Style::of(*verdict)));
    let mut line = Line::default();
    let mut gap = "";
    for (text, style) in notes.chain(counts) {
        line.raw(gap);
        line.push(&text, style);
        gap = ", ";
    }
    (!gap.is_empty()).then_some(line)
}

/// The bar, finished and planned cases, and times.
fn progress(state: &RunState, run: &RunStart, times: Times, columns: usize) -> Line {
    let mut line = Line::default();
    let (finished, planned) = finished_and_planned(state, run);
    if let Some(planned) = planned.filter(|planned| *planned > 0) {
        if columns >= MIN_COLUMNS_FOR_BAR {
            let width = (columns / 4).min(MAX_BAR_WIDTH);
            let filled = width * finished / planned;
            line.push(&"━".repeat(filled), Style::Green);
            line.push(&"─".repeat(width - filled), Style::Dim);
            line.raw(" ");
        }
        line.push(&format!("{finished}/{planned}"), Style::Bold);
    } else {
        line.push(&count_noun(finished, "run"), Style::Bold);
    }
    line.gap();
    line.push(&clock(times.elapsed), Style::Plain);
    if let Some(left) = planned.and_then(|planned| remaining(times.busy, finished, planned)) {
        line.push(&format!(", about {} left", clock(left)), Style::Plain);
    }
    if run.model.is_some() {
        let simulated = times.now.duration_since(run.at).as_secs().unsigned_abs();
        line.push(&format!(", {} simulated", clock(Duration::from_secs(simulated))), Style::Dim);
    }
    line
}

/// The number of finished runs of cases, and of planned ones if it is known. Skipped cases count in
/// neither.
fn finished_and_planned(state: &RunState, run: &RunStart) -> (usize, Option<usize>) {
    let skipped = state.ended.iter().filter(|ended| ended.result.verdict == Verdict::Skipped).count();
    let finished = state.ended.len() - skipped;
    let cells = (run.cases.len() * run.kubelets.len()).saturating_sub(skipped);
    let planned = run.repeat.map(|repeat| (cells * repeat as usize).max(finished));
    (finished, planned)
}

/// Estimates the remaining real time from the mean duration of the finished cases.
fn remaining(busy: Duration, finished: usize, planned: usize) -> Option<Duration> {
    let is_known = finished >= MIN_FINISHED && finished < planned;
    is_known.then(|| busy.mul_f64((planned - finished) as f64 / finished as f64))
}

/// Formats whole seconds: `8s`, `1m05s`, `2h00m`.
fn clock(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunEvent, RunEventKind, fixtures};

    /// The region at a time of the fixture run, which is also the real time.
    fn drawn(until: f64, columns: usize, room: usize) -> String {
        let now = fixtures::event(until, fixtures::run_started(&[], &[])).at;
        let events: Vec<RunEvent> =
            fixtures::full_run().into_iter().filter(|event| event.at <= now).collect();
        let elapsed = Duration::from_secs_f64(until);
        let times = Times { now, elapsed, busy: elapsed.saturating_sub(Duration::from_secs(30)) };
        let lines = draw_region(&fixtures::state_after(&events), times, columns, room);
        assert!(lines.len() <= room, "{} lines in {room}", lines.len());
        assert!(lines.iter().all(|line| line.width() < columns), "more than {columns} columns");
        lines.iter().map(|line| line.text(false) + "\n").collect()
    }

    #[test]
    fn region_by_time_and_size() {
        for (name, until, columns, room) in [
            ("cluster", 28.5, 80, 22),
            ("running", 37.5, 80, 22),
            ("narrow", 37.5, 40, 22),
            ("low", 37.5, 80, 3),
            ("failures", 48.5, 80, 22),
        ] {
            insta::assert_snapshot!(format!("region_{name}"), drawn(until, columns, room));
        }
    }

    #[test]
    fn fits_every_terminal_size() {
        for (columns, room) in (1..100).flat_map(|columns| (0..28).map(move |room| (columns, room))) {
            drawn(37.5, columns, room);
        }
    }

    #[test]
    fn many_running_cases_leave_room_for_the_bar() {
        let names: Vec<String> = (0..40).map(|number| format!("case-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut events = vec![fixtures::run_started(&["v1.32.13"], &names)];
        events.extend(names.iter().map(|name| RunEventKind::CaseStarted {
            id: fixtures::id("message", name, "v1.32.13", 1),
            node: "el-worker".to_owned(),
        }));
        let events: Vec<RunEvent> = events.into_iter().map(|kind| fixtures::event(0.0, kind)).collect();
        let times = Times { now: events[0].at, elapsed: Duration::ZERO, busy: Duration::ZERO };
        let lines = draw_region(&fixtures::state_after(&events), times, 80, 22);
        let texts: Vec<String> = lines.iter().map(|line| line.text(false)).collect();
        assert_eq!(texts.len(), MAX_LINES - 1, "no totals yet: {texts:?}");
        assert_eq!(texts[MAX_LINES - 3], "33 more cases running");
        assert!(texts[MAX_LINES - 2].ends_with(" 0/40  0s"), "{texts:?}");
    }

    #[test]
    fn simulated_time_is_named() {
        let mut started = fixtures::run_started(&["v1.32.13"], &["a", "b", "c", "d"]);
        if let RunEventKind::RunStarted { model, repeat, .. } = &mut started {
            *model = Some(fixtures::model());
            *repeat = Some(2);
        }
        let mut events = vec![fixtures::event(0.0, started)];
        for name in ["a", "b", "c"] {
            let ended = fixtures::case_ended(name, "v1.32.13", 1, Verdict::Passed, "why");
            events.push(fixtures::event(90.0, ended));
        }
        let now = fixtures::event(100.0, fixtures::run_started(&[], &[])).at;
        let times = Times { now, elapsed: Duration::from_secs(12), busy: Duration::from_secs(9) };
        let lines = draw_region(&fixtures::state_after(&events), times, 80, 22);
        let last = lines.last().unwrap().text(false);
        assert!(last.ends_with(" 3/8  12s, about 15s left, 1m40s simulated"), "{last}");
    }

    #[test]
    fn formats_whole_seconds() {
        for (seconds, text) in [(0, "0s"), (59, "59s"), (65, "1m05s"), (3600, "1h00m"), (7_500, "2h05m")] {
            assert_eq!(clock(Duration::from_secs(seconds)), text);
        }
    }
}
