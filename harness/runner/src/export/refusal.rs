//! What kind and kubectl alone cannot do of a case.

use std::fmt;

use serde_json::{Map, Value};

use crate::case::positions::{Step, way};
use crate::case::{By, Case, LoadedCase, Problem, Signal};
use crate::cluster::SkewError;

/// Thresholds are the script's, so that the control plane is spared.
const THRESHOLDS: [&str; 3] = ["evictionHard", "evictionSoft", "evictionSoftGracePeriod"];

/// What `kubectl debug` can be told of an ephemeral container.
const OF_EPHEMERAL: [&str; 4] = ["name", "image", "command", "args"];

/// A case that kind and kubectl alone cannot repeat.
#[derive(Debug, thiserror::Error)]
pub enum NotExportable {
    /// It asks for something that neither of them does.
    #[error("{case} cannot be repeated by kind and kubectl alone\n\n{}", listed(problems))]
    Unsayable {
        /// The case, as `suite/case`.
        case: String,
        /// What it asks for, and where.
        problems: Vec<Problem>,
    },
    /// It is for other kubelets.
    #[error("{case} is for kubelets {range}, and {kubelet} is none of them")]
    OtherKubelets {
        /// The case.
        case: String,
        /// The kubelets that it is for.
        range: String,
        /// The one that was asked for.
        kubelet: String,
    },
    /// A kubelet is too new.
    #[error(transparent)]
    Skew(#[from] SkewError),
    /// They cannot share a control plane.
    #[error(
        "{} need {clusters} clusters, and a folder has one: an API server takes kubelets that are up to three minors older\nExport the case for each alone.",
        .kubelets.join(", ")
    )]
    Apart {
        /// How many there would be.
        clusters: usize,
        /// The kubelets.
        kubelets: Vec<String>,
    },
    /// A file cannot be put together.
    #[error("what the case states cannot be written as YAML: {0}")]
    Yaml(#[from] serde_yaml::Error),
    /// They share what is starved.
    #[error(
        "{case} starves {signal}, which all nodes of a kind cluster share: {} would disturb each other\nExport the case for each alone.",
        .kubelets.join(", ")
    )]
    SharedHost {
        /// The case.
        case: String,
        /// What it starves.
        signal: &'static str,
        /// The kubelets.
        kubelets: Vec<String>,
    },
}

fn listed(problems: &[Problem]) -> impl fmt::Display {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n")
}

/// Refuses a case that asks for more than kind and kubectl do.
pub fn check(loaded: &LoadedCase, image: &dyn Fn(&str) -> String) -> Result<(), NotExportable> {
    let mut found = Found { loaded, problems: vec![] };
    found.setup(&loaded.case);
    found.course(&loaded.case);
    found.pods(&loaded.case, image);
    match found.problems.is_empty() {
        true => Ok(()),
        false => Err(NotExportable::Unsayable { case: loaded.id(), problems: found.problems }),
    }
}

struct Found<'a> {
    loaded: &'a LoadedCase,
    problems: Vec<Problem>,
}

impl Found<'_> {
    fn if_so(&mut self, so: bool, way: &[Step], what: &str) {
        if so {
            let places = vec![self.loaded.place(way, "")];
            self.problems.push(Problem { what: what.to_owned(), places });
        }
    }

    fn setup(&mut self, case: &Case) {
        self.if_so(!case.faults.is_empty(), way!["faults"], "faults can be injected on a model only");
        let what = "static pods are files on a node, and kubectl writes none";
        self.if_so(!case.static_pods.is_empty(), way!["static-pods"], what);
        let what = "kind does not bound a node's memory";
        self.if_so(case.node.memory.is_some(), way!["node", "memory"], what);
        let what = "the node's extended resources are given to it while the case runs";
        self.if_so(!case.node.capacity.is_empty(), way!["node", "capacity"], what);
        for field in THRESHOLDS {
            let what = "the case sets thresholds itself, and so they would stand for the control plane, too";
            self.if_so(case.kubelet_config.contains_key(field), way!["kubelet-config", field], what);
        }
        let Some(pressure) = &case.pressure else { return };
        let what = "what is to be reserved depends on what the node's own pods take";
        self.if_so(pressure.by == By::KubeReserved, way!["pressure", "by"], what);
        let percent = pressure.as_percentage && pressure.signal != Signal::MemoryAvailable;
        self.if_so(percent, way!["pressure", "as-percentage"], "only memory is reckoned in percent");
        let both = pressure.hard_distance.is_some();
        self.if_so(both, way!["pressure", "hard-distance"], "the script sets one threshold, not two");
    }

    fn course(&mut self, case: &Case) {
        for (place, step) in case.steps.iter().enumerate() {
            let what = match step.actions().as_slice() {
                [] => "a step waits for what evictlab watches".to_owned(),
                does => format!("a step does something while the case runs: {}", does.join(", ")),
            };
            self.if_so(true, way!["do", place], &what);
        }
        let expect = &case.expect;
        let what = "what the API refuses is not an eviction, which is what the script waits for";
        self.if_so(expect.refused.is_some(), way!["expect", "refused"], what);
        let what = "the containers of the Summary are no eviction, which is what the script waits for";
        self.if_so(!expect.summary.is_empty(), way!["expect", "summary"], what);
        let evicts_none = expect.evicted.is_empty() && expect.refused.is_none() && expect.summary.is_empty();
        let what = "no pod is named that is evicted, which is what the script waits for";
        self.if_so(evicts_none, way!["expect"], what);
        let counted = expect.rate.as_ref().is_some_and(|rate| rate.runs > 1);
        self.if_so(counted, way!["expect", "rate"], "it is counted over several runs");
    }

    fn pods(&mut self, case: &Case, image: &dyn Fn(&str) -> String) {
        for (place, pod) in case.pods.iter().enumerate() {
            for list in ["initContainers", "containers"] {
                let containers = pod.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array);
                for (item, container) in containers.into_iter().flatten().enumerate() {
                    let way = way!["pods", place, "spec", list, item, "image"];
                    self.image(container["image"].as_str(), image, way);
                }
            }
        }
        for (place, ephemeral) in case.ephemeral_containers.iter().enumerate() {
            let inside = |field: &str| way!["ephemeral-containers", place, "container", field].to_vec();
            let container: &Map<String, Value> = &ephemeral.container;
            for field in container.keys().filter(|field| !OF_EPHEMERAL.contains(&field.as_str())) {
                let what = format!("`kubectl debug` cannot state `{field}` of an ephemeral container");
                self.if_so(true, &inside(field), &what);
            }
            let name = container.get("image").and_then(Value::as_str);
            self.image(name, image, &inside("image"));
        }
    }

    fn image(&mut self, name: Option<&str>, image: &dyn Fn(&str) -> String, way: &[Step]) {
        let local = name.is_some_and(|name| image(name).starts_with("localhost/"));
        self.if_so(local, way, "no registry has this image");
    }
}
