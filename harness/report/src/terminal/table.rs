//! The live table: a row for each case, a column for each kubelet.

use jiff::Timestamp;

use super::style::{Line, Style};
use crate::markdown::{duration, needs_attention};
use crate::run_state::{EndedCase, RunStart, RunState, RunningCase};
use crate::stream::{CaseId, CaseInfo};
use evictlab_judge::Verdict;

/// Width of a cell with verdict and time: `inconclusive 12s`, `reproduced 1m05s`.
const FULL_CELL: usize = 16;
/// Width of a cell with a verdict alone: `inconclusive`.
const WORD_CELL: usize = 12;
const MIN_CELL: usize = 3;
const MIN_NAME: usize = 12;
const GAP: usize = 2;

/// Draws the table for a terminal of this size: fewer than `rows` lines, each narrower than
/// `columns`.
pub(super) fn draw_table(state: &RunState, now: Timestamp, columns: usize, rows: usize) -> Vec<Line> {
    let Some(run) = &state.run else { return vec![] };
    let widths = Widths::of(run, columns.saturating_sub(1));
    let mut lines = vec![];
    // Subtract the header, the totals, and the line of the cursor.
    let room = rows.saturating_sub(3);
    let hidden = run.cases.len().saturating_sub(room);
    if room > 0 {
        lines.push(header(run, widths));
        let shown = select_rows(state, run, room);
        for info in run.cases.iter().zip(&shown).filter_map(|(info, shown)| shown.then_some(info)) {
            lines.push(row(state, run, info, now, widths));
        }
        let left = room + 1 - lines.len();
        lines.extend(state.running.iter().filter(|running| !running.text.is_empty()).take(left).map(detail));
    }
    lines.push(totals(state, run, now, hidden));
    lines.into_iter().map(|line| line.cut(columns.saturating_sub(1))).collect()
}

#[derive(Clone, Copy)]
struct Widths {
    name: usize,
    cell: usize,
}

impl Widths {
    fn of(run: &RunStart, columns: usize) -> Self {
        let longest = run.cases.iter().map(|case| case.case.chars().count()).max().unwrap_or(0);
        let kubelets = run.kubelets.len().max(1);
        let cell_in = |name: usize| (columns.saturating_sub(name) / kubelets).saturating_sub(GAP);
        match cell_in(longest) {
            cell if cell >= WORD_CELL => Self { name: longest, cell: cell.min(FULL_CELL) },
            _ => {
                let name = columns
                    .saturating_sub(kubelets * (WORD_CELL + GAP))
                    .clamp(MIN_NAME.min(longest), longest);
                Self { name, cell: cell_in(name).clamp(MIN_CELL, WORD_CELL) }
            }
        }
    }
}

fn header(run: &RunStart, widths: Widths) -> Line {
    let mut line = Line::default();
    line.push_padded("", Style::Plain, widths.name);
    for kubelet in &run.kubelets {
        line.gap();
        line.push_padded(kubelet, Style::Bold, widths.cell);
    }
    line
}

/// Selects the cases to show if not all fit: running, then in need of attention, then waiting.
fn select_rows(state: &RunState, run: &RunStart, room: usize) -> Vec<bool> {
    let rank = |info: &CaseInfo| {
        let of = |id: &CaseId| info.matches(id, &id.kubelet);
        let mut ended = state.ended.iter().filter(|ended| of(&ended.id)).peekable();
        if state.running.iter().any(|running| of(&running.id)) {
            0
        } else if ended.peek().is_none() {
            2
        } else if ended.any(|ended| needs_attention(ended.judgement.verdict)) {
            1
        } else {
            3
        }
    };
    let mut order: Vec<(usize, usize)> = run.cases.iter().map(rank).zip(0..).collect();
    order.sort_unstable();
    let mut shown = vec![false; order.len()];
    order.iter().take(room).for_each(|(_, nth)| shown[*nth] = true);
    shown
}

fn row(state: &RunState, run: &RunStart, info: &CaseInfo, now: Timestamp, widths: Widths) -> Line {
    let mut line = Line::default();
    line.push_padded(&info.case, Style::Plain, widths.name);
    for kubelet in &run.kubelets {
        line.gap();
        let (word, time, style) = cell(state, info, kubelet, now);
        let whole = format!("{word} {time}");
        let text = if whole.chars().count() <= widths.cell { whole } else { word };
        line.push_padded(&text, style, widths.cell);
    }
    line
}

/// The word of a cell, its time or count, and their style.
fn cell(state: &RunState, info: &CaseInfo, kubelet: &str, now: Timestamp) -> (String, String, Style) {
    let running = state.running.iter().find(|running| info.matches(&running.id, kubelet));
    let ended: Vec<&EndedCase> = state.attempts(info, kubelet).collect();
    let worst = ended.iter().map(|ended| ended.judgement.verdict).find(|verdict| needs_attention(*verdict));
    if let Some(running) = running {
        return (
            running.phase.to_string(),
            elapsed(now, running.since),
            worst.map_or(Style::Bold, Style::of),
        );
    }
    match ended[..] {
        [] => ("waiting".to_owned(), String::new(), Style::Dim),
        [EndedCase { judgement, .. }] if judgement.verdict == Verdict::Skipped => {
            (judgement.verdict.to_string(), String::new(), Style::of(judgement.verdict))
        }
        [ended] => {
            let verdict = ended.judgement.verdict;
            (verdict.to_string(), duration(ended.seconds), Style::of(verdict))
        }
        [.., last] => {
            let verdict = worst.unwrap_or(last.judgement.verdict);
            let count = ended.iter().filter(|ended| ended.judgement.verdict == verdict).count();
            (verdict.to_string(), format!("×{count}"), Style::of(verdict))
        }
    }
}

fn detail(running: &RunningCase) -> Line {
    let mut line = Line::default();
    line.push(&format!("{} {}: {}", running.id.kubelet, running.id.title(), running.text), Style::Dim);
    line
}

fn totals(state: &RunState, run: &RunStart, now: Timestamp, hidden: usize) -> Line {
    let mut line = Line::default();
    line.push(&elapsed(now, run.at), Style::Bold);
    if hidden > 0 {
        line.raw(" ");
        line.push(&format!("({hidden} of {} cases hidden)", run.cases.len()), Style::Dim);
    }
    let mut gap = ": ";
    for (verdict, count) in state.verdict_counts() {
        line.raw(gap);
        line.push(&format!("{count} {verdict}"), Style::of(verdict));
        gap = ", ";
    }
    let running = state.running.len();
    let waiting = state
        .without_verdict()
        .filter(|(case, kubelet)| !state.running.iter().any(|running| case.matches(&running.id, kubelet)))
        .count();
    for (count, word) in [(running, "running"), (waiting, "waiting")] {
        if count > 0 {
            line.raw(gap);
            line.push(&format!("{count} {word}"), Style::Plain);
            gap = ", ";
        }
    }
    if state.interrupted > 0 {
        line.raw(gap);
        line.push("interrupted", Style::Yellow);
    }
    line
}

fn elapsed(now: Timestamp, since: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{:02}s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    /// The state of the fixture run at a time.
    fn state(until: f64) -> (RunState, Timestamp) {
        let now = fixtures::event(until, fixtures::run_started(&[], &[])).at;
        let mut state = RunState::default();
        fixtures::full_run().iter().filter(|event| event.at <= now).for_each(|event| state.apply(event));
        (state, now)
    }

    fn drawn(until: f64, columns: usize, rows: usize) -> String {
        let (state, now) = state(until);
        let lines = draw_table(&state, now, columns, rows);
        assert!(lines.len() < rows, "{} lines in {rows}", lines.len());
        lines
            .iter()
            .map(|line| {
                assert!(line.width() < columns, "{} columns in {columns}", line.width());
                line.text(false) + "\n"
            })
            .collect()
    }

    #[test]
    fn running() {
        insta::assert_snapshot!(drawn(37.5, 80, 24));
    }

    #[test]
    fn narrow_terminal() {
        insta::assert_snapshot!(drawn(48.5, 44, 24));
    }

    #[test]
    fn low_terminal_shows_important_rows() {
        // Three lines are left for six cases: one runs, two failed or are inconclusive.
        insta::assert_snapshot!(drawn(48.3, 80, 6));
    }

    #[test]
    fn fits_every_terminal_size() {
        for columns in 1..100 {
            for rows in 2..30 {
                drawn(37.5, columns, rows);
            }
        }
    }

    #[test]
    fn repeated_case_shows_worst_verdict() {
        let kubelet = "v1.32.13";
        let mut state = RunState::default();
        state.apply(&fixtures::event(0.0, fixtures::run_started(&[kubelet], &["requests-decide"])));
        for (attempt, verdict) in [(1, Verdict::Passed), (2, Verdict::Failed), (3, Verdict::Passed)] {
            state.apply(&fixtures::event(
                1.0,
                fixtures::case_ended("requests-decide", kubelet, attempt, verdict, ""),
            ));
        }
        let lines = draw_table(&state, fixtures::event(2.0, fixtures::run_started(&[], &[])).at, 80, 24);
        assert_eq!(lines[1].text(false), "requests-decide  failed ×1");
    }
}
