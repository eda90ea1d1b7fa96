//! Names of the files with the evidence of a case.

/// Verdict and evidence as Markdown, for an issue.
pub(crate) const SUMMARY: &str = "summary.md";
/// Drawing of the pressure and of the usage of containers.
pub(crate) const TIMELINE: &str = "timeline.svg";
/// Verdict and checks.
pub(crate) const RESULT: &str = "result.json";
/// [`RESULT`] through format 3.
pub(crate) const RESULT_OF_FORMAT_3: &str = "judgement.json";
/// Facts about the execution, such as the version of the kubelet.
pub(crate) const FACTS: &str = "facts.yaml";
/// Pods as created.
pub(crate) const PODS_CREATED: &str = "pods-created.yaml";
/// Pods in their last observed state.
pub(crate) const PODS_FINAL: &str = "pods-final.yaml";
/// Events.
pub(crate) const EVENTS: &str = "events.yaml";
/// The node at the end of the case.
pub(crate) const NODE: &str = "node.yaml";
/// Configuration of the kubelet.
pub(crate) const CONFIGZ: &str = "configz.yaml";
/// The rejection of an ephemeral container by the API server.
pub(crate) const API_REJECTION: &str = "api-rejection.yaml";
/// [`API_REJECTION`] through format 3.
pub(crate) const API_REJECTION_OF_FORMAT_3: &str = "refused.yaml";
/// Changes of pods and of the node.
pub(crate) const HISTORY: &str = "history.yaml";
/// Answers of steps.
pub(crate) const ANSWERS: &str = "answers.yaml";
/// Other objects at the end of the case.
pub(crate) const OBJECTS: &str = "objects.yaml";
/// The Summary before the case.
pub(crate) const SUMMARY_BEFORE: &str = "summary-before.json";
/// Summaries during the case.
pub(crate) const SAMPLES: &str = "samples.jsonl";
/// Lines of the kubelet's log.
pub(crate) const KUBELET_LOG: &str = "kubelet.log";
