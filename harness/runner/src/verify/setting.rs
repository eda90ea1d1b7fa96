//! Which kubelets are compared, and where.

use std::collections::BTreeMap;

use crate::cluster::{Docker, DockerError, Kubelet, kind_version};
use crate::export::Recipe;

/// One of the two kubelets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// What the document calls it: its version, with the file or image that it came from where it is no release.
    pub name: String,
    /// What reports call it.
    pub label: String,
}

impl Side {
    /// The side of a kubelet that was asked for by this text.
    pub fn of(asked: &str, kubelet: &Kubelet) -> Self {
        let version = kubelet.version.to_string();
        let is_release = kubelet.binary.is_none() && !asked.contains(['/', ':', '@']);
        let name = if is_release { version } else { format!("{asked} ({version})") };
        Self { name, label: kubelet.label.clone() }
    }
}

/// All that the document tells beside what was seen.
#[derive(Debug)]
pub struct Setting {
    /// The kubelet before and the one after.
    pub sides: [Side; 2],
    /// The host and its tools: what, and which.
    pub facts: Vec<(String, String)>,
    /// How each case is repeated with kind and kubectl alone, by `suite/case`, or why it cannot be.
    pub recipes: BTreeMap<String, Result<Recipe, String>>,
    /// The command that does the same again.
    pub again: String,
}

/// The Docker host and the tools, for a maintainer who wants to see the same.
///
/// # Errors
/// Docker does not answer.
pub async fn facts(docker: &Docker) -> Result<Vec<(String, String)>, DockerError> {
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
