//! Plain text log with one line for each relevant event: for CI logs and `build-log.txt`.

use std::collections::HashMap;
use std::io::Write;

use jiff::{SignedDuration, Timestamp};

use super::style::{Line, Style};
use super::summary::write_summary;
use crate::output_options::{OutputOptions, Verbosity};
use crate::run_dir::RunDir;
use crate::run_event::{CaseId, CaseInfo, RunEvent, RunEventKind};
use crate::run_state::{RunState, retry_text};
use crate::sink::{Report, ReportError};
use crate::text::{count_noun, duration, first_of};
use evictlab_judge::{CaseResult, Phase, Verdict};

/// Minimum time between two progress lines of a case in one phase.
const PROGRESS_LINE_INTERVAL: SignedDuration = SignedDuration::from_secs(5);

/// Nodes of a cluster that a line lists.
const MAX_NODES: usize = 20;

/// Text of [`RunEventKind::TimedOut`].
const TIMED_OUT: &str = "the time limit of the run is reached; stopping and cleaning up";

/// Width of the column with the seconds since the start of the run.
const TIME_WIDTH: usize = 7;

/// Indentation of the second and later lines of a text.
pub(super) const CONTINUATION_INDENT: usize = 11;

/// Formats events as lines in columns: time, kubelet, case, phase or verdict, text.
#[derive(Debug, Default)]
pub(crate) struct LogFormatter {
    start: Option<Timestamp>,
    kubelet_width: usize,
    case_width: usize,
    progress: HashMap<CaseId, (Phase, Timestamp)>,
}

impl LogFormatter {
    /// Formats one event, unless the output at this verbosity leaves it out.
    pub(crate) fn lines_for(&mut self, event: &RunEvent, run: &RunState, verbosity: Verbosity) -> Vec<Line> {
        let lines = self.lines(event, run);
        if verbosity >= min_verbosity(&event.kind, run) { lines } else { vec![] }
    }

    /// Formats one event. Returns no lines for most progress events.
    pub(super) fn lines(&mut self, event: &RunEvent, run: &RunState) -> Vec<Line> {
        let start = *self.start.get_or_insert(event.at);
        let mut log = LogLines { lines: vec![], seconds: event.at.duration_since(start).as_secs_f64() };
        self.add_event(&mut log, event, run);
        log.lines
    }

    fn add_event(&mut self, log: &mut LogLines, event: &RunEvent, state: &RunState) {
        match &event.kind {
            RunEventKind::RunStarted { run_id, evictlab, backend, model, kubelets, cases, .. } => {
                self.set_widths(kubelets, cases);
                let (cases, kubelets) = (count_noun(cases.len(), "case"), kubelets.join(", "));
                let model = if model.is_some() { ", a model" } else { "" };
                let on = format!("{cases} on {kubelets}, backend {backend}{model}");
                log.add("", Style::Plain, &format!("evictlab {evictlab}, run {run_id}: {on}"));
            }
            RunEventKind::ClusterStarted { cluster, kubelets, reused } => {
                let start = if *reused { "reusing for " } else { "creating for " };
                self.add_cluster(log, cluster, "", Style::Plain, &(start.to_owned() + &kubelets.join(", ")));
            }
            RunEventKind::ClusterStep { cluster, text } => {
                self.add_cluster(log, cluster, "", Style::Plain, text);
            }
            RunEventKind::ClusterWarning { cluster, text } => {
                self.add_cluster(log, cluster, "warning", Style::Yellow, text);
            }
            RunEventKind::ClusterReady { cluster, seconds, nodes } => {
                let text = format!("in {}: {}", duration(*seconds), kubelets_of_nodes(nodes));
                self.add_cluster(log, cluster, "ready", Style::Green, &text);
            }
            RunEventKind::ClusterFailed { cluster, seconds, error, .. } => {
                let text = format!("after {}: {error}", duration(*seconds));
                self.add_cluster(log, cluster, "failed", Style::Red, &text);
            }
            RunEventKind::ClusterDeleted { cluster, seconds, kept, error } => {
                let (word, style, text) = teardown(*seconds, kept.as_deref(), error.as_deref());
                self.add_cluster(log, cluster, word, style, &text);
            }
            RunEventKind::CaseStarted { id, node } => {
                self.add_case(log, id, "start", Style::Plain, &format!("on {node}"));
            }
            RunEventKind::CaseProgress { id, phase, .. } if !self.is_due(id, *phase, event.at) => {}
            RunEventKind::CaseStep { id, phase, text } | RunEventKind::CaseProgress { id, phase, text } => {
                self.progress.insert(id.clone(), (*phase, event.at));
                self.add_case(log, id, &phase.to_string(), Style::Plain, text);
            }
            RunEventKind::CaseRetried { id, text, result, .. } => {
                self.add_verdict(log, id, result.verdict, &retry_text(text, result));
            }
            RunEventKind::CaseEnded { id, seconds, result, .. } => {
                self.progress.remove(id);
                let is_expected_failure = result.verdict.needs_attention() && state.expects(id, result);
                let expected = if is_expected_failure { ", as the baseline expects" } else { "" };
                self.add_verdict(log, id, result.verdict, &(result_text(result, *seconds) + expected));
            }
            RunEventKind::CaseInterrupted { id, .. } => {
                self.progress.remove(id);
                self.add_case(log, id, "interrupted", Style::Yellow, "no verdict");
            }
            RunEventKind::Interrupted { stage } => {
                log.add("interrupted", Style::Yellow, interrupt_text(*stage));
            }
            RunEventKind::ReportFailed { error } => log.add("not written", Style::Red, error),
            RunEventKind::TimedOut => log.add("timed out", Style::Yellow, TIMED_OUT),
            RunEventKind::RunEnded { .. } => {}
        }
    }

    fn set_widths(&mut self, kubelets: &[String], cases: &[CaseInfo]) {
        let longest = |names: &mut dyn Iterator<Item = &str>| names.map(|name| name.chars().count()).max();
        let kubelet_width = longest(&mut kubelets.iter().map(String::as_str)).unwrap_or(0);
        self.kubelet_width = kubelet_width.max("cluster".len());
        self.case_width = longest(&mut cases.iter().map(|info| info.case.as_str())).unwrap_or(0);
    }

    /// Returns whether a progress line of a case is due.
    fn is_due(&self, id: &CaseId, phase: Phase, at: Timestamp) -> bool {
        self.progress
            .get(id)
            .is_none_or(|(last, when)| *last != phase || at.duration_since(*when) >= PROGRESS_LINE_INTERVAL)
    }

    fn add_cluster(&self, log: &mut LogLines, cluster: &str, word: &str, style: Style, text: &str) {
        let columns = [("cluster", self.kubelet_width), (cluster, self.case_width)];
        log.add_with_columns(&columns, word, style, text);
    }

    fn add_case(&self, log: &mut LogLines, id: &CaseId, word: &str, style: Style, text: &str) {
        let title = id.title();
        let columns = [(id.kubelet.as_str(), self.kubelet_width), (title.as_str(), self.case_width)];
        log.add_with_columns(&columns, word, style, text);
    }

    fn add_verdict(&self, log: &mut LogLines, id: &CaseId, verdict: Verdict, text: &str) {
        self.add_case(log, id, &verdict.to_string(), Style::of(verdict), text);
    }
}

/// The verbosity from which an event gets its lines.
fn min_verbosity(kind: &RunEventKind, run: &RunState) -> Verbosity {
    match kind {
        RunEventKind::CaseStarted { .. }
        | RunEventKind::CaseStep { .. }
        | RunEventKind::CaseProgress { .. } => Verbosity::Verbose,
        RunEventKind::ClusterWarning { .. }
        | RunEventKind::ClusterFailed { .. }
        | RunEventKind::ClusterDeleted { error: Some(_), .. }
        | RunEventKind::Interrupted { .. }
        | RunEventKind::ReportFailed { .. }
        | RunEventKind::TimedOut => Verbosity::Quiet,
        RunEventKind::CaseEnded { id, result, .. }
            if result.verdict.needs_attention() && !run.expects(id, result) =>
        {
            Verbosity::Quiet
        }
        _ => Verbosity::Normal,
    }
}

/// Names and kubelets of the nodes of a cluster.
fn kubelets_of_nodes(nodes: &[(String, String)]) -> String {
    let nodes: Vec<_> = nodes.iter().map(|(node, kubelet)| format!("{node} {kubelet}")).collect();
    first_of(&nodes, MAX_NODES)
}

/// Word, style and text of the end of a cluster.
fn teardown(seconds: f64, kept: Option<&str>, error: Option<&str>) -> (&'static str, Style, String) {
    match (error, kept) {
        (Some(error), _) => ("not deleted", Style::Red, error.to_owned()),
        (None, Some(kept)) => ("kept", Style::Yellow, kept.to_owned()),
        (None, None) => ("deleted", Style::Plain, format!("in {}", duration(seconds))),
    }
}

fn interrupt_text(stage: u8) -> &'static str {
    match stage {
        1 => "stopping and cleaning up; interrupt again to skip the cleanup",
        _ => "skipping the cleanup; `evictlab gc` removes leftovers",
    }
}

/// The reason for a verdict, with the known bug and the duration.
fn result_text(result: &CaseResult, seconds: f64) -> String {
    let bug = result.known_bug.as_ref().map(|bug| format!("{bug}: ")).unwrap_or_default();
    let reason = result.why.trim_end();
    match result.verdict {
        Verdict::Skipped => format!("{bug}{reason}"),
        _ => format!("{bug}{reason} ({})", duration(seconds)),
    }
}

struct LogLines {
    lines: Vec<Line>,
    seconds: f64,
}

impl LogLines {
    fn add(&mut self, word: &str, style: Style, text: &str) {
        self.add_with_columns(&[], word, style, text);
    }

    /// Adds the first line of `text` beside the columns and the other lines indented below it.
    fn add_with_columns(&mut self, columns: &[(&str, usize)], word: &str, style: Style, text: &str) {
        let mut line = Line::default();
        line.push_padded_left(&format!("{:.1}s", self.seconds), TIME_WIDTH);
        for (column, width) in columns {
            line.gap();
            line.push_padded(column, Style::Plain, (*width).max(column.chars().count()));
        }
        if !word.is_empty() {
            line.gap();
            line.push(word, style);
        }
        let mut texts = text.trim_end().lines();
        line.gap();
        line.push(texts.next().unwrap_or_default(), Style::Plain);
        self.lines.push(line.trim_end());
        for text in texts {
            let mut line = Line::default();
            line.indent(CONTINUATION_INDENT);
            line.push(text, Style::Plain);
            self.lines.push(line);
        }
    }
}

/// The plain text log.
#[derive(Debug)]
pub struct PlainLog<W> {
    name: &'static str,
    out: W,
    options: OutputOptions,
    run_dir: Option<RunDir>,
    formatter: LogFormatter,
    /// True after the first line.
    has_lines: bool,
}

impl<W: Write> PlainLog<W> {
    /// Writes to `out`, line by line, and at the end the summary with the path of `run_dir`.
    /// `name` is the report's name in error messages.
    pub fn new(name: &'static str, out: W, options: OutputOptions, run_dir: Option<RunDir>) -> Self {
        Self { name, out, options, run_dir, formatter: LogFormatter::default(), has_lines: false }
    }
}

impl<W: Write + Send> Report for PlainLog<W> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn on_event(&mut self, event: &RunEvent, run: &RunState) -> Result<(), ReportError> {
        let OutputOptions { verbosity, color, .. } = self.options;
        let lines = self.formatter.lines_for(event, run, verbosity);
        let text: String = lines.iter().map(|line| format!("{}\n", line.text(color))).collect();
        self.has_lines |= !text.is_empty();
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    fn finish(mut self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        Ok(write_summary(&mut self.out, run, self.run_dir.as_ref(), self.options, self.has_lines)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn transcript(color: bool, events: &[RunEvent]) -> String {
        written(OutputOptions { color, ..fixtures::plain_output(Verbosity::Verbose) }, events)
    }

    fn written(options: OutputOptions, events: &[RunEvent]) -> String {
        let mut out = vec![];
        let mut report = Box::new(PlainLog::new("terminal", &mut out, options, None));
        let state = fixtures::deliver(&mut *report, events);
        report.finish(&state).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn plain_log_of_a_run() {
        insta::assert_snapshot!(transcript(false, &fixtures::full_run()));
    }

    #[test]
    fn output_by_verbosity() {
        for (name, verbosity) in [("normal", Verbosity::Normal), ("quiet", Verbosity::Quiet)] {
            let text = written(fixtures::plain_output(verbosity), &fixtures::full_run());
            insta::assert_snapshot!(format!("{name}_output_of_a_run"), text);
        }
    }

    #[test]
    fn expected_failures_are_not_shown_as_new_ones() {
        let expected = [("a", Verdict::Failed), ("b", Verdict::Passed)];
        let events = fixtures::run_with_baseline(&expected, &[Verdict::Failed, Verdict::Failed]);
        let [quiet, normal] = [Verbosity::Quiet, Verbosity::Normal]
            .map(|verbosity| written(fixtures::plain_output(verbosity), &events));
        assert!(!quiet.contains("message/a") && quiet.contains("### failed: message/b"), "{quiet}");
        assert!(normal.contains("so it was (8.2s), as the baseline expects"), "{normal}");
        assert!(normal.contains("Expected failures: 1\n- failed: message/a on v1.32.13\n"), "{normal}");
    }

    #[test]
    fn colors_only_add_escape_sequences() {
        let ansi = regex::Regex::new("\x1b\\[[0-9]+m").unwrap();
        let [plain, colored] = [false, true].map(|color| transcript(color, &fixtures::full_run()));
        assert_ne!(plain, colored);
        assert_eq!(ansi.replace_all(&colored, ""), plain);
        assert!(!plain.contains('\x1b'));
    }

    #[test]
    fn shows_failed_and_kept_clusters() {
        let cluster = || "evictlab-7f3a".to_owned();
        let failed = RunEventKind::ClusterFailed {
            cluster: cluster(),
            seconds: 65.0,
            error: "no image\nput one there".to_owned(),
            cause: None,
        };
        let deleted = |kept: Option<&str>, error: Option<&str>| RunEventKind::ClusterDeleted {
            cluster: cluster(),
            seconds: 1.0,
            kept: kept.map(str::to_owned),
            error: error.map(str::to_owned),
        };
        let events: Vec<_> = [
            fixtures::run_started(&["v1.32.13"], &["requests-decide"]),
            RunEventKind::ClusterStarted {
                cluster: cluster(),
                kubelets: vec!["v1.32.13".to_owned()],
                reused: true,
            },
            RunEventKind::ClusterWarning {
                cluster: cluster(),
                text: "el-worker: the kubelet exits at every start: why\nhelp: what to do".to_owned(),
            },
            failed,
            deleted(Some("--keep"), None),
            deleted(None, Some("Docker is gone")),
            RunEventKind::Interrupted { stage: 2 },
        ]
        .into_iter()
        .map(|kind| fixtures::event(1.5, kind))
        .collect();
        insta::assert_snapshot!(transcript(false, &events));
    }
}
