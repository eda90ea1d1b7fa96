//! One case on one simulated kubelet, with or without a defect.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use evictlab_case::LoadedCase;
use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::{Backend, EmbeddedBackend, EmbeddedOptions, Kubelet, ReproCommand};
use evictlab_embedded::{CgroupVersion, Defect, Defects, OptionsError};
use evictlab_judge::{CaseResult, Verdict};
use evictlab_report::clock::Clock;
use evictlab_report::{Reports, VerdictCollector};
use evictlab_runner::{Interrupt, RunRequest, run};
use tokio::runtime::Builder;

use super::matrix::MutantCaseOutcome;

/// Simulated time after which a case is ended.
const TIMEOUT: Duration = Duration::from_secs(20 * 60);

/// A case could not be run.
#[derive(Debug, thiserror::Error)]
pub enum MutantError {
    /// The runtime or the thread of the reports cannot be started.
    #[error("failed to start the run of a case: {0}")]
    Start(#[from] io::Error),
    /// The options of the nodes are invalid.
    #[error("failed to create the cluster: {0}")]
    Options(#[from] OptionsError),
}

/// Kubelet that cases run on.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Kubelet.
    pub kubelet: Kubelet,
    /// Cgroup version of the node.
    pub cgroup: CgroupVersion,
    /// Defect of the kubelet; `None` for a sound one.
    pub defect: Option<Defect>,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Returns the cgroup version on which a case runs: v2 unless the case applies only to v1.
pub(super) fn cgroup_of(case: &LoadedCase) -> CgroupVersion {
    case.case.cgroup.unwrap_or_default()
}

impl Subject {
    /// Runs a case in a cluster of its own, in simulated time. Blocks the thread.
    ///
    /// # Errors
    /// The run could not be started.
    pub(super) fn run(
        &self,
        case: &Arc<LoadedCase>,
        catalog: &Arc<ImageCatalog>,
    ) -> Result<MutantCaseOutcome, MutantError> {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build()?;
        let result = runtime.block_on(self.run_in_runtime(case, catalog))?;
        runtime.shutdown_background();
        Ok(match result {
            Some(result) => {
                MutantCaseOutcome { verdict: result.verdict, why: result.why.trim_end().to_owned() }
            }
            None => MutantCaseOutcome {
                verdict: Verdict::Error,
                why: "the case ended without a verdict".to_owned(),
            },
        })
    }

    async fn run_in_runtime(
        &self,
        case: &Arc<LoadedCase>,
        catalog: &Arc<ImageCatalog>,
    ) -> Result<Option<Arc<CaseResult>>, MutantError> {
        let clock = Clock::model();
        let options = EmbeddedOptions {
            kubelets: vec![self.kubelet.clone()],
            nodes: 1,
            seed: self.seed,
            cgroup: self.cgroup,
            defects: self.defect.into_iter().collect::<Defects>(),
            ..EmbeddedOptions::default()
        };
        let backend = EmbeddedBackend::new(options, ReproCommand::default(), &clock)?;
        // Names of API objects contain the ID, so it is the same in every run.
        let run_id = "mutants1".to_owned();
        let request = RunRequest {
            timeout: Some(TIMEOUT),
            ..RunRequest::new(run_id, vec![case.clone()], Backend::Embedded(backend), catalog.clone())
        };
        let verdicts = VerdictCollector::default();
        let reports = Reports::start(vec![Box::new(verdicts.clone())], clock)?;
        run(request, reports.events(), Interrupt::default()).await;
        reports.finish();
        Ok(verdicts.last_result(|_| true))
    }
}
