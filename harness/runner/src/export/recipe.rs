//! The folder's files.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::kind_config::kind_config;
use super::manifests::manifests;
use super::refusal::check;
use super::script::script;
use super::workers::{Cluster, Worker};
use super::{Machine, NotExportable};
use crate::case::LoadedCase;
use crate::cluster::Kubelet;
use crate::stage;

/// What a container may take to start where nothing is known of the machine: too slow a ramp costs seconds, too quick a one the evidence.
const START: Duration = Duration::from_secs(10);

/// A case as files for kind and kubectl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// `kind-config.yaml`: for `kind create cluster --config`.
    pub kind_config: String,
    /// `manifests.yaml`: for `kubectl create`, in namespaces that the script makes.
    pub manifests: String,
    /// `run.sh`: makes the cluster, puts it under pressure, shows what the kubelets say, deletes the cluster.
    pub script: String,
    /// The kubelets that are mounted into workers.
    pub binaries: Vec<Binary>,
}

/// A kubelet's binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// Its file in the folder.
    pub name: String,
    /// Where it is copied from.
    pub from: PathBuf,
}

/// A file of the folder cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {source}", .path.display())]
pub struct WriteError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// The files that repeat a case on these kubelets, one worker for each; `images` gives the full name of a case's image.
///
/// # Errors
/// The case asks for something that kind and kubectl do not do, is not for one of the kubelets, or these cannot share a cluster.
pub fn recipe(
    case: &LoadedCase,
    kubelets: &[Kubelet],
    machine: &Machine,
    images: &dyn Fn(&str) -> String,
) -> Result<Recipe, NotExportable> {
    check(case, images)?;
    let cluster = Cluster::of(case, kubelets)?;
    let ramp =
        case.case.pressure.as_ref().map(|pressure| stage::ramp(pressure, case.case.containers(), START));
    let binary =
        |worker: &Worker<'_>| Some(Binary { name: worker.binary()?, from: worker.kubelet.binary.clone()? });
    Ok(Recipe {
        kind_config: kind_config(case, &cluster, machine)?,
        manifests: manifests(case, &cluster, ramp.as_ref(), images)?,
        script: script(case, &cluster, ramp.as_ref(), images),
        binaries: cluster.workers.iter().filter_map(binary).collect(),
    })
}

impl Recipe {
    /// Writes the files into a folder, which is made if it is not there.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), WriteError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| WriteError { path, source }
        };
        fs::create_dir_all(dir).map_err(at(dir))?;
        let script = dir.join("run.sh");
        let files = [
            (dir.join("kind-config.yaml"), &self.kind_config),
            (dir.join("manifests.yaml"), &self.manifests),
            (script.clone(), &self.script),
        ];
        for (path, text) in files {
            fs::write(&path, text).map_err(at(&path))?;
        }
        let executable = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755));
        executable(&script).map_err(at(&script))?;
        for Binary { name, from } in &self.binaries {
            let path = dir.join(name);
            fs::copy(from, &path).map_err(at(&path))?;
            executable(&path).map_err(at(&path))?;
        }
        Ok(())
    }
}
