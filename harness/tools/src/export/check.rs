//! Rejects cases that kind and kubectl cannot reproduce.

use std::fmt;

use serde_json::{Map, Value};

use evictlab_case::positions::PathSegment;
use evictlab_case::yaml_path;
use evictlab_case::{Case, LoadedCase, NodeSetup, PressureMechanism, PressureSignal, Problem};
use evictlab_cluster::{SkewError, skew_policy};

use super::images::{NamedImage, images};

/// The script sets thresholds, so that they do not apply to the control plane.
const THRESHOLD_FIELDS: [&str; 3] = ["evictionHard", "evictionSoft", "evictionSoftGracePeriod"];

/// Fields of an ephemeral container that `kubectl debug` can set.
const EPHEMERAL_FIELDS: [&str; 4] = ["name", "image", "command", "args"];

/// A case that cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The case uses features that kind and kubectl do not have.
    #[error("failed to export {case}: kind and kubectl cannot reproduce it\n\n{}", listed(problems))]
    Unsupported {
        /// The case as `suite/case`.
        case: String,
        /// The features and their locations.
        problems: Vec<Problem>,
    },
    /// The case does not support a kubelet.
    #[error(
        "failed to export {case}: it requires kubelets {range}, and {kubelet} does not match\nhelp: name another kubelet with --kubelet"
    )]
    UnsupportedKubelet {
        /// The case.
        case: String,
        /// The supported kubelets.
        range: String,
        /// The requested kubelet.
        kubelet: String,
    },
    /// A kubelet is too new.
    #[error(transparent)]
    Skew(#[from] SkewError),
    /// The kubelets cannot share a control plane.
    #[error(
        "failed to export {}: they need {clusters} clusters, and an export has one: {}\nhelp: export the case for each kubelet",
        .kubelets.join(", "), skew_policy()
    )]
    SeveralClusters {
        /// Number of clusters.
        clusters: usize,
        /// The kubelets.
        kubelets: Vec<String>,
    },
    /// A file could not be serialized.
    #[error("failed to write YAML: {0}")]
    Yaml(#[from] serde_yaml::Error),
    /// The kubelets share the signal under pressure.
    #[error(
        "failed to export {case}: it puts {signal} under pressure, which all nodes of a kind cluster share: {} would affect each other\nhelp: export the case for each kubelet",
        .kubelets.join(", ")
    )]
    SharedHost {
        /// The case.
        case: String,
        /// The signal.
        signal: &'static str,
        /// The kubelets.
        kubelets: Vec<String>,
    },
}

fn listed(problems: &[Problem]) -> impl fmt::Display {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n")
}

/// Rejects a case that needs more than kind and kubectl.
pub(crate) fn check(loaded: &LoadedCase, image: &dyn Fn(&str) -> String) -> Result<(), ExportError> {
    let mut checker = ExportChecker { loaded, problems: vec![] };
    checker.check_setup(&loaded.case);
    checker.check_node(&loaded.case.node);
    checker.check_steps(&loaded.case);
    checker.check_pods(&loaded.case);
    checker.check_images(&loaded.case, image);
    if checker.problems.is_empty() {
        Ok(())
    } else {
        Err(ExportError::Unsupported { case: loaded.id(), problems: checker.problems })
    }
}

struct ExportChecker<'a> {
    loaded: &'a LoadedCase,
    problems: Vec<Problem>,
}

impl ExportChecker<'_> {
    fn reject_if(&mut self, condition: bool, path: &[PathSegment], what: &str) {
        if condition {
            let places = vec![self.loaded.span(path, "")];
            self.problems.push(Problem { message: what.to_owned(), spans: places });
        }
    }

    fn check_setup(&mut self, case: &Case) {
        self.reject_if(
            !case.faults.is_empty(),
            yaml_path!["faults"],
            "only the embedded cluster injects faults",
        );
        let what = "static pods are files on a node, which kubectl does not write";
        self.reject_if(!case.static_pods.is_empty(), yaml_path!["static-pods"], what);
        for field in THRESHOLD_FIELDS {
            let what = "thresholds of the case would also apply to the control plane";
            self.reject_if(
                case.kubelet_config.contains_key(field),
                yaml_path!["kubelet-config", field],
                what,
            );
        }
        let Some(pressure) = &case.pressure else { return };
        let what = "the reservation depends on the usage of the node's own pods";
        self.reject_if(pressure.by == PressureMechanism::KubeReserved, yaml_path!["pressure", "by"], what);
        let percent = pressure.as_percentage && pressure.signal != PressureSignal::MemoryAvailable;
        self.reject_if(
            percent,
            yaml_path!["pressure", "as-percentage"],
            "only memory thresholds are supported as percentage",
        );
        let others = !pressure.also.is_empty();
        self.reject_if(others, yaml_path!["pressure", "also"], "the script sets only one threshold");
        let both = pressure.hard_distance.is_some();
        self.reject_if(both, yaml_path!["pressure", "hard-distance"], "the script sets only one threshold");
    }

    fn check_node(&mut self, node: &NodeSetup) {
        let NodeSetup { memory, huge_pages, swap, capacity, unused_image, file_systems } = node;
        for (field, is_stated, what) in [
            ("memory", memory.is_some(), "kind does not limit the memory of a node"),
            (
                "huge-pages",
                huge_pages.is_some(),
                "huge pages are reserved on the host of a kind node, before its kubelet starts",
            ),
            ("swap", swap.is_some(), "swap space is that of the host, which the script does not check"),
            (
                "capacity",
                !capacity.is_empty(),
                "extended resources are added to the node while the case runs",
            ),
            ("unused-image", unused_image.is_some(), "evictlab makes the unused image for the node"),
            ("file-systems", file_systems.is_some(), "kind does not give a node an imagefs of its own"),
        ] {
            self.reject_if(is_stated, yaml_path!["node", field], what);
        }
    }

    fn check_steps(&mut self, case: &Case) {
        for (place, step) in case.steps.iter().enumerate() {
            let what = match &step.action {
                None => "a step waits for a condition that only evictlab evaluates".to_owned(),
                Some(action) => format!("a step acts while the case runs: {}", action.field()),
            };
            self.reject_if(true, yaml_path!["do", place], &what);
        }
        let expect = &case.expect;
        let what = "the script waits for an eviction, not for a rejection by the API";
        self.reject_if(expect.api_rejection.is_some(), yaml_path!["expect", "refused"], what);
        let what = "the script waits for an eviction, not for containers in the Summary";
        self.reject_if(!expect.summary.is_empty(), yaml_path!["expect", "summary"], what);
        let evicts_none =
            expect.evicted.is_empty() && expect.api_rejection.is_none() && expect.summary.is_empty();
        let what = "the script waits for an eviction, and the case names no evicted pod";
        self.reject_if(evicts_none, yaml_path!["expect"], what);
        let counted = expect.rate.as_ref().is_some_and(|rate| rate.runs > 1);
        self.reject_if(counted, yaml_path!["expect", "rate"], "the case evaluates several runs");
    }

    fn check_pods(&mut self, case: &Case) {
        for (place, pod) in case.pods.iter().enumerate() {
            let is_generated = pod.get("metadata").is_some_and(|metadata| metadata.get("name").is_none());
            let path = yaml_path!["pods", place, "metadata", "generateName"];
            self.reject_if(is_generated, path, "the script names its pods");
        }
        for (place, ephemeral) in case.ephemeral_containers.iter().enumerate() {
            let inside = |field: &str| yaml_path!["ephemeral-containers", place, "container", field].to_vec();
            let container: &Map<String, Value> = &ephemeral.container;
            for field in container.keys().filter(|field| !EPHEMERAL_FIELDS.contains(&field.as_str())) {
                let what = format!("`kubectl debug` cannot set `{field}` of an ephemeral container");
                self.reject_if(true, &inside(field), &what);
            }
        }
    }

    fn check_images(&mut self, case: &Case, full_name: &dyn Fn(&str) -> String) {
        for NamedImage { name, path } in images(case) {
            let is_local = full_name(&name).starts_with("localhost/");
            self.reject_if(is_local, &path, "no registry has this image");
        }
    }
}
