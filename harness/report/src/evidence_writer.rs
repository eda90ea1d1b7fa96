//! A directory with the evidence of each case, for people and other tools.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::evidence_files;
use crate::facts::{Facts, ObjectHistory};
use crate::markdown::case_summary;
use crate::redact::{redacted, redacted_json, redacted_text};
use crate::run_dir::{RunDir, file_name, make_dir, write_file};
use crate::run_event::{RunEvent, RunEventKind};
use crate::run_state::{EndedCase, RunState};
use crate::sink::{Report, ReportError};
use crate::text::visible;
use crate::timeline::{Timeline, standalone_svg};
use evictlab_evidence::{Observations, Recorded};
use evictlab_judge::CaseResult;

/// Maximum length of the name of a log: file systems allow 255 bytes.
const MAX_LOG_NAME: usize = 200;

/// Attempts whose evidence is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptEvidence {
    /// All.
    #[default]
    All,
    /// Those that need attention; of others with the same verdict, only the first.
    WithoutRepeats,
    /// Those that need attention.
    Failures,
}

/// Writes [`RunDir::case_dir`] of each case as the case ends, without credentials.
#[derive(Debug)]
pub struct EvidenceWriter {
    run_dir: RunDir,
    kept: KeptEvidence,
}

impl EvidenceWriter {
    /// Writes under `run_dir`, for all attempts.
    pub fn new(run_dir: RunDir) -> Self {
        Self { run_dir, kept: KeptEvidence::All }
    }

    /// Writes only for these attempts.
    #[must_use]
    pub fn keeping(self, kept: KeptEvidence) -> Self {
        Self { kept, ..self }
    }

    fn keeps(&self, last: &EndedCase, before: &[EndedCase]) -> bool {
        let alike = |other: &EndedCase| {
            let (one, other) = ((&last.id, &last.result), (&other.id, &other.result));
            (&one.0.suite, &one.0.case, &one.0.kubelet, one.1.verdict)
                == (&other.0.suite, &other.0.case, &other.0.kubelet, other.1.verdict)
        };
        last.result.verdict.needs_attention()
            || match self.kept {
                KeptEvidence::All => true,
                KeptEvidence::WithoutRepeats => !before.iter().any(alike),
                KeptEvidence::Failures => false,
            }
    }
}

impl Report for EvidenceWriter {
    fn name(&self) -> &'static str {
        "evidence"
    }

    fn on_event(&mut self, event: &RunEvent, run: &RunState) -> Result<(), ReportError> {
        match &event.kind {
            RunEventKind::CaseRetried { id, try_number, result, evidence, .. } => {
                let dir = self.run_dir.try_dir(id, *try_number);
                write_case(&dir, result, evidence.as_deref()).map(|_| ())
            }
            RunEventKind::CaseEnded { id, evidence, .. } => {
                let Some((ended, before)) = run.ended.split_last() else { return Ok(()) };
                if !self.keeps(ended, before) {
                    return Ok(());
                }
                let dir = self.run_dir.case_dir(id);
                let has_timeline = write_case(&dir, &ended.result, evidence.as_deref())?;
                let mut summary = case_summary(run, ended, evidence.as_deref());
                if has_timeline {
                    summary.push_str(
                        "\n![Available amount on the node, thresholds, and usage of each container](timeline.svg)\n",
                    );
                }
                write_file(&dir.join(evidence_files::SUMMARY), visible(&redacted_text(&summary)).as_bytes())
            }
            RunEventKind::RunStarted { .. }
            | RunEventKind::ClusterStarted { .. }
            | RunEventKind::ClusterStep { .. }
            | RunEventKind::ClusterWarning { .. }
            | RunEventKind::ClusterReady { .. }
            | RunEventKind::ClusterFailed { .. }
            | RunEventKind::ClusterDeleted { .. }
            | RunEventKind::CaseStarted { .. }
            | RunEventKind::CaseStep { .. }
            | RunEventKind::CaseProgress { .. }
            | RunEventKind::CaseInterrupted { .. }
            | RunEventKind::Interrupted { .. }
            | RunEventKind::ReportFailed { .. }
            | RunEventKind::TimedOut
            | RunEventKind::RunEnded { .. } => Ok(()),
        }
    }
}

/// Writes the verdict and the evidence of one try. Returns whether the evidence has a timeline.
fn write_case(dir: &Path, result: &CaseResult, evidence: Option<&Observations>) -> Result<bool, ReportError> {
    make_dir(dir)?;
    let timeline = evidence.and_then(Timeline::from_observations);
    if let Some(evidence) = evidence {
        write_observations(dir, evidence)?;
    }
    if let Some(timeline) = &timeline {
        write_file(&dir.join(evidence_files::TIMELINE), standalone_svg(timeline).as_bytes())?;
    }
    write_file(&dir.join(evidence_files::RESULT), &pretty(result)?)?;
    Ok(timeline.is_some())
}

fn write_observations(dir: &Path, observations: &Observations) -> Result<(), ReportError> {
    let facts = to_value(&Facts::new(observations))?;
    let history = ObjectHistory::new(observations).as_ref().map(to_value).transpose()?;
    let answers = &observations.answers;
    let answers = (!answers.is_empty()).then(|| to_value(answers)).transpose()?;
    for (name, documents) in [
        (evidence_files::FACTS, vec![&facts]),
        (evidence_files::PODS_CREATED, recorded(&observations.pods_created)),
        (evidence_files::PODS_FINAL, recorded(&observations.pods_final)),
        (evidence_files::EVENTS, recorded(&observations.events)),
        (evidence_files::NODE, recorded([&observations.node_status])),
        (evidence_files::CONFIGZ, recorded([&observations.configz])),
        (evidence_files::API_REJECTION, recorded(&observations.api_rejection)),
        (evidence_files::HISTORY, Vec::from_iter(&history)),
        (evidence_files::ANSWERS, Vec::from_iter(&answers)),
        (evidence_files::OBJECTS, observations.objects.values().collect()),
    ] {
        if documents.iter().any(|document| !document.is_null()) {
            write_file(&dir.join(name), yaml(&documents, observations.namespace())?.as_bytes())?;
        }
    }
    for (pod, containers) in &observations.container_logs {
        for (container, log) in containers {
            let text = redacted_text(log);
            write_file(&dir.join(log_name(pod, container)), text.as_bytes())?;
        }
    }
    write_file(&dir.join(evidence_files::SUMMARY_BEFORE), &pretty(&observations.summary_before)?)?;
    let samples: String =
        observations.samples.texts().map(|sample| format!("{}\n", redacted_json(sample))).collect();
    write_file(&dir.join(evidence_files::SAMPLES), samples.as_bytes())?;
    let log: String = observations.kubelet_log.iter().map(|line| format!("{line}\n")).collect();
    write_file(&dir.join(evidence_files::KUBELET_LOG), redacted_text(&log).as_bytes())
}

/// Returns the file name of a log. An API server may return any names.
fn log_name(pod: &str, container: &str) -> String {
    let name: String = file_name(&format!("{pod}-{container}")).chars().take(MAX_LOG_NAME).collect();
    format!("{name}.log")
}

fn recorded<'a, T: 'a>(documents: impl IntoIterator<Item = &'a Recorded<T>>) -> Vec<&'a Value> {
    documents.into_iter().map(Recorded::json).collect()
}

/// Formats documents for `kubectl create -f`.
fn yaml(documents: &[&Value], own: Option<&str>) -> Result<String, ReportError> {
    let form = |error: serde_yaml::Error| ReportError::Form { what: "evidence", reason: error.to_string() };
    let documents: Result<Vec<String>, _> =
        documents.iter().map(|document| serde_yaml::to_string(&redacted((*document).clone(), own))).collect();
    Ok(documents.map_err(form)?.join("---\n"))
}

fn to_value(value: &impl Serialize) -> Result<Value, ReportError> {
    serde_json::to_value(value).map_err(form)
}

fn form(error: serde_json::Error) -> ReportError {
    ReportError::Form { what: "evidence", reason: error.to_string() }
}

fn pretty(value: &impl Serialize) -> Result<Vec<u8>, ReportError> {
    let value = redacted(to_value(value)?, None);
    let mut text = serde_json::to_vec_pretty(&value).map_err(form)?;
    text.push(b'\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::fixtures::{self, decoded};
    use evictlab_judge::Verdict;

    fn written(evidence: Option<Observations>) -> BTreeMap<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(dir.path()).unwrap();
        let mut report = EvidenceWriter::new(run_dir.clone());
        let started = fixtures::event(0.0, fixtures::run_started(&["v1.32.13"], &["requests-decide"]));
        let mut kind =
            fixtures::case_ended("requests-decide", "v1.32.13", 2, Verdict::Failed, "el1 is missing");
        if let RunEventKind::CaseEnded { evidence: place, .. } = &mut kind {
            *place = evidence.map(Arc::new);
        }
        fixtures::deliver(&mut report, &[started, fixtures::event(9.0, kind)]);
        let case_dir = dir.path().join("artifacts/message/requests-decide/v1.32.13-2");
        std::fs::read_dir(case_dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, std::fs::read_to_string(path).unwrap())
            })
            .collect()
    }

    #[test]
    fn writes_all_observations() {
        let seen = fixtures::evidence();
        let files = written(Some(seen.clone()));
        let names: Vec<_> = files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "api-rejection.yaml",
                "configz.yaml",
                "events.yaml",
                "facts.yaml",
                "kubelet.log",
                "node.yaml",
                "pods-created.yaml",
                "pods-final.yaml",
                "result.json",
                "samples.jsonl",
                "summary-before.json",
                "summary.md",
                "timeline.svg",
            ]
        );
        let documents = |name: &str| -> Vec<Value> {
            files[name].split("---\n").map(|text| serde_yaml::from_str(text).unwrap()).collect()
        };
        let written = |name: &str, expected: Vec<&Value>| {
            assert_eq!(documents(name).iter().collect::<Vec<_>>(), expected, "{name}");
        };
        written("pods-created.yaml", recorded(&seen.pods_created));
        written("pods-final.yaml", recorded(&seen.pods_final));
        written("events.yaml", recorded(&seen.events));
        written("node.yaml", recorded([&seen.node_status]));
        written("configz.yaml", recorded([&seen.configz]));
        written("api-rejection.yaml", recorded(&seen.api_rejection));
        assert_eq!(documents("facts.yaml")[0]["evictionsCounted"], json!(seen.evictions_counted));
        let samples: Vec<Value> =
            files["samples.jsonl"].lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(samples, seen.samples.iter().collect::<Vec<_>>());
        assert_eq!(files["kubelet.log"].lines().collect::<Vec<_>>(), seen.kubelet_log);
        insta::assert_snapshot!(files["summary.md"]);
    }

    #[test]
    fn failures_are_always_kept() {
        let all = ["v1.32.13", "v1.32.13-2", "v1.32.13-3", "v1.32.13-4", "v1.32.13-5"];
        for (kept, names) in [
            (KeptEvidence::All, &all[..]),
            (KeptEvidence::WithoutRepeats, &["v1.32.13", "v1.32.13-3", "v1.32.13-4"]),
            (KeptEvidence::Failures, &["v1.32.13-3", "v1.32.13-4"]),
        ] {
            assert_eq!(kept_attempts(kept), names, "{kept:?}");
        }
    }

    fn kept_attempts(kept: KeptEvidence) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let mut report = EvidenceWriter::new(RunDir::at(dir.path()).unwrap()).keeping(kept);
        let verdicts = [Verdict::Passed, Verdict::Passed, Verdict::Failed, Verdict::Failed, Verdict::Passed];
        let ended = |(attempt, verdict)| {
            fixtures::event(0.0, fixtures::case_ended("requests-decide", "v1.32.13", attempt, verdict, "why"))
        };
        let events: Vec<RunEvent> = (1..).zip(verdicts).map(ended).collect();
        fixtures::deliver(&mut report, &events);
        let kept = std::fs::read_dir(dir.path().join("artifacts/message/requests-decide")).unwrap();
        let mut names: Vec<_> = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn each_try_keeps_its_evidence() {
        let dir = tempfile::tempdir().unwrap();
        let mut report = EvidenceWriter::new(RunDir::at(dir.path()).unwrap());
        let retried = RunEventKind::CaseRetried {
            id: fixtures::id("message", "requests-decide", "v1.32.13", 1),
            try_number: 1,
            text: "retrying".to_owned(),
            result: Arc::new(CaseResult::without_evidence(Verdict::Inconclusive, "not reached")),
            evidence: Some(Arc::new(fixtures::evidence())),
        };
        let ended = fixtures::case_ended("requests-decide", "v1.32.13", 1, Verdict::Passed, "as stated");
        let events = [retried, ended].map(|kind| fixtures::event(0.0, kind));
        fixtures::deliver(&mut report, &events);
        let case_dir = dir.path().join("artifacts/message/requests-decide/v1.32.13");
        let read = |path: &str| std::fs::read_to_string(case_dir.join(path)).unwrap();
        assert!(read("try-1/result.json").contains("not reached"));
        assert!(read("result.json").contains("as stated"));
        assert_eq!(read("try-1/events.yaml").is_empty(), fixtures::evidence().events.is_empty());
    }

    #[test]
    fn case_without_evidence_has_a_verdict() {
        let files = written(None);
        assert_eq!(files.keys().collect::<Vec<_>>(), ["result.json", "summary.md"]);
        assert!(files["result.json"].contains("el1 is missing"));
    }

    #[test]
    fn logs_stay_in_the_directory_of_the_case() {
        let log = |container: &str| BTreeMap::from([(container.to_owned(), "text".to_owned())]);
        let container_logs = BTreeMap::from([
            ("../../../../evil".to_owned(), log("/../c")),
            ("/etc/evil".to_owned(), log("c")),
            ("p".repeat(253), log(&"c".repeat(63))),
        ]);
        let files = written(Some(Observations { container_logs, ..fixtures::evidence() }));
        let logs: Vec<&String> =
            files.keys().filter(|name| *name != "kubelet.log" && name.ends_with(".log")).collect();
        assert_eq!(logs.len(), 3, "{logs:?}");
    }

    #[test]
    fn only_the_user_reads_the_files() {
        use std::os::unix::fs::PermissionsExt;

        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(&dir.path().join("run")).unwrap();
        let (mut evidence, mut lines) =
            (EvidenceWriter::new(run_dir.clone()), crate::JsonLines::create(&run_dir).unwrap());
        fixtures::deliver(&mut evidence, &fixtures::full_run());
        fixtures::deliver(&mut lines, &fixtures::full_run());
        let mut open = vec![dir.path().join("run")];
        let mut count = 0;
        while let Some(path) = open.pop() {
            let metadata = std::fs::metadata(&path).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o077, 0, "{}", path.display());
            count += usize::from(metadata.is_file());
            if metadata.is_dir() {
                open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        assert!(count > 10, "{count} files");
    }

    #[test]
    fn writes_no_credentials() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"key": "c2VjcmV0"}});
        let kubeconfig = json!({"users": [{"user": {"client-key-data": "c2VjcmV0"}}]});
        let log = "loaded client-key-data: c2VjcmV0".to_owned();
        let files = written(Some(Observations {
            pods_created: vec![decoded(kubeconfig.clone())],
            pods_final: vec![decoded(kubeconfig.clone())],
            events: vec![decoded(kubeconfig.clone())],
            samples: [&secret, &kubeconfig].into_iter().collect(),
            node_status: decoded(kubeconfig.clone()),
            summary_before: decoded(kubeconfig.clone()),
            configz: decoded(kubeconfig.clone()),
            objects: BTreeMap::from([
                ("secret".to_owned(), secret.clone()),
                ("config".to_owned(), kubeconfig),
            ]),
            api_rejection: Some(decoded(secret)),
            kubelet_log: vec![log],
            ..fixtures::evidence()
        }));
        assert_eq!(files.len(), 13);
        for (name, text) in files {
            assert!(!text.contains("c2VjcmV0"), "{name}: {text}");
        }
    }
}
