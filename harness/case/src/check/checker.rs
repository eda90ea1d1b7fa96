//! The problems that were found in a case so far, and what several checks use.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::case_name::case_name;
use crate::positions::PathSegment;
use crate::problem::did_you_mean;
use crate::schema::Case;
use crate::values::Name;
use crate::yaml_path;

/// A problem, and the path of the value that has it.
pub(crate) struct PathProblem {
    pub(crate) path: Vec<PathSegment>,
    pub(crate) message: String,
    pub(crate) note: String,
    /// Word of the value that the problem is about.
    pub(crate) word: Option<String>,
}

/// Names of a pod of the case, its containers and its volumes.
pub(crate) struct PodNames {
    pub(crate) name: String,
    pub(crate) containers: BTreeSet<String>,
    pub(crate) volumes: BTreeSet<String>,
}

/// Collects the problems of a case.
pub(crate) struct Checker<'a> {
    pub(crate) case: &'a Case,
    pub(crate) pods: Vec<PodNames>,
    pub(crate) findings: Vec<PathProblem>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(case: &'a Case) -> Self {
        Self { case, pods: vec![], findings: vec![] }
    }

    pub(crate) fn report(
        &mut self,
        path: &[PathSegment],
        message: impl Into<String>,
        note: impl Into<String>,
    ) {
        let (message, note) = (message.into(), note.into());
        self.findings.push(PathProblem { path: path.to_vec(), message, note, word: None });
    }

    /// Reports a problem with a word of a value.
    pub(crate) fn report_word(
        &mut self,
        path: &[PathSegment],
        word: &str,
        message: impl Into<String>,
        note: impl Into<String>,
    ) {
        self.report(path, message, note);
        if let Some(finding) = self.findings.last_mut() {
            finding.word = Some(word.to_owned());
        }
    }

    /// Checks the field `image` of a container.
    pub(crate) fn check_image(&mut self, path: &[PathSegment], image: Option<&Value>) {
        if let Some(image) = image.and_then(Value::as_str) {
            self.check_image_name(&join(path, yaml_path!["image"]), image);
        }
    }

    /// Rejects text that is not the name of an image: it reaches containers, nodes and scripts.
    pub(crate) fn check_image_name(&mut self, path: &[PathSegment], image: &str) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._/:@-".contains(c);
        if !(image.starts_with(|c: char| c.is_ascii_alphanumeric()) && image.chars().all(is_part)) {
            self.report(
                path,
                format!("invalid image name {image:?}"),
                "examples: agnhost:2.52, registry.k8s.io/pause:3.10",
            );
        }
    }

    pub(crate) fn containers_of(&self, pod: &Name) -> Option<BTreeSet<String>> {
        self.pods.iter().find(|one| *pod == *one.name).map(|pod| pod.containers.clone())
    }

    pub(crate) fn report_unknown_pod(&mut self, path: &[PathSegment], pod: &Name) {
        let case = self.case;
        let mut manifests = case.pods.iter().chain(case.all_static_pods());
        if manifests.any(|manifest| case_name(manifest).is_none()) {
            return; // The pod may be one whose missing name is already reported.
        }
        let names: Vec<_> = self.pods.iter().map(|pod| pod.name.as_str()).collect();
        let note = did_you_mean(pod.as_str(), names.iter().copied())
            .unwrap_or_else(|| format!("pods of the case: {}", names.join(", ")));
        self.report(path, format!("the case has no pod `{pod}`"), note);
    }

    pub(crate) fn check_known(
        &mut self,
        kind: &str,
        path: &[PathSegment],
        name: &Name,
        known: &BTreeSet<String>,
        pod: &Name,
    ) {
        if known.contains(name.as_str()) {
            return;
        }
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        let note = did_you_mean(name.as_str(), known.iter().copied())
            .unwrap_or_else(|| format!("{kind}s of the pod: {}", known.join(", ")));
        self.report(path, format!("the pod `{pod}` has no {kind} `{name}`"), note);
    }
}

/// Returns a path with further segments.
pub(crate) fn join(path: &[PathSegment], more: &[PathSegment]) -> Vec<PathSegment> {
    [path, more].concat()
}

/// Returns the names of the items of a list in a manifest.
pub(crate) fn item_names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(|item| item.get("name")?.as_str())
}
