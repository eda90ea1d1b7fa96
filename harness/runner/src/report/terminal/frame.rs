//! The live table: one line per case, one column per kubelet.

use jiff::Timestamp;

use super::paint::{Ink, Line};
use crate::judge::Verdict;
use crate::report::account::{self, needs_a_person};
use crate::report::ledger::{Ended, Ledger, Run, Running};
use crate::report::{CaseId, Planned};

/// `inconclusive 12s` and `reproduced 1m05s` fit.
const WHOLE_CELL: usize = 16;
/// `inconclusive` fits.
const WORD_CELL: usize = 12;
const LEAST_CELL: usize = 3;
const LEAST_NAME: usize = 12;
const GAP: usize = 2;

/// What a terminal of this size shows now: less than `rows` lines, each of less than `columns`.
pub(super) fn frame(ledger: &Ledger, now: Timestamp, columns: usize, rows: usize) -> Vec<Line> {
    let Some(run) = &ledger.run else { return vec![] };
    let widths = Widths::of(run, columns.saturating_sub(1));
    let mut lines = vec![];
    // The header, the totals, and the line that the cursor is on.
    let room = rows.saturating_sub(3);
    let hidden = run.cases.len().saturating_sub(room);
    if room > 0 {
        lines.push(header(run, widths));
        let shown = shown(ledger, run, room);
        for planned in run.cases.iter().zip(&shown).filter_map(|(planned, shown)| shown.then_some(planned)) {
            lines.push(row(ledger, run, planned, now, widths));
        }
        let left = room + 1 - lines.len();
        lines.extend(ledger.running.iter().filter(|running| !running.text.is_empty()).take(left).map(detail));
    }
    lines.push(totals(ledger, run, now, hidden));
    lines.into_iter().map(|line| line.cut(columns.saturating_sub(1))).collect()
}

#[derive(Clone, Copy)]
struct Widths {
    name: usize,
    cell: usize,
}

impl Widths {
    fn of(run: &Run, columns: usize) -> Self {
        let longest = run.cases.iter().map(|case| case.case.chars().count()).max().unwrap_or(0);
        let kubelets = run.kubelets.len().max(1);
        let cell_in = |name: usize| (columns.saturating_sub(name) / kubelets).saturating_sub(GAP);
        match cell_in(longest) {
            cell if cell >= WORD_CELL => Self { name: longest, cell: cell.min(WHOLE_CELL) },
            _ => {
                let name = columns
                    .saturating_sub(kubelets * (WORD_CELL + GAP))
                    .clamp(LEAST_NAME.min(longest), longest);
                Self { name, cell: cell_in(name).clamp(LEAST_CELL, WORD_CELL) }
            }
        }
    }
}

fn header(run: &Run, widths: Widths) -> Line {
    let mut line = Line::default();
    line.push_padded("", Ink::Plain, widths.name);
    for kubelet in &run.kubelets {
        line.gap();
        line.push_padded(kubelet, Ink::Bold, widths.cell);
    }
    line
}

/// Which cases are shown where not all can be: those on a node, then those that need a person, then those to come.
fn shown(ledger: &Ledger, run: &Run, room: usize) -> Vec<bool> {
    let rank = |planned: &Planned| {
        let of = |id: &CaseId| planned.is(id, &id.kubelet);
        let mut ended = ledger.ended.iter().filter(|ended| of(&ended.id)).peekable();
        if ledger.running.iter().any(|running| of(&running.id)) {
            0
        } else if ended.peek().is_none() {
            2
        } else if ended.any(|ended| needs_a_person(ended.judgement.verdict)) {
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

fn row(ledger: &Ledger, run: &Run, planned: &Planned, now: Timestamp, widths: Widths) -> Line {
    let mut line = Line::default();
    line.push_padded(&planned.case, Ink::Plain, widths.name);
    for kubelet in &run.kubelets {
        line.gap();
        let (word, time, ink) = cell(ledger, planned, kubelet, now);
        let whole = format!("{word} {time}");
        let text = if whole.chars().count() <= widths.cell { whole } else { word };
        line.push_padded(&text, ink, widths.cell);
    }
    line
}

/// A word, a time or a count, and their ink.
fn cell(ledger: &Ledger, planned: &Planned, kubelet: &str, now: Timestamp) -> (String, String, Ink) {
    let running = ledger.running.iter().find(|running| planned.is(&running.id, kubelet));
    let ended: Vec<&Ended> = ledger.attempts(planned, kubelet).collect();
    let worst = ended.iter().map(|ended| ended.judgement.verdict).find(|verdict| needs_a_person(*verdict));
    if let Some(running) = running {
        return (running.phase.to_string(), elapsed(now, running.since), worst.map_or(Ink::Bold, Ink::of));
    }
    match ended[..] {
        [] => ("waiting".to_owned(), String::new(), Ink::Dim),
        [Ended { judgement, .. }] if judgement.verdict == Verdict::Skipped => {
            (judgement.verdict.to_string(), String::new(), Ink::of(judgement.verdict))
        }
        [ended] => {
            let verdict = ended.judgement.verdict;
            (verdict.to_string(), account::duration(ended.seconds), Ink::of(verdict))
        }
        [.., last] => {
            let verdict = worst.unwrap_or(last.judgement.verdict);
            let count = ended.iter().filter(|ended| ended.judgement.verdict == verdict).count();
            (verdict.to_string(), format!("×{count}"), Ink::of(verdict))
        }
    }
}

fn detail(running: &Running) -> Line {
    let mut line = Line::default();
    line.push(&format!("{} {}: {}", running.id.kubelet, running.id.title(), running.text), Ink::Dim);
    line
}

fn totals(ledger: &Ledger, run: &Run, now: Timestamp, hidden: usize) -> Line {
    let mut line = Line::default();
    line.push(&elapsed(now, run.at), Ink::Bold);
    if hidden > 0 {
        line.raw(" ");
        line.push(&format!("({hidden} of {} cases are not shown)", run.cases.len()), Ink::Dim);
    }
    let mut gap = ": ";
    for (verdict, count) in ledger.counts() {
        line.raw(gap);
        line.push(&format!("{count} {verdict}"), Ink::of(verdict));
        gap = ", ";
    }
    let running = ledger.running.len();
    let waiting = ledger
        .without_verdict()
        .filter(|(case, kubelet)| !ledger.running.iter().any(|running| case.is(&running.id, kubelet)))
        .count();
    for (count, word) in [(running, "running"), (waiting, "waiting")] {
        if count > 0 {
            line.raw(gap);
            line.push(&format!("{count} {word}"), Ink::Plain);
            gap = ", ";
        }
    }
    if ledger.interrupted > 0 {
        line.raw(gap);
        line.push("interrupted", Ink::Yellow);
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
    use crate::report::story;

    /// The story up to a moment.
    fn ledger(until: f64) -> (Ledger, Timestamp) {
        let now = story::event(until, story::run_started(&[], &[])).at;
        let mut ledger = Ledger::default();
        story::whole().iter().filter(|event| event.at <= now).for_each(|event| ledger.take(event));
        (ledger, now)
    }

    fn drawn(until: f64, columns: usize, rows: usize) -> String {
        let (ledger, now) = ledger(until);
        let lines = frame(&ledger, now, columns, rows);
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
    fn a_run_under_way() {
        insta::assert_snapshot!(drawn(37.5, 80, 24));
    }

    #[test]
    fn a_run_near_its_end_on_a_narrow_terminal() {
        insta::assert_snapshot!(drawn(48.5, 44, 24));
    }

    #[test]
    fn what_matters_is_kept_on_a_low_terminal() {
        // Three lines are left for six cases: one runs, two have failed or are in doubt.
        insta::assert_snapshot!(drawn(48.3, 80, 6));
    }

    #[test]
    fn no_size_breaks_it() {
        for columns in 1..100 {
            for rows in 2..30 {
                drawn(37.5, columns, rows);
            }
        }
    }

    #[test]
    fn repeats_show_the_worst() {
        let kubelet = "v1.32.13";
        let mut ledger = Ledger::default();
        ledger.take(&story::event(0.0, story::run_started(&[kubelet], &["requests-decide"])));
        for (attempt, verdict) in [(1, Verdict::Passed), (2, Verdict::Failed), (3, Verdict::Passed)] {
            ledger.take(&story::event(
                1.0,
                story::case_ended("message", "requests-decide", kubelet, attempt, verdict, ""),
            ));
        }
        let lines = frame(&ledger, story::event(2.0, story::run_started(&[], &[])).at, 80, 24);
        assert_eq!(lines[1].text(false), "requests-decide  failed ×1");
    }
}
