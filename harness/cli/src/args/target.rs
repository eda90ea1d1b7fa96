//! Arguments of commands that run a selection of cases on any backend.

use std::path::PathBuf;
use std::sync::Arc;

use evictlab_case::LoadedCase;
use evictlab_case::select::{Selection, Shard, select};
use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::{Backend, ClusterAccess, ClusterSource, EmbeddedBackend, ExistingBackend};
use evictlab_report::BackendName;
use evictlab_report::clock::Clock;
use evictlab_report::text::evictlab_command;
use evictlab_runner::{Repeat, RunRequest, SelectionShard, new_run_id};

use crate::args::backend::{ManagedBackend, reject_foreign_options, stated};
use crate::args::baseline::RESULTS;
use crate::args::embedded::EmbeddedArgs;
use crate::args::existing::{ExistingArgs, existing_failure, reject_managed_options};
use crate::args::kind_cluster::{KeepArgs, NewClusterArgs};
use crate::args::kubelets::{EarlierKubelets, ImageArgs, KubeletArgs};
use crate::args::selection::SelectionArgs;
use crate::args::values::whole_number;
use crate::failure::Failure;
use crate::kind_context::KindContext;

/// Highest number of nodes for each kubelet of an embedded cluster.
pub(crate) const MAX_NODES: u16 = 1000;

/// Kubelets, nodes, and the run directory.
#[derive(clap::Args)]
pub(crate) struct TargetArgs {
    #[command(flatten)]
    kubelets: KubeletArgs,
    /// Number of nodes for each kubelet, on kind at most 16 [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "reused", value_parser = whole_number::<u16>(1..=MAX_NODES))]
    nodes: Option<u16>,
    /// Run directory [default: results/TIME]
    #[arg(long, value_name = "DIR", env = "ARTIFACTS_DIR", help_heading = RESULTS)]
    pub(crate) output_dir: Option<PathBuf>,
    /// Print the cases in their order, with their nodes, deadlines and earlier durations, and those
    /// that would be skipped; create and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    embedded: EmbeddedArgs,
    #[command(flatten)]
    new_cluster: NewClusterArgs,
    #[command(flatten)]
    keep: KeepArgs,
    #[command(flatten)]
    existing: ExistingArgs,
}

impl TargetArgs {
    /// Returns the access to an existing cluster.
    pub(crate) fn access(&self) -> ClusterAccess {
        self.existing.access()
    }

    /// Selects the kubelets of an earlier run, unless the command line selects some, or a cluster
    /// that has its own.
    pub(crate) fn default_to_kubelets(&mut self, args: &[String]) -> EarlierKubelets {
        match self.keep.reused() {
            Some(_) => EarlierKubelets::NotSelected,
            None => self.kubelets.default_to(args),
        }
    }

    pub(crate) fn nodes(&self) -> u16 {
        self.nodes.unwrap_or(1)
    }

    /// Returns the arguments that select the same kubelets and nodes on kind.
    fn words(&self) -> Vec<String> {
        let mut words = self.kubelets.words();
        if self.nodes() > 1 {
            words.extend(["--nodes".to_owned(), self.nodes().to_string()]);
        }
        words
    }

    /// Rejects options that only apply to other backends.
    fn reject_foreign_options(&self, backend: BackendName) -> Result<(), Failure> {
        self.embedded.reject_on(backend)?;
        reject_foreign_options(backend, BackendName::Kind, &self.new_cluster.stated_options())?;
        reject_foreign_options(backend, BackendName::Kind, &self.keep.stated_options())?;
        reject_foreign_options(backend, BackendName::Kind, &self.kubelets.images().stated_kind_options())?;
        reject_foreign_options(backend, BackendName::Existing, &self.existing.stated_options())?;
        let managed = stated([("--kubelet", self.kubelets.any()), ("--nodes", self.nodes.is_some())]);
        match backend {
            BackendName::Existing => reject_managed_options(&managed),
            BackendName::Embedded | BackendName::Kind => Ok(()),
        }
    }

    /// Returns the request to run the selected cases. Creates no resources. `kind_command` is the
    /// command that does the same on kind, without these arguments.
    pub(crate) async fn request(
        &self,
        backend: BackendName,
        selection: &SelectionArgs,
        repeat: Repeat,
        clock: &Clock,
        kind_command: Vec<String>,
    ) -> Result<RunRequest, Failure> {
        let cases = select(&selection.source(), &selection.selection())?;
        let shard = selection.shard().map(|shard| selection_shard(shard, selection, &cases)).transpose()?;
        let catalog = self.kubelets.image_catalog()?;
        let run = new_run_id();
        let backend = self.backend(backend, &run, &catalog, clock, kind_command).await?;
        Ok(RunRequest { shard, repeat, ..RunRequest::new(run, cases, backend, Arc::new(catalog)) })
    }

    /// Returns the backend for the run `run`.
    async fn backend(
        &self,
        backend: BackendName,
        run: &str,
        catalog: &ImageCatalog,
        clock: &Clock,
        kind_command: Vec<String>,
    ) -> Result<Backend, Failure> {
        self.reject_foreign_options(backend)?;
        Ok(match backend {
            BackendName::Embedded => Backend::Embedded(self.embedded(catalog, clock, kind_command)?),
            BackendName::Kind => Backend::Kind(self.kind(run, catalog).await?),
            BackendName::Existing => {
                let options = self.existing.options();
                let backend = ExistingBackend::connect(run, &options, |name| catalog.case_image(name)).await;
                Backend::Existing(backend.map_err(existing_failure)?)
            }
        })
    }

    fn embedded(
        &self,
        catalog: &ImageCatalog,
        clock: &Clock,
        mut kind_command: Vec<String>,
    ) -> Result<EmbeddedBackend, Failure> {
        let kubelets = self.kubelets.modelled(catalog)?;
        kind_command.extend(self.words());
        self.embedded.backend(kubelets, self.nodes().into(), evictlab_command(&kind_command), clock)
    }

    async fn kind(
        &self,
        run: &str,
        catalog: &ImageCatalog,
    ) -> Result<evictlab_cluster::KindBackend, Failure> {
        let clusters = match self.keep.reused() {
            Some(name) => ClusterSource::Kept(name.to_owned()),
            None => self.new_cluster.clusters(run, self.nodes())?.into(),
        };
        let kind = KindContext::connect().await?;
        let kubelets = match (self.keep.reused(), self.kubelets.any()) {
            (Some(name), false) => kind.kubelets_of(name).await?,
            _ if self.dry_run => self.kubelets.resolve_offline(Some(&kind.docker), catalog).await?,
            _ => self.kubelets.resolve(&kind.docker, catalog).await?,
        };
        kind.backend(run, kubelets, clusters, self.keep.keep()).await
    }
}

/// Returns the rest of the selection of which `cases` are a shard.
fn selection_shard(
    shard: Shard,
    selection: &SelectionArgs,
    cases: &[Arc<LoadedCase>],
) -> Result<SelectionShard, Failure> {
    let mut other_cases = select(&selection.source(), &Selection { shard: None, ..selection.selection() })?;
    other_cases.retain(|other| !cases.iter().any(|case| case.id() == other.id()));
    Ok(SelectionShard { shard, other_cases })
}

/// Rejects options that only apply to the other managed backend.
pub(crate) fn reject_foreign_managed_options(
    backend: ManagedBackend,
    embedded: &EmbeddedArgs,
    new_cluster: &NewClusterArgs,
    images: &ImageArgs,
) -> Result<(), Failure> {
    let backend = BackendName::from(backend);
    embedded.reject_on(backend)?;
    reject_foreign_options(backend, BackendName::Kind, &new_cluster.stated_options())?;
    reject_foreign_options(backend, BackendName::Kind, &images.stated_kind_options())
}
