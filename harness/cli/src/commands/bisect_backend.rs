//! The backend of a search for a commit, from the arguments of the command.

use std::path::Path;
use std::sync::Arc;

use evictlab_case::LoadedCase;
use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::{Backend, ClusterSource, KeepPolicy, Kubelet, KubeletSource, KubeletSpec};
use evictlab_report::text::evictlab_command;
use evictlab_report::{BackendName, RunDir};
use evictlab_rules::KubeletVersion;
use evictlab_runner::{Interrupt, new_run_id};
use evictlab_tools::bisect::KubeletVerdicts;
use evictlab_tools::git_bisect::{CommitBackend, KeptCluster};

use super::bisect_run::BisectRun;
use crate::args::backend::ManagedBackend;
use crate::args::bisect::BisectArgs;
use crate::failure::Failure;
use crate::kind_context::KindContext;
use crate::messages::print_stderr;

/// Modelled nodes, or kind clusters.
pub(super) struct BisectBackend<'a> {
    args: &'a BisectArgs,
    case: Arc<LoadedCase>,
    interrupt: &'a Interrupt,
    catalog: ImageCatalog,
    /// `None` for the embedded backend.
    kind: Option<KindContext>,
}

impl<'a> BisectBackend<'a> {
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
        Ok(Self { args, case, interrupt, catalog: args.images.image_catalog()?, kind })
    }

    /// Returns the backend of one run. On kind, the run uses the kept cluster, or keeps a new one.
    async fn backend(
        &self,
        run: &str,
        kubelet: &Kubelet,
        kept: Option<&KeptCluster>,
    ) -> Result<Backend, Failure> {
        let kubelets = vec![kubelet.clone()];
        let Some(kind) = &self.kind else {
            let clock = BackendName::from(self.args.backend()).clock();
            let embedded = self.args.embedded.backend(
                kubelets,
                1,
                evictlab_command(&self.args.kind_command()),
                &clock,
            )?;
            return Ok(Backend::Embedded(embedded));
        };
        let (clusters, keep) = match kept {
            Some(kept) => (ClusterSource::Kept(kept.name.clone()), KeepPolicy::Never),
            None => (self.args.new_cluster.clusters(run, 1)?.into(), KeepPolicy::ForNextRun),
        };
        let opened = self.interrupt.or_none(kind.backend(run, kubelets, clusters, keep)).await;
        Ok(Backend::Kind(opened.unwrap_or_else(|| Err(Failure::interrupted()))?))
    }

    /// Removes a cluster from `kept` that is not the one that a run of the search created, or that
    /// another process uses. It is neither used nor deleted.
    async fn forget_foreign_cluster(&self, kept: &mut Option<KeptCluster>) -> Result<(), Failure> {
        let (Some(kind), Some(cluster)) = (&self.kind, &*kept) else { return Ok(()) };
        let known =
            evictlab_cluster::find(&kind.docker, &kind.state).await.map_err(Failure::infrastructure)?;
        if !known.iter().any(|found| cluster.is(found)) {
            let name = &cluster.name;
            print_stderr(format!(
                "warning: cluster {name} is not the one that this search created, or is in use: it is left alone"
            ));
            *kept = None;
        }
        Ok(())
    }
}

impl CommitBackend for BisectBackend<'_> {
    type Error = Failure;

    /// Returns the kubelet of a binary. The model has the kubelet of its version.
    async fn kubelet(&self, binary: &Path, version: &KubeletVersion) -> Result<Kubelet, String> {
        let source = match self.kind {
            Some(_) => KubeletSource::Binary(binary.to_owned()),
            None => KubeletSource::Release(version.clone()),
        };
        let spec = [KubeletSpec::from(source)];
        let images = &self.args.images;
        let resolved = match &self.kind {
            Some(kind) => images.resolve(&kind.docker, &self.catalog, &spec).await,
            None => images.modelled(&spec, &self.catalog),
        };
        let kubelets = resolved.map_err(|failure| failure.message)?;
        kubelets.into_iter().next().ok_or_else(|| "failed to resolve the kubelet: expected one".to_owned())
    }

    async fn run(
        &self,
        kubelet: &Kubelet,
        dir: &Path,
        kept: &mut Option<KeptCluster>,
    ) -> Result<KubeletVerdicts, Failure> {
        let run_dir = RunDir::at(dir).map_err(Failure::bad_input)?;
        let run = new_run_id();
        self.forget_foreign_cluster(kept).await?;
        let backend = self.backend(&run, kubelet, kept.as_ref()).await?;
        let cluster = backend.plans().first().map(|plan| plan.name.clone()).unwrap_or_default();
        let (case, catalog, tries) = (self.case.clone(), self.catalog.clone(), self.args.commits.repeat());
        let id = run.clone();
        let bisect_run = BisectRun { run, case, backend, catalog, tries, run_dir };
        let clock = BackendName::from(self.args.backend()).clock();
        let verdicts = bisect_run.execute(self.args, clock, self.interrupt).await;
        let is_kept = |kind: &KindContext| kind.state.read(&cluster).is_some_and(|record| record.kept);
        if self.kind.as_ref().is_some_and(is_kept) {
            let version = kubelet.image_version.clone();
            kept.get_or_insert(KeptCluster { name: cluster, run: id, version });
        }
        verdicts
    }

    async fn delete(&self, kept: &mut Option<KeptCluster>) -> Result<(), Failure> {
        self.forget_foreign_cluster(kept).await?;
        let (Some(kind), Some(cluster)) = (&self.kind, &*kept) else { return Ok(()) };
        tokio::select! {
            deleted = evictlab_cluster::delete(&kind.docker, &kind.state, &cluster.name) => {
                deleted.map_err(Failure::infrastructure)?;
                *kept = None;
            }
            () = self.interrupt.reports_only.cancelled() => {}
        }
        Ok(())
    }
}
