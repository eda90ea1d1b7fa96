//! Candidates of the shell's completion, for values that are not fixed: cases, labels and kubelets.

use std::collections::BTreeSet;
use std::env;

use clap_complete::engine::CompletionCandidate;
use evictlab_case::{CaseFiles, ParsedCase, Source};
use evictlab_cluster::images::ImageCatalog;

/// Returns the names of suites and cases, with the first sentence about each.
pub(crate) fn selections() -> Vec<CompletionCandidate> {
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
