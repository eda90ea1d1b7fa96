//! Per case and kubelet a directory with everything that was seen, for a person or another tool to judge again.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::account::needs_a_person;
use super::ledger::{Ended, Ledger};
use super::redact::{redacted, redacted_text};
use super::run_dir::{make_dir, write_file};
use super::timeline::{Timeline, picture};
use super::{Report, ReportError, RunDir, RunEvent, What, account};
use crate::observe::Observations;

/// Writes the directory of each case, [`RunDir::case_dir`], as the case ends. No credential gets into it.
#[derive(Debug)]
pub struct Evidence {
    run_dir: RunDir,
    ledger: Ledger,
    sparing: bool,
}

impl Evidence {
    /// Writes under `run_dir`.
    pub fn new(run_dir: RunDir) -> Self {
        Self { run_dir, ledger: Ledger::default(), sparing: false }
    }

    /// The same for a case that is run again and again: of runs that ended alike, and as they should, only the first is written.
    pub fn sparing(run_dir: RunDir) -> Self {
        Self { sparing: true, ..Self::new(run_dir) }
    }

    /// Whether another before it said the same.
    fn is_known(&self, last: &Ended, before: &[Ended]) -> bool {
        let alike = |other: &Ended| {
            let (one, other) = ((&last.id, &last.judgement), (&other.id, &other.judgement));
            (&one.0.suite, &one.0.case, &one.0.kubelet, one.1.verdict)
                == (&other.0.suite, &other.0.case, &other.0.kubelet, other.1.verdict)
        };
        self.sparing && !needs_a_person(last.judgement.verdict) && before.iter().any(alike)
    }
}

impl Report for Evidence {
    fn name(&self) -> &'static str {
        "evidence"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.ledger.take(event);
        let What::CaseEnded { id, evidence, .. } = &event.what else { return Ok(()) };
        let Some((ended, before)) = self.ledger.ended.split_last() else { return Ok(()) };
        if self.is_known(ended, before) {
            return Ok(());
        }
        let dir = self.run_dir.case_dir(id);
        make_dir(&dir)?;
        let timeline = evidence.as_deref().and_then(Timeline::of);
        if let Some(evidence) = evidence {
            write_observations(&dir, evidence)?;
        }
        if let Some(timeline) = &timeline {
            write_file(&dir.join("timeline.svg"), picture(timeline).as_bytes())?;
        }
        write_file(&dir.join("judgement.json"), &pretty(&ended.judgement)?)?;
        let mut summary = account::for_issue(&self.ledger, ended, evidence.as_deref());
        if timeline.is_some() {
            summary.push_str("\n![What the node had left against its threshold, and what each container used](timeline.svg)\n");
        }
        write_file(&dir.join("summary.md"), redacted_text(&summary).as_bytes())
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        Ok(())
    }
}

fn write_observations(dir: &Path, seen: &Observations) -> Result<(), ReportError> {
    let facts = json!({
        "scenario": seen.scenario,
        "kubeletVersion": seen.kubelet_version,
        "node": seen.node,
        "cgroup": seen.cgroup,
        "kubeletConfigOverrides": seen.kubelet_config_overrides,
        "tuneSeconds": seen.tune_seconds,
        "secondsToOutcome": seen.seconds_to_outcome,
        "seconds": seen.seconds,
        "evictionsCounted": seen.evictions_counted,
    });
    let map =
        |map: &Map<String, Value>| if map.is_empty() { Value::Null } else { Value::Object(map.clone()) };
    let history = match (&seen.pod_history, &seen.node_history[..]) {
        (pods, []) if pods.is_empty() => Value::Null,
        (pods, node) => json!({"pods": pods, "node": node}),
    };
    let objects: Vec<Value> = seen.objects.values().cloned().collect();
    for (name, documents) in [
        ("facts.yaml", &[facts][..]),
        ("pods-created.yaml", &seen.pods_created),
        ("pods-final.yaml", &seen.pods_final),
        ("events.yaml", &seen.events),
        ("node.yaml", std::slice::from_ref(&seen.node_status)),
        ("configz.yaml", std::slice::from_ref(&seen.configz)),
        ("refused.yaml", seen.refused.as_slice()),
        ("history.yaml", &[history][..]),
        ("answers.yaml", &[map(&seen.answers)]),
        ("objects.yaml", &objects),
    ] {
        if documents.iter().any(|document| !document.is_null()) {
            write_file(&dir.join(name), yaml(documents)?.as_bytes())?;
        }
    }
    for (pod, containers) in &seen.container_logs {
        for (container, log) in containers.as_object().into_iter().flatten() {
            let text = redacted_text(log.as_str().unwrap_or_default());
            write_file(&dir.join(format!("{pod}-{container}.log")), text.as_bytes())?;
        }
    }
    write_file(&dir.join("summary-before.json"), &pretty(&seen.summary_before)?)?;
    let samples = seen.samples.iter().map(|sample| format!("{}\n", redacted(sample)));
    write_file(&dir.join("samples.jsonl"), samples.collect::<String>().as_bytes())?;
    let log: String = seen.kubelet_log.iter().map(|line| format!("{line}\n")).collect();
    write_file(&dir.join("kubelet.log"), redacted_text(&log).as_bytes())
}

/// Documents as `kubectl create -f` takes them.
fn yaml(documents: &[Value]) -> Result<String, ReportError> {
    let form = |error: serde_yaml::Error| ReportError::Form { what: "evidence", reason: error.to_string() };
    let documents: Result<Vec<String>, _> =
        documents.iter().map(|document| serde_yaml::to_string(&redacted(document.clone()))).collect();
    Ok(documents.map_err(form)?.join("---\n"))
}

fn pretty(value: &impl Serialize) -> Result<Vec<u8>, ReportError> {
    let form = |error: serde_json::Error| ReportError::Form { what: "evidence", reason: error.to_string() };
    let value = redacted(serde_json::to_value(value).map_err(form)?);
    let mut text = serde_json::to_vec_pretty(&value).map_err(form)?;
    text.push(b'\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::judge::Verdict;
    use crate::report::story;

    fn written(evidence: Option<Observations>) -> BTreeMap<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(dir.path()).unwrap();
        let mut report = Evidence::new(run_dir.clone());
        report.take(&story::event(0.0, story::run_started(&["v1.32.13"], &["requests-decide"]))).unwrap();
        let mut what =
            story::case_ended("message", "requests-decide", "v1.32.13", 2, Verdict::Failed, "el1 is missing");
        if let What::CaseEnded { evidence: place, .. } = &mut what {
            *place = evidence.map(Arc::new);
        }
        report.take(&story::event(9.0, what)).unwrap();
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
    fn nothing_seen_is_lost() {
        let seen = story::evidence();
        let files = written(Some(seen.clone()));
        let names: Vec<_> = files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "configz.yaml",
                "events.yaml",
                "facts.yaml",
                "judgement.json",
                "kubelet.log",
                "node.yaml",
                "pods-created.yaml",
                "pods-final.yaml",
                "refused.yaml",
                "samples.jsonl",
                "summary-before.json",
                "summary.md",
                "timeline.svg",
            ]
        );
        let documents = |name: &str| -> Vec<Value> {
            files[name].split("---\n").map(|text| serde_yaml::from_str(text).unwrap()).collect()
        };
        assert_eq!(documents("pods-created.yaml"), seen.pods_created);
        assert_eq!(documents("pods-final.yaml"), seen.pods_final);
        assert_eq!(documents("events.yaml"), seen.events);
        assert_eq!(documents("node.yaml"), [seen.node_status]);
        assert_eq!(documents("configz.yaml"), [seen.configz]);
        assert_eq!(documents("refused.yaml"), [seen.refused.unwrap()]);
        assert_eq!(documents("facts.yaml")[0]["evictionsCounted"], Value::Object(seen.evictions_counted));
        let samples: Vec<Value> =
            files["samples.jsonl"].lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(samples, seen.samples.iter().collect::<Vec<_>>());
        assert_eq!(files["kubelet.log"].lines().collect::<Vec<_>>(), seen.kubelet_log);
        insta::assert_snapshot!(files["summary.md"]);
    }

    #[test]
    fn of_runs_that_went_alike_the_first_is_kept_and_every_failure() {
        let dir = tempfile::tempdir().unwrap();
        let mut report = Evidence::sparing(RunDir::at(dir.path()).unwrap());
        let verdicts = [Verdict::Passed, Verdict::Passed, Verdict::Failed, Verdict::Failed, Verdict::Passed];
        for (attempt, verdict) in (1..).zip(verdicts) {
            let what = story::case_ended("message", "requests-decide", "v1.32.13", attempt, verdict, "why");
            report.take(&story::event(0.0, what)).unwrap();
        }
        let kept = std::fs::read_dir(dir.path().join("artifacts/message/requests-decide")).unwrap();
        let mut names: Vec<_> = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["v1.32.13", "v1.32.13-3", "v1.32.13-4"]);
    }

    #[test]
    fn a_case_without_evidence_still_has_its_verdict() {
        let files = written(None);
        assert_eq!(files.keys().collect::<Vec<_>>(), ["judgement.json", "summary.md"]);
        assert!(files["judgement.json"].contains("el1 is missing"));
    }

    #[test]
    fn no_credential_lands_here() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"key": "c2VjcmV0"}});
        let kubeconfig = json!({"kind": "Config", "users": [{"user": {"client-key-data": "c2VjcmV0"}}]});
        let log = "loaded client-key-data: c2VjcmV0".to_owned();
        let all = vec![secret.clone(), kubeconfig.clone()];
        let files = written(Some(Observations {
            pods_created: all.clone(),
            pods_final: all.clone(),
            events: all.clone(),
            samples: all.iter().collect(),
            node_status: kubeconfig.clone(),
            summary_before: kubeconfig.clone(),
            configz: kubeconfig,
            refused: Some(secret),
            kubelet_log: vec![log],
            ..story::evidence()
        }));
        assert_eq!(files.len(), 12);
        for (name, text) in files {
            assert!(!text.contains("c2VjcmV0"), "{name}: {text}");
        }
    }
}
