//! What cases are run on: the arguments of every command that runs a selection on any backend.

use std::path::PathBuf;
use std::sync::Arc;

use evictlab_runner::clock::Clock;
use evictlab_runner::cluster::{self, Clusters, EmbeddedBackend, ExistingBackend};
use evictlab_runner::images::Lock;
use evictlab_runner::schedule::{Repeat, Request, new_id};
use evictlab_runner::select::select;
use evictlab_runner::words::quoted;

use super::backend::Backend;
use super::embedded::EmbeddedArgs;
use super::existing::{self, ExistingArgs, only_when_made};
use super::kept::KeepArgs;
use super::kind::Kind;
use super::kubelets::{ImageArgs, KubeletArgs};
use super::new_cluster::NewClusterArgs;
use super::selection::SelectionArgs;
use crate::failure::{Failure, bad_input};

/// Which kubelets, where their nodes come from, and where the run's files go.
#[derive(clap::Args)]
pub struct TargetArgs {
    #[command(flatten)]
    kubelets: KubeletArgs,
    /// Workers for each kubelet [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "reused", value_parser = clap::value_parser!(u8).range(1..=16))]
    nodes: Option<u8>,
    /// Leave the run's files here [default: results/TIME]
    #[arg(long, value_name = "DIR", env = "ARTIFACTS_DIR")]
    pub output_dir: Option<PathBuf>,
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
    fn nodes(&self) -> u8 {
        self.nodes.unwrap_or(1)
    }

    /// The options that ask for the same kubelets on kind.
    fn words(&self) -> Vec<String> {
        let mut words = self.kubelets.words();
        if self.nodes() > 1 {
            words.extend(["--nodes".to_owned(), self.nodes().to_string()]);
        }
        words
    }

    /// Refuses options of other backends than this one.
    fn refuse_strangers(&self, backend: Backend) -> Result<(), Failure> {
        if backend != Backend::Embedded {
            self.embedded.not_on(backend)?;
        }
        if backend != Backend::Kind {
            backend.refuse(Backend::Kind, &self.new_cluster.given())?;
            backend.refuse(Backend::Kind, &self.keep.given())?;
            backend.refuse(Backend::Kind, &self.kubelets.images().only_on_kind())?;
        }
        if backend != Backend::Existing {
            return backend.refuse(Backend::Existing, &self.existing.given());
        }
        only_when_made(&[(self.kubelets.any(), "--kubelet"), (self.nodes.is_some(), "--nodes")])
    }

    /// A run of the selected cases. Nothing is made. `again`: the command that runs the same on kind, less these arguments.
    pub async fn request(
        &self,
        backend: Backend,
        selection: &SelectionArgs,
        repeat: Repeat,
        clock: &Clock,
        again: Vec<String>,
    ) -> Result<Request, Failure> {
        let cases = select(&selection.source(), &selection.selection())?;
        let lock = self.kubelets.lock()?;
        let run = new_id();
        let backend = self.backend(backend, &run, &lock, clock, again).await?;
        Ok(Request { run, cases, backend, repeat, timeout: None, lock: Arc::new(lock), baseline: None })
    }

    /// Where the run `run` gets its nodes.
    async fn backend(
        &self,
        backend: Backend,
        run: &str,
        lock: &Lock,
        clock: &Clock,
        again: Vec<String>,
    ) -> Result<Box<dyn cluster::Backend>, Failure> {
        self.refuse_strangers(backend)?;
        Ok(match backend {
            Backend::Embedded => Box::new(self.embedded(lock, clock, again)?),
            Backend::Kind => Box::new(self.kind(run, lock).await?),
            Backend::Existing => {
                let asked = self.existing.asked();
                let reached = ExistingBackend::reach(run, &asked, |name| lock.case_image(name)).await;
                Box::new(reached.map_err(existing::unusable)?)
            }
        })
    }

    fn embedded(
        &self,
        lock: &Lock,
        clock: &Clock,
        mut again: Vec<String>,
    ) -> Result<EmbeddedBackend, Failure> {
        let kubelets = self.kubelets.modelled(lock)?;
        again.extend(self.words());
        self.embedded.backend(kubelets, self.nodes().into(), quoted(&again), clock)
    }

    async fn kind(&self, run: &str, lock: &Lock) -> Result<cluster::KindBackend, Failure> {
        let clusters = match self.keep.reused() {
            Some(name) => Clusters::Kept(name.to_owned()),
            None => self.new_cluster.clusters(run, self.nodes())?,
        };
        let kind = Kind::at_hand().await?;
        let kubelets = match (self.keep.reused(), self.kubelets.any()) {
            (Some(name), false) => kind.kubelets_of(name).await?,
            _ => self.kubelets.resolve(&kind.docker, lock).await?,
        };
        kind.backend(run, kubelets, clusters, self.keep.keep()).await
    }
}

/// Refuses a cluster that is there already, where kubelets are to be compared, and options of other backends than this one.
pub fn only_made(
    backend: Backend,
    embedded: &EmbeddedArgs,
    new_cluster: &NewClusterArgs,
    images: &ImageArgs,
) -> Result<(), Failure> {
    match backend {
        Backend::Existing => Err(bad_input(
            "the kubelets are put on nodes that evictlab makes: take --backend kind, or embedded for a model\nOn a cluster that is there already: evictlab run --backend existing.",
        )),
        Backend::Embedded => {
            backend.refuse(Backend::Kind, &new_cluster.given())?;
            backend.refuse(Backend::Kind, &images.only_on_kind())
        }
        Backend::Kind => embedded.not_on(backend),
    }
}
