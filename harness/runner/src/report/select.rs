//! Which reports a run has.

use std::env;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use super::baseline::BaselineWriter;
use super::{
    Annotations, Evidence, JobSummary, JsonLines, Junit, Live, Manners, Plain, Prow, Recording, Report,
    ReportError, RunDir, Tally,
};

/// What a person asked for, beyond what every run leaves.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The run's directory.
    pub run_dir: RunDir,
    /// Whether standard output shows the run, and how; none for a run that says nothing there.
    pub stdout: Option<Manners>,
    /// Whether cases are run again and again: standard output tells how often and how many failed, and of runs that went alike the first
    /// leaves its evidence.
    pub stress: bool,
    /// `--record`: where to record each case.
    pub record: Option<PathBuf>,
    /// `--write-baseline`: where to write the verdicts.
    pub write_baseline: Option<PathBuf>,
}

/// Every report of a run: standard output, `build-log.txt`, Prow's files, JUnit, the stream, the evidence, and what
/// `--record` and GitHub Actions ask for.
///
/// # Errors
/// A file cannot be made.
pub fn reports(wanted: Wanted) -> Result<Vec<Box<dyn Report>>, ReportError> {
    let Wanted { run_dir, stdout, stress, record, write_baseline } = wanted;
    let shown = Some(run_dir.clone());
    let path = run_dir.path().join("build-log.txt");
    let log = File::create(&path).map_err(|source| ReportError::Write { path, source })?;
    let quiet = Manners { live: false, colour: false };
    let mut reports: Vec<Box<dyn Report>> = vec![
        // First what survives a kill, then what may be slow.
        Box::new(JsonLines::create(&run_dir)?),
        Box::new(Plain::new("build log", log, quiet, Some(RunDir::here()))),
    ];
    match stdout {
        Some(manners) if stress => reports.push(Box::new(Tally::new(io::stdout(), manners, run_dir.clone()))),
        Some(manners) if manners.live => {
            reports.push(Box::new(Live::new(io::stdout(), terminal_size::terminal_size, manners, shown)));
        }
        Some(manners) => reports.push(Box::new(Plain::new("terminal", io::stdout(), manners, shown))),
        None => {}
    }
    reports.push(Box::new(Prow::new(run_dir.clone())));
    reports.push(Box::new(Junit::new(&run_dir)));
    reports.push(Box::new(if stress { Evidence::sparing(run_dir) } else { Evidence::new(run_dir) }));
    if let Some(path) = write_baseline {
        reports.push(Box::new(BaselineWriter::new(path)));
    }
    if let Some(dir) = record {
        reports.push(Box::new(Recording::new(dir)?));
    }
    if env::var_os("GITHUB_ACTIONS").is_some() && stdout.is_some() {
        reports.push(Box::new(Annotations::new(io::stdout())));
    }
    if let Some(path) = env::var_os("GITHUB_STEP_SUMMARY") {
        reports.push(Box::new(JobSummary::new(path.into())));
    }
    Ok(reports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::report::{Reports, What, story};

    #[test]
    fn a_run_leaves_the_layout_that_its_readme_states() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(&dir.path().join("run")).unwrap();
        let record = Some(dir.path().join("recordings"));
        let reports = Reports::start(
            super::reports(Wanted { run_dir, stdout: None, stress: false, record, write_baseline: None })
                .unwrap(),
            Clock::wall(),
        )
        .unwrap();
        story::whole().into_iter().for_each(|event| reports.events().send(event.what));
        let text = "said eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2EifQ.c2lnbmF0dXJl".to_owned();
        reports.events().send(What::ClusterStep { cluster: "evictlab-7f3a".to_owned(), text });
        let finished = reports.finish();
        assert!(finished.failures.is_empty(), "{:?}", finished.failures);
        for path in [
            "run/started.json",
            "run/finished.json",
            "run/build-log.txt",
            "run/artifacts/events.jsonl",
            "run/artifacts/junit_evictlab.xml",
            "run/artifacts/message/requests-decide/v1.32.13/judgement.json",
            "run/artifacts/message/requests-decide/v1.32.13/pods-final.yaml",
            "recordings/v1.32.13/requests-decide.json",
        ] {
            assert!(dir.path().join(path).is_file(), "{path}");
        }
        let log = std::fs::read_to_string(dir.path().join("run/build-log.txt")).unwrap();
        assert!(log.contains("Evidence: `artifacts/message/") && !log.contains('\x1b'), "{log}");
        let events = std::fs::read_to_string(dir.path().join("run/artifacts/events.jsonl")).unwrap();
        for told in [log, events] {
            assert!(told.contains("said (left out: a credential)") && !told.contains("eyJ"), "{told}");
        }
    }
}
