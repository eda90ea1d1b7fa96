//! The compared kubelets and their environment.

use std::collections::BTreeMap;
use std::fmt;

use crate::export::Recipe;
use evictlab_cluster::{Docker, DockerError, Kubelet, kind_version};

/// One of the two kubelets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedKubelet {
    /// Name in the document: the version, with the file or image if the kubelet is not a release.
    pub name: String,
    /// Label in reports.
    pub label: String,
}

impl ComparedKubelet {
    /// Returns the kubelet named by this argument.
    pub fn new(argument: &str, kubelet: &Kubelet) -> Self {
        let version = kubelet.version.to_string();
        let is_release = kubelet.binary.is_none() && !argument.contains(['/', ':', '@']);
        let name = if is_release { version } else { format!("{argument} ({version})") };
        Self { name, label: kubelet.label.clone() }
    }

    /// Returns the kubelet of a recorded run that an argument names: its label, or the minor of the
    /// only label with this minor.
    pub fn recorded(argument: &str, labels: &[String]) -> Option<Self> {
        let minor = format!("{argument}.");
        let of_minor: Vec<&String> = labels.iter().filter(|label| label.starts_with(&minor)).collect();
        let label = labels.iter().find(|label| *label == argument).or(match of_minor[..] {
            [only] => Some(only),
            _ => None,
        })?;
        Some(Self { name: label.clone(), label: label.clone() })
    }
}

impl fmt::Display for ComparedKubelet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Contents of the document apart from the results.
#[derive(Debug)]
pub struct ReportContext {
    /// The kubelets before and after the change.
    pub sides: [ComparedKubelet; 2],
    /// Names and values of the environment table.
    pub environment: Vec<(String, String)>,
    /// Steps to reproduce each case with kind and kubectl, by `suite/case`, or the reason that they
    /// are missing.
    pub recipes: BTreeMap<String, Result<Recipe, String>>,
    /// The command that repeats the comparison.
    pub repro_command: String,
}

/// Returns the Docker host and the tool versions for the environment table.
///
/// # Errors
///
/// Docker does not answer.
pub async fn environment(docker: &Docker) -> Result<Vec<(String, String)>, DockerError> {
    let info = docker.info().await?;
    let cgroup = info.cgroup_version.map(|version| format!("v{version}"));
    let memory = info.mem_total.map(|bytes| format!("{} MiB", bytes >> 20));
    let kind = kind_version().await.ok().map(|version| version.to_string());
    let rows = [
        ("operating system", info.operating_system),
        ("kernel", info.kernel_version),
        ("architecture", info.architecture),
        ("CPUs", info.ncpu.map(|count| count.to_string())),
        ("memory", memory),
        ("cgroup", cgroup),
        ("Docker", info.server_version),
        ("kind", kind),
    ];
    Ok(rows.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}
