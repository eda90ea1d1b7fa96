//! What the environment asks for.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use evictlab_runner::case::{LoadedCase, Source};
use evictlab_runner::cluster::{KubeletSpec, MINORS, every_minor};
use evictlab_runner::select::{Selection, select};
use regex::Regex;

/// Where the nodes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A model in this process.
    Embedded,
    /// Real kubelets in Docker containers.
    Kind,
}

/// One case on one kubelet.
#[derive(Clone)]
pub struct Test {
    /// `suite::case`, and `@kubelet` where kubelets were named.
    pub name: String,
    /// The case.
    pub case: Arc<LoadedCase>,
    /// Its kubelet; the newest at hand where none was named.
    pub kubelet: Option<KubeletSpec>,
}

/// The kubelets of these tests, each once, in the order they come.
pub fn kubelets(tests: &[Test]) -> Vec<Option<KubeletSpec>> {
    let mut all = Vec::new();
    for test in tests {
        if !all.contains(&test.kubelet) {
            all.push(test.kubelet.clone());
        }
    }
    all
}

/// Everything that was asked for.
pub struct Asked {
    /// The tests.
    pub tests: Vec<Test>,
    /// Where the nodes come from.
    pub backend: Backend,
    /// Whether a missing cluster is a failure.
    pub require_cluster: bool,
}

impl Asked {
    /// Reads the environment and selects the cases.
    pub fn from_environment() -> Result<Self, String> {
        let said = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let regex = |name: &str| -> Result<Vec<Regex>, String> {
            let read = |text: String| Regex::new(&text).map_err(|error| format!("{name}: {error}"));
            said(name).map(read).transpose().map(|regex| regex.into_iter().collect())
        };
        let selection = Selection {
            names: said("EVICTLAB_SELECT")
                .map(|names| names.split_whitespace().map(str::to_owned).collect())
                .unwrap_or_default(),
            label_filter: said("EVICTLAB_LABEL_FILTER")
                .map(|text| text.parse().map_err(|error| format!("EVICTLAB_LABEL_FILTER: {error}")))
                .transpose()?,
            focus: regex("EVICTLAB_FOCUS")?,
            skip: regex("EVICTLAB_SKIP")?,
            upstream: vec![],
            shard: None,
        };
        // The suites lie beside this test, wherever it is run from.
        let cases = said("EVICTLAB_CASES").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").to_owned());
        let source = Source::Dir(PathBuf::from(cases));
        let cases = select(&source, &selection).map_err(|error| error.to_string())?;
        let backend = match said("EVICTLAB_BACKEND").as_deref() {
            None | Some("embedded") => Backend::Embedded,
            Some("kind") => Backend::Kind,
            Some(other) => {
                return Err(format!("EVICTLAB_BACKEND: {other:?} is no backend: write embedded or kind"));
            }
        };
        let named = said("EVICTLAB_KUBELETS");
        let kubelets: Vec<Option<(String, KubeletSpec)>> = match (named.as_deref(), backend) {
            (None | Some("all"), Backend::Embedded) => all(),
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
        let require_cluster = said("EVICTLAB_REQUIRE_CLUSTER").is_some_and(|value| value != "0");
        Ok(Self { tests, backend, require_cluster })
    }
}

/// A kubelet of every minor that is modelled.
fn all() -> Vec<Option<(String, KubeletSpec)>> {
    MINORS.zip(every_minor()).map(|(minor, spec)| Some((format!("v1.{minor}"), spec))).collect()
}
