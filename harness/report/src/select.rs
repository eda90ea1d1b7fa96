//! Selection of the reports of a run.

use std::env;
use std::io;
use std::path::PathBuf;

use crate::baseline_writer::BaselineWriter;
use crate::evidence_writer::{EvidenceWriter, KeptEvidence};
use crate::github::{Annotations, GithubLog, JobSummary};
use crate::jsonl::JsonLines;
use crate::junit::Junit;
use crate::output_options::{OutputFormat, OutputOptions, Verbosity};
use crate::output_queue::{AwaitOutput, InterruptStage, OutputQueue};
use crate::prow::Prow;
use crate::recording::Recording;
use crate::reserve::Reserve;
use crate::run_dir::{RunDir, create_private};
use crate::sink::{Report, ReportError};
use crate::terminal::{LiveTerminal, PlainLog, Tally};

/// Options that select the reports of a run.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// Directory of the run.
    pub run_dir: RunDir,
    /// Output on standard output; `None` if nothing is written there.
    pub stdout: Option<OutputOptions>,
    /// Stress run: plain output shows totals and failures.
    pub stress: bool,
    /// Attempts whose evidence is written.
    pub evidence: KeptEvidence,
    /// `--record`: directory of recordings.
    pub record: Option<PathBuf>,
    /// `--write-baseline`: path of the baseline.
    pub write_baseline: Option<PathBuf>,
    /// Interrupts, which limit the wait for the reader of standard output.
    pub interrupts: InterruptStage,
}

/// Creates the reports of a run: standard output, `build-log.txt`, Prow metadata, JUnit, events,
/// evidence, and on request a baseline, recordings, and reports for GitHub Actions.
///
/// # Errors
/// A file cannot be created.
pub fn reports(options: ReportOptions) -> Result<Vec<Box<dyn Report>>, ReportError> {
    let ReportOptions { run_dir, stdout, stress, evidence, record, write_baseline, interrupts } = options;
    let shown = Some(run_dir.clone());
    let path = run_dir.path().join("build-log.txt");
    let log = create_private(&path).map_err(|source| ReportError::Write { path, source })?;
    let verbose = OutputOptions {
        format: OutputFormat::Plain,
        verbosity: Verbosity::Verbose,
        color: false,
        hints: true,
    };
    let output = match stdout {
        Some(options) => Some((options, OutputQueue::start(io::stdout())?)),
        None => None,
    };
    let mut reports: Vec<Box<dyn Report>> = vec![
        // First: the others are completed in the space that it frees.
        Box::new(Reserve::occupy(&run_dir)?),
        // Reports that must survive a kill come first, slow reports later.
        Box::new(JsonLines::create(&run_dir)?),
        Box::new(PlainLog::new("build log", log, verbose, Some(RunDir::relative()))),
    ];
    if let Some((options, output)) = &output {
        let (options, output) = (*options, output.clone());
        reports.push(match options.format {
            OutputFormat::Json => Box::new(JsonLines::on_stdout(output)),
            OutputFormat::Plain | OutputFormat::Github if stress => {
                Box::new(Tally::new(output, options, run_dir.clone()))
            }
            OutputFormat::Github => Box::new(GithubLog::new(output, options, run_dir.clone())),
            OutputFormat::Live => {
                Box::new(LiveTerminal::new(output, terminal_size::terminal_size, options, shown))
            }
            OutputFormat::Plain => Box::new(PlainLog::new("terminal", output, options, shown)),
        });
    }
    reports.push(Box::new(Prow::new(run_dir.clone())));
    reports.push(Box::new(Junit::new(&run_dir)));
    reports.push(Box::new(EvidenceWriter::new(run_dir).keeping(evidence)));
    if let Some(path) = write_baseline {
        reports.push(Box::new(BaselineWriter::new(path)));
    }
    if let Some(dir) = record {
        reports.push(Box::new(Recording::new(dir)?));
    }
    if let Some(path) = env::var_os("GITHUB_STEP_SUMMARY") {
        reports.push(Box::new(JobSummary::new(path.into())));
    }
    // Last: the other reports must be complete even if no process reads standard output.
    if let Some((options, output)) = output {
        if options.format == OutputFormat::Github {
            reports.push(Box::new(Annotations::new(output.clone())));
        }
        reports.push(Box::new(AwaitOutput { output, interrupts }));
    }
    Ok(reports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::{Reports, RunEventKind, fixtures};

    #[test]
    fn run_directory_has_the_documented_layout() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(&dir.path().join("run")).unwrap();
        let record = Some(dir.path().join("recordings"));
        let reports = Reports::start(
            super::reports(ReportOptions {
                run_dir,
                stdout: None,
                stress: false,
                evidence: KeptEvidence::All,
                record,
                write_baseline: None,
                interrupts: InterruptStage::default(),
            })
            .unwrap(),
            Clock::wall(),
        )
        .unwrap();
        assert!(dir.path().join("run/artifacts/.reserve").exists());
        fixtures::full_run().into_iter().for_each(|event| reports.events().send(event.kind));
        let text = "returned eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2EifQ.c2lnbmF0dXJl".to_owned();
        reports.events().send(RunEventKind::ClusterStep { cluster: "evictlab-7f3a".to_owned(), text });
        let finished = reports.finish();
        assert!(finished.failures.is_empty(), "{:?}", finished.failures);
        assert!(!dir.path().join("run/artifacts/.reserve").exists());
        for path in [
            "run/started.json",
            "run/finished.json",
            "run/build-log.txt",
            "run/artifacts/events.jsonl",
            "run/artifacts/junit_evictlab.xml",
            "run/artifacts/message/requests-decide/v1.32.13/result.json",
            "run/artifacts/message/requests-decide/v1.32.13/pods-final.yaml",
            "recordings/v1.32.13/requests-decide.json",
        ] {
            assert!(dir.path().join(path).is_file(), "{path}");
        }
        let log = std::fs::read_to_string(dir.path().join("run/build-log.txt")).unwrap();
        assert!(log.contains("Evidence: `artifacts/message/") && !log.contains('\x1b'), "{log}");
        let events = std::fs::read_to_string(dir.path().join("run/artifacts/events.jsonl")).unwrap();
        for text in [log, events] {
            assert!(text.contains("returned (redacted)") && !text.contains("eyJ"), "{text}");
        }
    }
}
