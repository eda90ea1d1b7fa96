//! One line per event that means something, with the seconds since the start: for CI logs, and for `build-log.txt`.

use std::collections::HashMap;
use std::io::Write;

use jiff::{SignedDuration, Timestamp};

use super::Manners;
use super::paint::{Ink, Line, markdown, one_line};
use crate::judge::{Phase, Verdict};
use crate::report::ledger::Ledger;
use crate::report::{CaseId, Planned, Report, ReportError, RunDir, RunEvent, What, account};

/// The least time between two lines about one case's progress in one phase.
const PROGRESS: SignedDuration = SignedDuration::from_secs(5);

/// The columns of a log: when, which kubelet, which case, what, and how.
#[derive(Debug, Default)]
pub(super) struct Lines {
    start: Option<Timestamp>,
    kubelet_width: usize,
    case_width: usize,
    progress: HashMap<CaseId, (Phase, Timestamp)>,
}

impl Lines {
    /// The lines for one event, none for most progress.
    pub fn of(&mut self, event: &RunEvent) -> Vec<Line> {
        let at = event.at;
        let start = *self.start.get_or_insert(at);
        let mut log = Log { lines: vec![], seconds: at.duration_since(start).as_secs_f64() };
        match &event.what {
            What::RunStarted { run, evictlab, backend, model, kubelets, cases } => {
                let longest =
                    |names: &mut dyn Iterator<Item = &str>| names.map(|name| name.chars().count()).max();
                self.kubelet_width =
                    longest(&mut kubelets.iter().map(String::as_str)).unwrap_or(0).max("cluster".len());
                self.case_width =
                    longest(&mut cases.iter().map(|case: &Planned| case.case.as_str())).unwrap_or(0);
                let cases =
                    if cases.len() == 1 { "1 case".to_owned() } else { format!("{} cases", cases.len()) };
                let on = kubelets.join(", ");
                let model = if model.is_some() { ", a model" } else { "" };
                log.add(
                    "",
                    Ink::Plain,
                    &format!("evictlab {evictlab}, run {run}: {cases} on {on}, backend {backend}{model}"),
                );
            }
            What::ClusterStarted { cluster, kubelets, reused } => {
                let verb = if *reused { "taking" } else { "making" };
                self.cluster(
                    &mut log,
                    cluster,
                    "",
                    Ink::Plain,
                    &format!("{verb} it for {}", kubelets.join(", ")),
                );
            }
            What::ClusterStep { cluster, text } => self.cluster(&mut log, cluster, "", Ink::Plain, text),
            What::ClusterReady { cluster, seconds, nodes } => {
                let nodes: Vec<_> = nodes.iter().map(|(node, kubelet)| format!("{node} {kubelet}")).collect();
                let text = format!("in {}: {}", account::duration(*seconds), nodes.join(", "));
                self.cluster(&mut log, cluster, "ready", Ink::Green, &text);
            }
            What::ClusterFailed { cluster, seconds, error } => {
                let text = format!("after {}: {error}", account::duration(*seconds));
                self.cluster(&mut log, cluster, "failed", Ink::Red, &text);
            }
            What::ClusterDeleted { cluster, seconds, kept, error } => match (error, kept) {
                (Some(error), _) => self.cluster(&mut log, cluster, "not deleted", Ink::Red, error),
                (None, Some(kept)) => self.cluster(&mut log, cluster, "kept", Ink::Yellow, kept),
                (None, None) => {
                    let text = format!("in {}", account::duration(*seconds));
                    self.cluster(&mut log, cluster, "deleted", Ink::Plain, &text);
                }
            },
            What::CaseStarted { id, node } => {
                self.case(&mut log, id, "start", Ink::Plain, &format!("on {node}"))
            }
            What::CaseStep { id, phase, text } => {
                self.progress.insert(id.clone(), (*phase, at));
                self.case(&mut log, id, &phase.to_string(), Ink::Plain, text);
            }
            What::CaseProgress { id, phase, text } => {
                let recent =
                    |(last, when): &(Phase, Timestamp)| last == phase && at.duration_since(*when) < PROGRESS;
                if !self.progress.get(id).is_some_and(recent) {
                    self.progress.insert(id.clone(), (*phase, at));
                    self.case(&mut log, id, &phase.to_string(), Ink::Plain, text);
                }
            }
            What::CaseEnded { id, seconds, judgement, .. } => {
                self.progress.remove(id);
                let bug = judgement.known_bug.as_ref().map(|bug| format!("{bug}: ")).unwrap_or_default();
                let mut text = format!("{bug}{}", judgement.why.trim_end());
                if judgement.verdict != Verdict::Skipped {
                    text.push_str(&format!(" ({})", account::duration(*seconds)));
                }
                let verdict = judgement.verdict;
                self.case(&mut log, id, &verdict.to_string(), Ink::of(verdict), &text);
            }
            What::Interrupted { stage: 1 } => {
                log.add(
                    "interrupted",
                    Ink::Yellow,
                    "stopping, collecting, cleaning up; once more to write the reports only",
                );
            }
            What::Interrupted { .. } => {
                log.add(
                    "interrupted",
                    Ink::Yellow,
                    "writing the reports only; `evictlab gc` removes what is left",
                );
            }
            What::RunEnded { .. } => {}
        }
        log.lines
    }

    fn cluster(&self, log: &mut Log, cluster: &str, word: &str, ink: Ink, text: &str) {
        let columns = [("cluster", self.kubelet_width), (cluster, self.case_width)];
        log.add_with(&columns, word, ink, text);
    }

    fn case(&self, log: &mut Log, id: &CaseId, word: &str, ink: Ink, text: &str) {
        let title = id.title();
        let columns = [(id.kubelet.as_str(), self.kubelet_width), (title.as_str(), self.case_width)];
        log.add_with(&columns, word, ink, text);
    }
}

struct Log {
    lines: Vec<Line>,
    seconds: f64,
}

impl Log {
    fn add(&mut self, word: &str, ink: Ink, text: &str) {
        self.add_with(&[], word, ink, text);
    }

    /// The first line of `text` beside the columns; the others below it, indented.
    fn add_with(&mut self, columns: &[(&str, usize)], word: &str, ink: Ink, text: &str) {
        let mut line = Line::default();
        line.push_padded_left(&format!("{:.1}s", self.seconds), 7);
        for (column, width) in columns {
            line.gap();
            line.push_padded(column, Ink::Plain, (*width).max(column.chars().count()));
        }
        if !word.is_empty() {
            line.gap();
            line.push(word, ink);
        }
        let mut texts = text.trim_end().lines();
        line.gap();
        line.push(texts.next().unwrap_or_default(), Ink::Plain);
        self.lines.push(line.cut(usize::MAX));
        for text in texts {
            let mut line = Line::default();
            line.push_padded("", Ink::Plain, 11);
            line.push(&one_line(text), Ink::Plain);
            self.lines.push(line);
        }
    }
}

/// The plain report.
#[derive(Debug)]
pub struct Plain<W> {
    name: &'static str,
    out: W,
    colour: bool,
    run_dir: Option<RunDir>,
    lines: Lines,
    ledger: Ledger,
}

impl<W: Write> Plain<W> {
    /// Writes to `out`, line by line. `name` is the report's, for errors. At its end it says where `run_dir` is.
    pub fn new(name: &'static str, out: W, manners: Manners, run_dir: Option<RunDir>) -> Self {
        let colour = manners.colour;
        Self { name, out, colour, run_dir, lines: Lines::default(), ledger: Ledger::default() }
    }
}

impl<W: Write + Send> Report for Plain<W> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.ledger.take(event);
        let colour = self.colour;
        let text: String =
            self.lines.of(event).iter().map(|line| format!("{}\n", line.text(colour))).collect();
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    fn finish(mut self: Box<Self>) -> Result<(), ReportError> {
        let account = account::of_run(&self.ledger, self.run_dir.as_ref());
        write!(self.out, "\n{}", markdown(&account, self.colour))?;
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::story;

    fn transcript(colour: bool, events: &[RunEvent]) -> String {
        let mut out = vec![];
        let manners = Manners { live: false, colour };
        let mut report = Box::new(Plain::new("terminal", &mut out, manners, None));
        events.iter().for_each(|event| report.take(event).unwrap());
        report.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_run_in_plain_lines() {
        insta::assert_snapshot!(transcript(false, &story::whole()));
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let ansi = regex::Regex::new("\x1b\\[[0-9]+m").unwrap();
        let [plain, coloured] = [false, true].map(|colour| transcript(colour, &story::whole()));
        assert_ne!(plain, coloured);
        assert_eq!(ansi.replace_all(&coloured, ""), plain);
        assert!(!plain.contains('\x1b'));
    }

    #[test]
    fn clusters_that_fail_or_stay_are_told() {
        let cluster = || "evictlab-7f3a".to_owned();
        let failed = What::ClusterFailed {
            cluster: cluster(),
            seconds: 65.0,
            error: "no image\nput one there".to_owned(),
        };
        let deleted = |kept: Option<&str>, error: Option<&str>| What::ClusterDeleted {
            cluster: cluster(),
            seconds: 1.0,
            kept: kept.map(str::to_owned),
            error: error.map(str::to_owned),
        };
        let events: Vec<_> = [
            story::run_started(&["v1.32.13"], &["requests-decide"]),
            What::ClusterStarted { cluster: cluster(), kubelets: vec!["v1.32.13".to_owned()], reused: true },
            failed,
            deleted(Some("--keep"), None),
            deleted(None, Some("Docker is gone")),
            What::Interrupted { stage: 2 },
        ]
        .into_iter()
        .map(|what| story::event(1.5, what))
        .collect();
        insta::assert_snapshot!(transcript(false, &events));
    }
}
