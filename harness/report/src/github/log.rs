//! The log of a step of GitHub Actions: one line for each verdict, then the matrix, and a group for
//! each case that needs attention.

use std::hash::{BuildHasher, RandomState};
use std::io::Write;

use super::annotations::escape;
use crate::output_options::OutputOptions;
use crate::run_dir::RunDir;
use crate::run_event::RunEvent;
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};
use crate::summary::{LOG_COLUMNS, SummaryParts};
use crate::terminal::{LogFormatter, color_markdown};

/// Writes the log.
#[derive(Debug)]
pub struct GithubLog<W> {
    out: W,
    options: OutputOptions,
    run_dir: RunDir,
    formatter: LogFormatter,
    /// Ends the text in which GitHub does not look for commands; unknown to the text.
    token: String,
}

impl<W: Write> GithubLog<W> {
    /// Writes to `out`, the standard output of the step.
    pub fn new(out: W, options: OutputOptions, run_dir: RunDir) -> Self {
        // Keys of hash tables come from the random numbers of the system.
        let token = format!("evictlab-{:016x}", RandomState::new().hash_one(0));
        Self { out, options, run_dir, formatter: LogFormatter::default(), token }
    }

    /// Writes text without effect as commands, in a group if it has a title.
    fn write_group(&mut self, title: Option<&str>, text: &str) -> Result<(), ReportError> {
        let (color, token) = (self.options.color, &self.token);
        if let Some(title) = title {
            writeln!(self.out, "::group::{}", escape(title))?;
        }
        let text = color_markdown(text.trim(), color);
        write!(self.out, "::stop-commands::{token}\n{text}::{token}::\n")?;
        if title.is_some() {
            writeln!(self.out, "::endgroup::")?;
        }
        Ok(())
    }
}

impl<W: Write + Send> Report for GithubLog<W> {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn on_event(&mut self, event: &RunEvent, run: &RunState) -> Result<(), ReportError> {
        for line in self.formatter.lines_for(event, run, self.options.verbosity) {
            writeln!(self.out, "{}", line.text(self.options.color))?;
        }
        Ok(self.out.flush()?)
    }

    fn finish(mut self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        let SummaryParts { overview, attention, closing } =
            SummaryParts::of(run, Some(&self.run_dir), self.options, LOG_COLUMNS);
        for (title, text) in attention {
            self.write_group(Some(&title), &text)?;
        }
        self.write_group(None, &(overview + &closing))?;
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::output_options::Verbosity;
    use evictlab_judge::Verdict;

    fn written(events: &[RunEvent]) -> String {
        let options = fixtures::plain_output(Verbosity::Normal);
        let mut out = vec![];
        let mut report = Box::new(GithubLog::new(&mut out, options, RunDir::relative()));
        "token".clone_into(&mut report.token);
        let state = fixtures::deliver(&mut *report, events);
        report.finish(&state).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn github_log_of_a_run() {
        insta::assert_snapshot!(written(&fixtures::full_run()));
    }

    /// Reads a log as the runner of GitHub Actions does; returns the commands that it would follow.
    fn commands(log: &str) -> Vec<String> {
        let mut stopped: Option<String> = None;
        let mut commands = vec![];
        for line in log.lines().map(str::trim_start) {
            match &stopped {
                Some(token) if line == format!("::{token}::") => stopped = None,
                None if line.starts_with("::stop-commands::") => {
                    stopped = line.strip_prefix("::stop-commands::").map(str::to_owned);
                }
                None if line.starts_with("::") => commands.push(line.to_owned()),
                _ => {}
            }
        }
        commands
    }

    #[test]
    fn text_of_a_cluster_is_never_a_command() {
        let why = "exit\n::set-output name=a::b\n  ::add-mask::c\n::token::\n::error::d";
        let events = [
            fixtures::run_started(&["v1.32.13"], &["a"]),
            fixtures::case_ended("a", "v1.32.13", 1, Verdict::Failed, why),
        ];
        let events: Vec<_> = events.into_iter().map(|kind| fixtures::event(0.0, kind)).collect();
        let commands = commands(&written(&events));
        assert_eq!(commands, ["::group::failed: message/a on v1.32.13, 8.2s", "::endgroup::"]);
    }

    #[test]
    fn tokens_are_not_repeated() {
        let options = fixtures::plain_output(Verbosity::Normal);
        let [a, b] = [(), ()].map(|()| GithubLog::new(vec![], options, RunDir::relative()).token);
        assert_ne!(a, b);
    }
}
