//! The list of documents.

use std::collections::BTreeMap;

use evictlab_case::{ListedCase, json_schema};
use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::{ClusterRecord, ListedCluster, Owner, ServedCluster};
use evictlab_evidence::{Observations, SampleDocument, StepAnswer};
use evictlab_explain::Explanation;
use evictlab_judge::CaseResult;
use evictlab_report::baseline::Baseline;
use evictlab_report::{
    Comparison, Facts, History, KubeletParity, KubeletResults, ObjectHistory, ProwFinished, ProwStarted,
    RunEvent, output_schema,
};
use evictlab_runner::RunPreview;
use serde_json::Value;

use crate::bench::FigureResult;
use crate::bisect::BisectResult;
use crate::doctor::Diagnosis;
use crate::gc_report::GcEntry;
use crate::git_bisect::{CommitBisectResult, SearchFile};
use crate::job::{IndexReport, JobView};
use crate::lint::LintReport;
use crate::mutants::{DefectInfo, Matrix};
use crate::verify::VerifyResult;
use crate::watch::NodeView;

/// Version of the keys of all documents. It changes when a key is renamed or removed; the changelog
/// has a section for each version.
pub const FORMAT_VERSION: u32 = 4;

/// Name of the document that people write.
const CASE: &str = "case";

/// A document in JSON or YAML.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// Name: of the file, or of the command whose `--json` prints the document.
    pub name: &'static str,
    /// Content, without a full stop.
    pub about: &'static str,
    /// Place of the document, as Markdown.
    pub place: &'static str,
    schema: fn() -> Value,
}

impl Document {
    /// Returns the document with a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        DOCUMENTS.iter().find(|document| document.name == name)
    }

    /// Returns the JSON Schema (draft 2020-12) of the document. It names every key; that of a
    /// document that evictlab writes also names the version of the format, as `$comment`.
    pub fn schema(&self) -> Value {
        let mut schema = (self.schema)();
        if let Some(fields) = schema.as_object_mut().filter(|_| self.name != CASE) {
            fields.insert("$comment".to_owned(), format!("format {FORMAT_VERSION}").into());
        }
        schema
    }
}

/// All documents: those that people write, the files of a run, the output of commands, and records
/// of evictlab itself.
pub const DOCUMENTS: &[Document] = &[
    Document {
        name: CASE,
        about: "Case file",
        place: "`cases/SUITE/CASE.yaml`, or any file that a command names",
        schema: json_schema,
    },
    Document {
        name: "baseline.json",
        about: "Expected verdicts of cases",
        place: "written by `evictlab run --write-baseline[=FILE]`, read with `--baseline`",
        schema: output_schema::<Baseline>,
    },
    Document {
        name: "images.lock",
        about: "Images by name and digest",
        place: "`images/images.lock`, or the file that `--image-lock` names",
        schema: output_schema::<ImageCatalog>,
    },
    Document {
        name: "events.jsonl",
        about: "Events of a run, one object per line",
        place: "`artifacts/events.jsonl` of a run directory, and the output of `evictlab run --json` and `evictlab stress --json`",
        schema: output_schema::<RunEvent>,
    },
    Document {
        name: "started.json",
        about: "Start of a run, in the format of Prow",
        place: "`started.json` of a run directory",
        schema: output_schema::<ProwStarted>,
    },
    Document {
        name: "finished.json",
        about: "End of a run, in the format of Prow",
        place: "`finished.json` of a run directory",
        schema: output_schema::<ProwFinished>,
    },
    Document {
        name: "result.json",
        about: "Verdict of a case, with its checks and eviction messages",
        place: "`result.json` of an evidence directory",
        schema: output_schema::<CaseResult>,
    },
    Document {
        name: "facts.yaml",
        about: "Node of a case, times and counters",
        place: "`facts.yaml` of an evidence directory",
        schema: output_schema::<Facts<'static>>,
    },
    Document {
        name: "history.yaml",
        about: "States of the pods and of the node during a case",
        place: "`history.yaml` of an evidence directory",
        schema: output_schema::<ObjectHistory<'static>>,
    },
    Document {
        name: "answers.yaml",
        about: "Stored answers of a case's steps, by name",
        place: "`answers.yaml` of an evidence directory",
        schema: output_schema::<BTreeMap<String, StepAnswer>>,
    },
    Document {
        name: "samples.jsonl",
        about: "Statistics of a node during a case, one object per line",
        place: "`samples.jsonl` of an evidence directory",
        schema: output_schema::<SampleDocument>,
    },
    Document {
        name: "kubelet-results",
        about: "Results of real kubelets of a version",
        place: "`results/real/VERSION-cgroup-CGROUP.json`, written by `evictlab parity record`, read by `evictlab parity`",
        schema: output_schema::<KubeletResults>,
    },
    Document {
        name: "recording",
        about: "All evidence of a case in one object",
        place: "`DIR/VERSION/CASE.json`, written by `evictlab run --record DIR`",
        schema: output_schema::<Observations>,
    },
    Document {
        name: "mutants.json",
        about: "Results of cases on kubelets with defects",
        place: "`mutants.json` of `evictlab mutants run`, and the output of `evictlab mutants run --json`",
        schema: output_schema::<Matrix>,
    },
    Document {
        name: "bench",
        about: "Measured figures and their targets",
        place: "output of `evictlab bench --json`",
        schema: output_schema::<Vec<FigureResult>>,
    },
    Document {
        name: "bisect",
        about: "Kubelets between which a verdict changes",
        place: "output of `evictlab bisect --json`",
        schema: output_schema::<BisectResult>,
    },
    Document {
        name: "bisect-git",
        about: "Commits between which a verdict changes",
        place: "output of `evictlab bisect --git --json`",
        schema: output_schema::<CommitBisectResult>,
    },
    Document {
        name: "bisect.json",
        about: "State of a search for a commit, for `--resume`",
        place: "in the run directory of `evictlab bisect --git`",
        schema: output_schema::<SearchFile>,
    },
    Document {
        name: "cluster-list",
        about: "Clusters created by evictlab",
        place: "output of `evictlab cluster list --json`",
        schema: output_schema::<Vec<ListedCluster>>,
    },
    Document {
        name: "doctor",
        about: "Checks of the host",
        place: "output of `evictlab doctor --json`",
        schema: output_schema::<Diagnosis>,
    },
    Document {
        name: "dry-run",
        about: "Preview of a run",
        place: "output of `evictlab run --dry-run --json` and `evictlab stress --dry-run --json`",
        schema: output_schema::<RunPreview>,
    },
    Document {
        name: "explain",
        about: "Explanations of evictions",
        place: "output of `evictlab explain --json`",
        schema: output_schema::<Vec<Explanation>>,
    },
    Document {
        name: "gc",
        about: "Leftovers and their outcomes",
        place: "output of `evictlab gc --json`",
        schema: output_schema::<Vec<GcEntry>>,
    },
    Document {
        name: "history",
        about: "Verdicts of many runs",
        place: "output of `evictlab history --json`",
        schema: output_schema::<History>,
    },
    Document {
        name: "job-watch",
        about: "Progress of a Job",
        place: "output of `evictlab job watch --json`: with `--once` one object, else one per line after each change",
        schema: output_schema::<JobView>,
    },
    Document {
        name: "lint",
        about: "Problems of case files",
        place: "output of `evictlab lint --json`",
        schema: output_schema::<LintReport>,
    },
    Document {
        name: "list",
        about: "Cases",
        place: "output of `evictlab list --json`",
        schema: output_schema::<Vec<ListedCase>>,
    },
    Document {
        name: "mutants-list",
        about: "Defects of the model's kubelet",
        place: "output of `evictlab mutants list --json`",
        schema: output_schema::<Vec<DefectInfo>>,
    },
    Document {
        name: "parity",
        about: "Agreement of the model with real kubelets",
        place: "output of `evictlab parity --json`",
        schema: output_schema::<Vec<KubeletParity>>,
    },
    Document {
        name: "report-compare",
        about: "Differences between two runs",
        place: "output of `evictlab report --compare OLD NEW --json`",
        schema: output_schema::<Comparison>,
    },
    Document {
        name: "verify",
        about: "Conclusions about a change of the kubelet",
        place: "output of `evictlab verify --json`",
        schema: output_schema::<VerifyResult>,
    },
    Document {
        name: "watch",
        about: "Nodes with their thresholds and the ranking of their pods",
        place: "output of `evictlab watch --once --json`",
        schema: output_schema::<Vec<NodeView>>,
    },
    Document {
        name: "cluster-record",
        about: "Record of a kind cluster",
        place: "`NAME.json` in the state directory, and `/kind/evictlab.json` on the nodes",
        schema: output_schema::<ClusterRecord>,
    },
    Document {
        name: "embedded-cluster-record",
        about: "Record of a served embedded cluster",
        place: "`NAME.embedded` in the state directory",
        schema: output_schema::<ServedCluster>,
    },
    Document {
        name: "owner",
        about: "Process that owns a resource",
        place: "annotation `evictlab.dev/owner` of namespaces and Leases",
        schema: output_schema::<Owner>,
    },
    Document {
        name: "job-report",
        about: "Verdicts of an index of a Job",
        place: "termination message of a pod of the Job",
        schema: output_schema::<IndexReport>,
    },
];
