//! The worker on which the kubelets of commits run, one after the other: a modelled node, or the
//! worker of a kind cluster that outlives the runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evictlab_case::LoadedCase;
use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::{
    Backend, ClusterSource, KeepPolicy, Kubelet, KubeletSource, KubeletSpec, is_skew_allowed,
};
use evictlab_report::RunDir;
use evictlab_report::words::shell_quote;
use evictlab_rules::KubeletVersion;
use evictlab_runner::{Interrupt, new_run_id};
use evictlab_tools::bisect::VerdictObserver;
use evictlab_tools::git_bisect::{KeptCluster, SearchFile};

use super::bisect_probe::Probe;
use crate::args::backend::{BackendName, ManagedBackend};
use crate::args::bisect::BisectArgs;
use crate::failure::{Failure, bad_input, infrastructure};
use crate::kind_context::KindContext;

/// The worker of a search for a commit.
pub(super) struct CommitWorker<'a> {
    args: &'a BisectArgs,
    case: Arc<LoadedCase>,
    interrupt: &'a Interrupt,
    catalog: ImageCatalog,
    /// `None` for the embedded backend.
    kind: Option<KindContext>,
    /// Number of the last kubelets in a row whose new cluster failed.
    failures: u32,
}

impl<'a> CommitWorker<'a> {
    /// Loads the image catalog, and connects to Docker if the backend needs it.
    pub(super) async fn new(
        args: &'a BisectArgs,
        case: Arc<LoadedCase>,
        interrupt: &'a Interrupt,
    ) -> Result<Self, Failure> {
        let kind = match args.backend() {
            ManagedBackend::Embedded => None,
            ManagedBackend::Kind => Some(KindContext::connect().await?),
        };
        Ok(Self { args, case, interrupt, catalog: args.images.image_catalog()?, kind, failures: 0 })
    }

    /// Returns the kubelet of a binary. The model has the kubelet of its version.
    pub(super) async fn kubelet(&self, path: &Path, version: &KubeletVersion) -> Result<Kubelet, Failure> {
        let source = match self.kind {
            Some(_) => KubeletSource::Binary(path.to_owned()),
            None => KubeletSource::Release(version.clone()),
        };
        let spec = [KubeletSpec::from(source)];
        let images = &self.args.images;
        let resolved = match &self.kind {
            Some(kind) => images.resolve(&kind.docker, &self.catalog, &spec).await?,
            None => images.modelled(&spec, &self.catalog)?,
        };
        resolved
            .into_iter()
            .next()
            .ok_or_else(|| infrastructure("failed to resolve the kubelet: expected one"))
    }

    /// Runs the case on a kubelet and writes the run to `dir`. On kind, the kubelet replaces that of
    /// the last run; a cluster that fails is replaced by a new one.
    ///
    /// # Errors
    /// Interrupted, or new clusters failed for two kubelets in a row: the cause is not the kubelet.
    pub(super) async fn run(
        &mut self,
        kubelet: &Kubelet,
        dir: &Path,
        file: &mut SearchFile,
    ) -> Result<VerdictObserver, Failure> {
        if file.cluster.as_ref().is_some_and(|kept| !fits(kept, kubelet)) {
            self.delete_cluster(file).await?;
        }
        let is_kept = file.cluster.is_some();
        let mut observed = self.run_once(kubelet, dir, file).await;
        if self.interrupt.stop.is_cancelled() {
            return observed;
        }
        if is_kept && !matches!(&observed, Ok(observer) if observer.cluster_error().is_none()) {
            self.delete_cluster(file).await?;
            if !matches!(&observed, Ok(observer) if is_start_failure(observer, kubelet)) {
                observed = self.run_once(kubelet, dir, file).await;
            }
        }
        let observer = observed?;
        self.failures = match observer.cluster_error() {
            Some(_) if is_start_failure(&observer, kubelet) => 0,
            Some(error) if self.failures > 0 => return Err(infrastructure(error)),
            Some(_) => 1,
            None => 0,
        };
        Ok(observer)
    }

    async fn run_once(
        &self,
        kubelet: &Kubelet,
        dir: &Path,
        file: &mut SearchFile,
    ) -> Result<VerdictObserver, Failure> {
        // Left by an interrupted run of this commit, or by one whose cluster failed.
        if dir.exists() {
            fs::remove_dir_all(dir).map_err(infrastructure)?;
        }
        let run_dir = RunDir::at(dir).map_err(bad_input)?;
        let clock = BackendName::from(self.args.backend()).clock();
        let run = new_run_id();
        let backend = match &self.kind {
            None => {
                let command = self.kind_command();
                Backend::Embedded(self.args.embedded.backend(vec![kubelet.clone()], 1, command, &clock)?)
            }
            Some(kind) => {
                let (clusters, keep) = match &file.cluster {
                    Some(kept) => (ClusterSource::Kept(kept.name.clone()), KeepPolicy::Never),
                    None => (self.args.new_cluster.clusters(&run, 1)?, KeepPolicy::ForNextRun),
                };
                let opened = kind.backend(&run, vec![kubelet.clone()], clusters, keep);
                let opened =
                    self.interrupt.or_none(opened).await.unwrap_or_else(|| Err(Failure::interrupted()));
                Backend::Kind(opened?)
            }
        };
        let cluster = backend.plans().first().map(|plan| plan.name.clone()).unwrap_or_default();
        let tries = self.args.commits.tries();
        let catalog = self.catalog.clone();
        let probe = Probe { run, case: self.case.clone(), backend, catalog, tries, run_dir };
        let observed = probe.execute(self.args, clock, self.interrupt).await;
        let is_kept = |kind: &KindContext| kind.state.read(&cluster).is_some_and(|record| record.kept);
        if self.kind.as_ref().is_some_and(is_kept) {
            let version = kubelet.image_version.clone();
            file.cluster.get_or_insert(KeptCluster { name: cluster, version });
        }
        observed
    }

    /// Deletes the cluster of the search, if there is one.
    pub(super) async fn delete_cluster(&self, file: &mut SearchFile) -> Result<(), Failure> {
        let (Some(kind), Some(kept)) = (&self.kind, &file.cluster) else { return Ok(()) };
        tokio::select! {
            deleted = evictlab_cluster::delete(&kind.docker, &kind.state, &kept.name) => {
                deleted.map_err(infrastructure)?;
                file.cluster = None;
            }
            () = self.interrupt.reports_only.cancelled() => {}
        }
        Ok(())
    }

    /// Returns the command that does the same on kind.
    fn kind_command(&self) -> String {
        let args = self.args;
        let words = ["evictlab", "bisect", &args.case, "--good", &args.good, "--bad", &args.bad];
        let mut words = words.map(str::to_owned).to_vec();
        words.extend(args.commits.words());
        words.extend(["--backend", "kind"].map(str::to_owned));
        shell_quote(&words)
    }
}

/// Returns whether a kubelet can replace that of a kept cluster: its own cluster would have node
/// images of the same minor version.
fn fits(kept: &KeptCluster, kubelet: &Kubelet) -> bool {
    kept.version.minor == kubelet.image_version.minor && is_skew_allowed(&kept.version, &kubelet.version)
}

/// Returns whether the cluster failed because the kubelet did not start: the error names the binary.
fn is_start_failure(observer: &VerdictObserver, kubelet: &Kubelet) -> bool {
    let names = |binary: &PathBuf, error: String| error.contains(&*binary.to_string_lossy());
    kubelet.binary.as_ref().zip(observer.cluster_error()).is_some_and(|(binary, error)| names(binary, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_fits_kubelets_of_its_minor_version() {
        let kept = KeptCluster { name: "evictlab-a".to_owned(), version: "v1.34.2".parse().unwrap() };
        // Version of the kubelet, version of its node image.
        for (version, image, expected) in [
            ("v1.34.2", "v1.34.2", true),
            ("v1.34.0-alpha.1.5+3f2a", "v1.34.0", true),
            ("v1.33.4-12+3f2a", "v1.34.2", true),
            ("v1.33.4", "v1.33.4", false),
            ("v1.35.0-alpha.0.7+3f2a", "v1.35.0", false),
        ] {
            let kubelet = Kubelet {
                label: version.to_owned(),
                version: version.parse().unwrap(),
                image: format!("kindest/node:{image}"),
                image_version: image.parse().unwrap(),
                binary: Some("/cache/kubelet".into()),
            };
            assert_eq!(fits(&kept, &kubelet), expected, "{version} on {image}");
        }
    }
}
