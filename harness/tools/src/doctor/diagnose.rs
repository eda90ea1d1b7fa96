//! All checks of `evictlab doctor`.

use std::collections::BTreeMap;
use std::time::Duration;

use bollard::models::SystemInfo;
use evictlab_rules::KubeletVersion;
use tokio_util::sync::CancellationToken;

use super::check::{Check, CheckSubject, Diagnosis};
use super::host_probe::probe;
use super::{host_checks, kind_and_docker, node_images};
use evictlab_cluster::images::{ImageCatalog, KubeletImage, KubeletResolver};
use evictlab_cluster::{Docker, DockerError, KubeletSource, KubeletSpec};
use evictlab_runner::new_run_id;

/// Kubelets to check, and image sources.
#[derive(Clone, Copy, Debug)]
pub struct DoctorOptions<'a> {
    /// Kubelets to run; if empty, any kubelet in Docker.
    pub kubelets: &'a [KubeletSpec],
    /// The image catalog.
    pub catalog: &'a ImageCatalog,
    /// Images from `--node-image VERSION=IMAGE`.
    pub overrides: &'a BTreeMap<KubeletVersion, String>,
}

/// Checks that need a container on the Docker host.
const CONTAINER_CHECKS: [CheckSubject; 4] =
    [CheckSubject::Privileged, CheckSubject::Inotify, CheckSubject::Memory, CheckSubject::Disk];

/// Timeout of the connection to Docker.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Checks this machine and its Docker host. Changes nothing: the test container is removed before
/// the function returns, also after cancellation.
pub async fn diagnose(options: DoctorOptions<'_>, cancel: &CancellationToken) -> Diagnosis {
    let mut checks = vec![Check::ok(CheckSubject::Embedded, "`evictlab run` has no requirements")];
    let connected = tokio::select! {
        biased;
        connected = tokio::time::timeout(CONNECT_TIMEOUT, Docker::connect()) => connected.ok(),
        () = cancel.cancelled() => None,
    };
    let connected = connected.map(|connected| connected.map_err(|error| connection_failed(&error)));
    match connected.unwrap_or_else(|| Err(timed_out())) {
        Ok(docker) => match docker.info().await {
            Ok(info) => checks.extend(check_docker(&docker, &info, options, cancel).await),
            Err(error) => checks.extend(without_docker(Check::error(CheckSubject::Docker, &error)).await),
        },
        Err(failure) => checks.extend(without_docker(failure).await),
    }
    Diagnosis::new(checks)
}

/// Returns the checks of a Docker host that does not answer; `failure` is that of its connection.
async fn without_docker(failure: Check) -> Vec<Check> {
    let reason = "Docker does not answer";
    let mut checks = vec![failure, kind_and_docker::docker(None).await, kind_and_docker::kind().await];
    checks.push(Check::unknown(CheckSubject::Cgroup, reason, ""));
    checks.extend(CONTAINER_CHECKS.map(|subject| Check::unknown(subject, reason, "")));
    checks.push(Check::unknown(CheckSubject::NodeImage, reason, ""));
    checks
}

fn connection_failed(error: &DockerError) -> Check {
    let check = Check::error(CheckSubject::Docker, error);
    match error {
        DockerError::Unreachable { .. } => Check {
            remedy: Some("Start Docker, or set DOCKER_HOST to its address (unix:// or tcp://).".to_owned()),
            ..check
        },
        _ => check,
    }
}

fn timed_out() -> Check {
    Check::fail(
        CheckSubject::Docker,
        format!("no answer from {} within {} s", evictlab_cluster::docker_host(), CONNECT_TIMEOUT.as_secs()),
        "Set DOCKER_HOST to the address of Docker, and check the network connection.",
    )
}

/// Runs the checks of a Docker host with this system information.
async fn check_docker(
    docker: &Docker,
    info: &SystemInfo,
    options: DoctorOptions<'_>,
    cancel: &CancellationToken,
) -> Vec<Check> {
    let api = docker.api().client_version();
    let api = (api.major_version, api.minor_version);
    let mut checks = vec![
        host_checks::daemon(&evictlab_cluster::docker_host(), info, api),
        kind_and_docker::docker(info.id.as_deref()).await,
        kind_and_docker::kind().await,
        host_checks::cgroup(info, &known_versions(options.kubelets)),
    ];
    let DoctorOptions { kubelets: specs, catalog, overrides } = options;
    let resolve = KubeletResolver { docker, catalog, overrides, progress: &|_| {} };
    let present = docker.images("kindest/node").await;
    let image = match first_present_image(&resolve, specs).await {
        Some(image) => Some(image),
        None => present.iter().flatten().next().cloned(),
    };
    checks.extend(check_host(docker, image.as_deref(), info, specs.len(), cancel).await);
    if !specs.is_empty() {
        checks.extend(node_images::requested(&resolve, specs).await);
        return checks;
    }
    match (present, resolve.newest().await) {
        (Ok(present), Ok(newest)) => {
            let newest = newest.as_ref().map(node_images::name);
            checks.push(node_images::present(&present, newest.as_deref().unwrap_or("VERSION")));
        }
        (Err(error), _) => checks.push(Check::error(CheckSubject::NodeImage, &error)),
        (_, Err(error)) => checks.push(Check::error(CheckSubject::NodeImage, &error)),
    }
    checks
}

/// Runs the checks that need a container.
async fn check_host(
    docker: &Docker,
    image: Option<&str>,
    info: &SystemInfo,
    kubelets: usize,
    cancel: &CancellationToken,
) -> Vec<Check> {
    let remedy = "Pull a node image: `docker pull kindest/node:VERSION`.";
    let unknown = |subjects: &[CheckSubject], reason: &str, remedy: &str| -> Vec<Check> {
        subjects.iter().map(|subject| Check::unknown(*subject, reason, remedy)).collect()
    };
    let Some(image) = image else {
        return unknown(&CONTAINER_CHECKS, "no node image for a test container", remedy);
    };
    match probe(docker, image, &new_run_id(), cancel).await {
        Ok(Some(facts)) => {
            let total = info.mem_total.and_then(|total| u64::try_from(total).ok());
            vec![
                Check::ok(CheckSubject::Privileged, format!("a privileged container of {image} started")),
                host_checks::inotify(&facts),
                host_checks::memory(&facts, total, kubelets),
                host_checks::disk(&facts, info.docker_root_dir.as_deref()),
            ]
        }
        Ok(None) => unknown(&CONTAINER_CHECKS, "interrupted", ""),
        Err(error) => {
            let failed = Check::fail(
                CheckSubject::Privileged,
                error.to_string().replace('\n', " "),
                "Allow privileged containers, which kind uses as nodes (an authorization plugin, a user namespace or a hosted runner may forbid them).",
            );
            let mut checks = vec![failed];
            checks.extend(unknown(&CONTAINER_CHECKS[1..], "privileged containers are not possible", ""));
            checks
        }
    }
}

/// Returns the first image of the requested kubelets that is in Docker.
async fn first_present_image(resolve: &KubeletResolver<'_>, specs: &[KubeletSpec]) -> Option<String> {
    for spec in specs {
        if let Ok(KubeletImage { image, is_local: true }) = resolve.lookup(spec).await {
            return Some(image);
        }
    }
    None
}

/// Returns the versions that are known without Docker.
fn known_versions(specs: &[KubeletSpec]) -> Vec<KubeletVersion> {
    let version = |spec: &KubeletSpec| match &spec.source {
        KubeletSource::Release(version) => Some(version.clone()),
        KubeletSource::Minor(minor) => Some(KubeletVersion::from_minor(*minor)),
        KubeletSource::Image(_) | KubeletSource::Binary(_) => spec.claimed.clone(),
    };
    specs.iter().filter_map(version).collect()
}
