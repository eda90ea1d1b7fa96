//! Candidates of the shell's completion, for values that are not fixed: cases, labels and kubelets.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use evictlab_case::{CaseFiles, ParsedCase, Source};
use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::{ClusterRecord, ServedCluster, StateDir};
use evictlab_embedded::Defect;
use evictlab_report::RESULTS_DIR;
use kube::config::Kubeconfig;

/// Returns the suites and cases that begin with the word; if no name does, case files and
/// directories.
pub(crate) fn complete_selection(word: &OsStr) -> Vec<CompletionCandidate> {
    let begins = |candidate: &CompletionCandidate| {
        candidate.get_value().as_encoded_bytes().starts_with(word.as_encoded_bytes())
    };
    let known: Vec<_> = selections().into_iter().filter(begins).collect();
    if known.is_empty() { complete_case_file(word) } else { known }
}

/// Returns the case files and directories that begin as the word does.
pub(crate) fn complete_case_file(word: &OsStr) -> Vec<CompletionCandidate> {
    let is_case = |path: &std::path::Path| {
        path.is_dir() || path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
    };
    PathCompleter::any().filter(is_case).complete(word)
}

/// Returns the names of the clusters in the state directory.
pub(crate) fn clusters() -> Vec<CompletionCandidate> {
    let Ok(state) = StateDir::open() else { return Vec::new() };
    let served = ServedCluster::list(&state).into_iter().map(|served| candidate(&served.cluster, "embedded"));
    served.chain(kind_clusters()).collect()
}

/// Returns the names of the kind clusters in the state directory.
pub(crate) fn kind_clusters() -> Vec<CompletionCandidate> {
    let Ok(state) = StateDir::open() else { return Vec::new() };
    let of_record =
        |record: ClusterRecord| candidate(&record.cluster, &format!("kind, {}", record.kubelets.join(" ")));
    state.list().into_iter().map(of_record).collect()
}

/// Returns the run directories in `results`, the newest first; if none begins with the word,
/// directories.
pub(crate) fn complete_run(word: &OsStr) -> Vec<CompletionCandidate> {
    let entries = fs::read_dir(RESULTS_DIR).into_iter().flatten().flatten();
    let is_run = |path: &PathBuf| path.join("artifacts").is_dir();
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_run).collect();
    runs.sort_by(|one, other| other.cmp(one));
    let begins = |path: &PathBuf| path.as_os_str().as_encoded_bytes().starts_with(word.as_encoded_bytes());
    let known: Vec<_> = runs.into_iter().filter(begins).map(CompletionCandidate::new).collect();
    if known.is_empty() { PathCompleter::dir().complete(word) } else { known }
}

/// Returns the issues and pull requests that the cases name.
pub(crate) fn upstreams() -> Vec<CompletionCandidate> {
    let cases = cases();
    let of_case = |case: &ParsedCase| {
        let bugs = case.case.known_bugs.iter().filter_map(|bug| bug.upstream.as_ref());
        let all = case.case.upstream.iter().chain(bugs);
        all.map(ToString::to_string).collect::<Vec<String>>()
    };
    let all: BTreeSet<String> = cases.iter().flat_map(|case| of_case(case)).collect();
    all.into_iter().map(CompletionCandidate::new).collect()
}

/// Returns the contexts of the kubeconfig that the environment selects; none of an invalid one.
pub(crate) fn contexts() -> Vec<CompletionCandidate> {
    let contexts = Kubeconfig::read().map(|kubeconfig| kubeconfig.contexts).unwrap_or_default();
    contexts.into_iter().map(|context| CompletionCandidate::new(context.name)).collect()
}

/// Returns the names of the defects of kubelets.
pub(crate) fn defects() -> Vec<CompletionCandidate> {
    Defect::ALL.iter().map(|defect| candidate(&defect.to_string(), defect.about())).collect()
}

/// Returns the names of suites and cases, with the first sentence about each.
fn selections() -> Vec<CompletionCandidate> {
    let cases = cases();
    let suites: BTreeSet<&str> = cases.iter().map(|case| case.suite.as_str()).collect();
    let suites = suites.into_iter().map(|suite| candidate(suite, "suite"));
    suites.chain(cases.iter().map(|case| of_case(case))).collect()
}

/// Returns the names of cases.
pub(crate) fn case_names() -> Vec<CompletionCandidate> {
    cases().iter().map(|case| of_case(case)).collect()
}

/// Returns the labels of cases.
pub(crate) fn labels() -> Vec<CompletionCandidate> {
    let labels: BTreeSet<String> = cases().iter().flat_map(|case| case.case.labels.clone()).collect();
    labels.into_iter().map(CompletionCandidate::new).collect()
}

/// Returns the minor versions that can be modelled, then the versions with a known node image.
pub(crate) fn kubelets() -> Vec<CompletionCandidate> {
    let minors =
        evictlab_cluster::MODELLED_MINORS.map(|minor| candidate(&format!("v1.{minor}"), "newest patch"));
    let catalog = ImageCatalog::load(None).map(|catalog| catalog.nodes).unwrap_or_default();
    minors
        .chain(catalog.into_keys().map(|version| candidate(&version.to_string(), "known node image")))
        .collect()
}

/// Returns the values of `--kubelet`, which may also be `all`.
pub(crate) fn kubelet_selections() -> Vec<CompletionCandidate> {
    [candidate("all", "one of every minor")].into_iter().chain(kubelets()).collect()
}

/// Reads the cases as commands do, without those of `--cases`; none if a file cannot be parsed.
fn cases() -> Vec<std::sync::Arc<ParsedCase>> {
    let source = Source::find(env::var_os("EVICTLAB_CASES").map(Into::into), cases::FILES);
    CaseFiles::read(&source).parsed().unwrap_or_default()
}

fn of_case(case: &ParsedCase) -> CompletionCandidate {
    candidate(case.case.name.as_str(), &case.case.about)
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(help.to_owned().into()))
}
