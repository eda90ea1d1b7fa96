//! Docker, kubelets and run directories of test runs.

use std::path::{Path, PathBuf};

use evictlab_cluster::images::{ImageCatalog, KubeletResolver};
use evictlab_cluster::{Docker, Kubelet, KubeletSpec};
use evictlab_report::clock::Clock;
use evictlab_report::{
    InterruptStage, KeptEvidence, ReportOptions, Reports, RunDir, VerdictCollector, reports,
};
use evictlab_runner::{Interrupt, RunRequest};
use tokio::runtime::Runtime;

/// Returns the results directory of the workspace, independent of the working directory.
pub(crate) fn results_dir() -> PathBuf {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR"));
    cases.parent().unwrap_or(cases).join("results")
}

/// Executes a request with all reports except the terminal; `verdicts` collects the results. A run
/// on the model can be repeated, and writes only the evidence of cases that need attention.
pub(crate) fn execute(
    runtime: &Runtime,
    request: RunRequest,
    run_dir: RunDir,
    clock: Clock,
    verdicts: &VerdictCollector,
) -> Result<(), String> {
    let options = ReportOptions {
        run_dir,
        stdout: None,
        stress: false,
        evidence: if clock.is_model() { KeptEvidence::Failures } else { KeptEvidence::All },
        record: None,
        write_baseline: None,
        interrupts: InterruptStage::default(),
    };
    let mut all = reports(options).map_err(|error| error.to_string())?;
    all.push(Box::new(verdicts.clone()));
    let reports = Reports::start(all, clock).map_err(|error| error.to_string())?;
    let _within = runtime.enter();
    let interrupt = Interrupt::listen().map_err(|error| error.to_string())?;
    runtime.block_on(evictlab_runner::run(request, reports.events(), interrupt));
    for failure in reports.finish().failures {
        eprintln!("error: {failure}");
    }
    Ok(())
}

/// Connects to Docker and checks the version of kind.
pub(crate) async fn connect_docker() -> Result<Docker, String> {
    let docker = Docker::connect().await.map_err(|error| error.to_string())?;
    evictlab_cluster::kind_version().await.map_err(|error| error.to_string())?;
    Ok(docker)
}

/// Resolves the kubelets to their images; `None` is the newest kubelet in Docker. Pulls no images
/// for it.
pub(crate) async fn resolve_kubelets(
    docker: &Docker,
    catalog: &ImageCatalog,
    specs: &[Option<KubeletSpec>],
) -> Result<Vec<Kubelet>, String> {
    let overrides = Default::default();
    let resolve =
        KubeletResolver { docker, catalog, overrides: &overrides, progress: &|text| eprintln!("{text}") };
    let mut named = Vec::new();
    for spec in specs {
        named.push(match spec {
            Some(spec) => spec.clone(),
            None => resolve
                .newest_local()
                .await
                .map_err(|error| error.to_string())?
                .ok_or("no node image (kindest/node) in Docker; set EVICTLAB_KUBELETS")?,
        });
    }
    resolve.resolve_all(&named).await.map_err(|error| error.to_string())
}
