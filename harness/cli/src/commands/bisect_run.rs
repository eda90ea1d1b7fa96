//! One run of a search: the case on the kubelets of a cluster.

use std::sync::Arc;

use evictlab_case::LoadedCase;
use evictlab_cluster::Backend;
use evictlab_cluster::images::ImageCatalog;
use evictlab_report::clock::Clock;
use evictlab_report::{InterruptStage, KeptEvidence, ReportOptions, RunDir};
use evictlab_runner::{Interrupt, Repeat, RunRequest};
use evictlab_tools::bisect::KubeletVerdicts;

use crate::args::bisect::BisectArgs;
use crate::execute::{MAX_ATTEMPTS, execute};
use crate::failure::Failure;

/// A run of a search.
pub(super) struct BisectRun {
    /// Id of the run.
    pub(super) run: String,
    /// The case.
    pub(super) case: Arc<LoadedCase>,
    /// Backend with the kubelets.
    pub(super) backend: Backend,
    /// Full names of the images.
    pub(super) catalog: ImageCatalog,
    /// Number of conclusive verdicts on each kubelet.
    pub(super) tries: u32,
    /// Directory of the run.
    pub(super) run_dir: RunDir,
}

impl BisectRun {
    /// Executes the run and returns its verdicts.
    ///
    /// # Errors
    /// A report cannot be started, or the run was interrupted.
    pub(super) async fn execute(
        self,
        args: &BisectArgs,
        clock: Clock,
        interrupt: &Interrupt,
    ) -> Result<KubeletVerdicts, Failure> {
        let attempts = self.tries + MAX_ATTEMPTS - 1;
        let request = RunRequest {
            repeat: Repeat::UntilConclusive { verdicts: self.tries, attempts },
            ..RunRequest::new(self.run, vec![self.case], self.backend, Arc::new(self.catalog))
        };
        let options = ReportOptions {
            run_dir: self.run_dir,
            stdout: (!args.json).then(|| args.output.options().without_hints()),
            stress: false,
            evidence: KeptEvidence::All,
            record: None,
            write_baseline: None,
            interrupts: InterruptStage::default(),
        };
        let verdicts = KubeletVerdicts::default();
        execute(request, options, vec![verdicts.collector()], clock, interrupt.clone()).await?;
        if interrupt.stop.is_cancelled() { Err(Failure::interrupted()) } else { Ok(verdicts) }
    }
}
