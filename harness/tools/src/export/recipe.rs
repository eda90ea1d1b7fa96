//! The files of an exported case.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::check::ExportError;
use super::check::check;
use super::cluster::{ExportCluster, Worker};
use super::host_info::HostInfo;
use super::kind_config::kind_config;
use super::manifests::manifests;
use super::script::script;
use evictlab_case::LoadedCase;
use evictlab_cluster::Kubelet;
use evictlab_runner::pressure::ramp;

/// Assumed start time of a container: a slow ramp costs seconds, a fast one may lose the evidence.
const CONTAINER_START: Duration = Duration::from_secs(10);

/// A case as files for kind and kubectl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// `kind-config.yaml`, for `kind create cluster --config`.
    pub kind_config: String,
    /// `manifests.yaml`, for `kubectl create`, in namespaces that the script creates.
    pub manifests: String,
    /// `run.sh`: creates the cluster, puts it under pressure, shows what each kubelet reports,
    /// deletes the cluster.
    pub script: String,
    /// Kubelet binaries that are mounted into workers.
    pub binaries: Vec<Binary>,
}

/// A kubelet binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// File name in the directory.
    pub name: String,
    /// Source path.
    pub from: PathBuf,
}

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {}: {source}", .path.display())]
pub struct WriteError {
    /// The file or directory.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

/// Returns the files that reproduce a case on these kubelets, with one worker for each; `images`
/// returns the full name of an image.
///
/// # Errors
///
/// The case needs more than kind and kubectl, does not support a kubelet, or the kubelets cannot
/// share a cluster.
pub fn recipe(
    case: &LoadedCase,
    kubelets: &[Kubelet],
    host: &HostInfo,
    images: &dyn Fn(&str) -> String,
) -> Result<Recipe, ExportError> {
    check(case, images)?;
    let cluster = ExportCluster::new(case, kubelets)?;
    let ramp = case
        .case
        .pressure
        .as_ref()
        .map(|pressure| ramp(pressure, case.case.container_count(), CONTAINER_START));
    let binary =
        |worker: &Worker<'_>| Some(Binary { name: worker.binary()?, from: worker.kubelet.binary.clone()? });
    Ok(Recipe {
        kind_config: kind_config(case, &cluster, host)?,
        manifests: manifests(case, &cluster, ramp.as_ref(), images)?,
        script: script(case, &cluster, ramp.as_ref(), images),
        binaries: cluster.workers.iter().filter_map(binary).collect(),
    })
}

impl Recipe {
    /// Writes the files to a directory, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), WriteError> {
        let error_at = |path: &Path| {
            let path = path.to_owned();
            move |source| WriteError { path, source }
        };
        fs::create_dir_all(dir).map_err(error_at(dir))?;
        let script = dir.join("run.sh");
        let files = [
            (dir.join("kind-config.yaml"), &self.kind_config),
            (dir.join("manifests.yaml"), &self.manifests),
            (script.clone(), &self.script),
        ];
        for (path, text) in files {
            fs::write(&path, text).map_err(error_at(&path))?;
        }
        let executable = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755));
        executable(&script).map_err(error_at(&script))?;
        for Binary { name, from } in &self.binaries {
            let path = dir.join(name);
            fs::copy(from, &path).map_err(error_at(&path))?;
            executable(&path).map_err(error_at(&path))?;
        }
        Ok(())
    }
}
