//! Options from environment variables.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use evictlab_case::select::{Selection, select};
use evictlab_case::{LoadedCase, Source};
use evictlab_cluster::{KubeletSpec, MODELLED_MINORS, every_minor};
use regex::Regex;

/// Backend that provides the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// Modelled kubelets in this process.
    Embedded,
    /// Real kubelets in Docker containers.
    Kind,
}

/// One case on one kubelet.
#[derive(Clone)]
pub(crate) struct Test {
    /// `suite::case`, with `@kubelet` if kubelets are selected.
    pub(crate) name: String,
    /// The case.
    pub(crate) case: Arc<LoadedCase>,
    /// The kubelet; `None` for the newest one in Docker.
    pub(crate) kubelet: Option<KubeletSpec>,
}

/// Returns the kubelets of the tests without duplicates, in order.
pub(crate) fn kubelets(tests: &[Test]) -> Vec<Option<KubeletSpec>> {
    let mut all = Vec::new();
    for test in tests {
        if !all.contains(&test.kubelet) {
            all.push(test.kubelet.clone());
        }
    }
    all
}

/// Tests and options.
pub(crate) struct TestOptions {
    /// The tests.
    pub(crate) tests: Vec<Test>,
    /// Backend that provides the nodes.
    pub(crate) backend: Backend,
    /// True if a missing cluster is a failure.
    pub(crate) require_cluster: bool,
    /// True if the cases are those of another directory.
    are_other_cases: bool,
}

impl TestOptions {
    /// Reads the environment variables and selects the cases.
    pub(crate) fn from_environment() -> Result<Self, String> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let regex = |name: &str| -> Result<Vec<Regex>, String> {
            let parse = |text: String| Regex::new(&text).map_err(|error| format!("{name}: {error}"));
            variable(name).map(parse).transpose().map(|regex| regex.into_iter().collect())
        };
        let selection = Selection {
            names: variable("EVICTLAB_SELECT")
                .map(|names| names.split_whitespace().map(str::to_owned).collect())
                .unwrap_or_default(),
            label_filter: variable("EVICTLAB_LABEL_FILTER")
                .map(|text| text.parse().map_err(|error| format!("EVICTLAB_LABEL_FILTER: {error}")))
                .transpose()?,
            focus: regex("EVICTLAB_FOCUS")?,
            skip: regex("EVICTLAB_SKIP")?,
            upstream: vec![],
            shard: None,
        };
        // The suites are next to this file, independent of the working directory.
        let other_cases = variable("EVICTLAB_CASES");
        let are_other_cases = other_cases.is_some();
        let cases = other_cases.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").to_owned());
        let source = Source::Dir(PathBuf::from(cases));
        let cases = select(&source, &selection).map_err(|error| error.to_string())?;
        let backend = parse_backend(variable("EVICTLAB_BACKEND").as_deref())?;
        let named = variable("EVICTLAB_KUBELETS");
        let kubelets: Vec<Option<(String, KubeletSpec)>> = match (named.as_deref(), backend) {
            (None | Some("all"), Backend::Embedded) => every_kubelet(),
            (None, Backend::Kind) => vec![None],
            (Some(text), _) => text
                .split(',')
                .map(str::trim)
                .map(|kubelet| match kubelet.parse() {
                    Ok(spec) => Ok(Some((kubelet.to_owned(), spec))),
                    Err(error) => Err(format!("EVICTLAB_KUBELETS: {error}")),
                })
                .collect::<Result<_, _>>()?,
        };
        let tests = cases
            .iter()
            .flat_map(|case| {
                kubelets.iter().map(|kubelet| Test {
                    name: match kubelet {
                        None => format!("{}::{}", case.suite, case.case.name),
                        Some((kubelet, _)) => format!("{}::{}@{kubelet}", case.suite, case.case.name),
                    },
                    case: case.clone(),
                    kubelet: kubelet.as_ref().map(|(_, spec)| spec.clone()),
                })
            })
            .collect();
        let require_cluster = variable("EVICTLAB_REQUIRE_CLUSTER").is_some_and(|value| value != "0");
        Ok(Self { tests, backend, require_cluster, are_other_cases })
    }

    /// Returns whether the baseline is about these tests: the cases of this workspace on the model.
    pub(crate) fn is_shipped_on_the_model(&self) -> bool {
        self.backend == Backend::Embedded && !self.are_other_cases
    }
}

fn parse_backend(name: Option<&str>) -> Result<Backend, String> {
    match name {
        None | Some("embedded") => Ok(Backend::Embedded),
        Some("kind") => Ok(Backend::Kind),
        Some(other) => Err(format!("EVICTLAB_BACKEND: unknown backend {other:?}, expected embedded or kind")),
    }
}

/// Returns one kubelet of every modelled minor version.
fn every_kubelet() -> Vec<Option<(String, KubeletSpec)>> {
    MODELLED_MINORS.zip(every_minor()).map(|(minor, spec)| Some((format!("v1.{minor}"), spec))).collect()
}
