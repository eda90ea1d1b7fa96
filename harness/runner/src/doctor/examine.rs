//! The whole examination, in the order in which a person would go about it.

use std::collections::BTreeMap;
use std::time::Duration;

use bollard::models::SystemInfo;
use evictlab_rules::KubeletVersion;
use tokio_util::sync::CancellationToken;

use super::probe::probe;
use super::{About, Check, Diagnosis, host, kubelets, tools};
use crate::cluster::{self, Docker, DockerError, KubeletSource, KubeletSpec};
use crate::images::{Lock, Looked, Resolve};
use crate::schedule::new_id;

/// What is examined.
#[derive(Clone, Copy, Debug)]
pub struct Patient<'a> {
    /// The kubelets that shall run; none: whichever there are.
    pub kubelets: &'a [KubeletSpec],
    /// Known images.
    pub lock: &'a Lock,
    /// `--node-image VERSION=IMAGE`.
    pub overrides: &'a BTreeMap<KubeletVersion, String>,
}

/// The checks that only a container on the Docker host can make.
const BY_CONTAINER: [About; 4] = [About::Privileged, About::Inotify, About::Memory, About::Disk];

/// How long a daemon may take for its first answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Examines this machine and its Docker host. Changes nothing: the one container that is made is removed before the answer, also when
/// cancelled.
pub async fn examine(patient: Patient<'_>, cancel: &CancellationToken) -> Diagnosis {
    let mut checks = vec![Check::ok(About::Embedded, "`evictlab run` needs nothing of what follows")];
    let connected = tokio::select! {
        biased;
        connected = tokio::time::timeout(PATIENCE, Docker::connect()) => connected.ok(),
        () = cancel.cancelled() => None,
    };
    let connected = connected.map(|connected| connected.map_err(|error| unreached(&error)));
    match connected.unwrap_or_else(|| Err(silent())) {
        Ok(docker) => with_docker(&docker, patient, cancel, &mut checks).await,
        Err(error) => {
            checks.push(error);
            checks.push(tools::docker(None).await);
            checks.push(tools::kind().await);
            let why = "Docker does not answer";
            checks.push(Check::unknown(About::Cgroup, why, ""));
            checks.extend(BY_CONTAINER.map(|about| Check::unknown(about, why, "")));
            checks.push(Check::unknown(About::NodeImage, why, ""));
        }
    }
    Diagnosis::of(checks)
}

fn unreached(error: &DockerError) -> Check {
    let check = Check::error(About::Docker, error);
    match error {
        DockerError::Unreachable { .. } => Check {
            advice: Some("Start Docker, or say with DOCKER_HOST where it is (unix:// or tcp://).".to_owned()),
            ..check
        },
        _ => check,
    }
}

fn silent() -> Check {
    Check::fail(
        About::Docker,
        format!("nothing at {} answers within {} s", cluster::docker_host(), PATIENCE.as_secs()),
        "Say with DOCKER_HOST where Docker is, and see whether the way there is open.",
    )
}

async fn with_docker(
    docker: &Docker,
    patient: Patient<'_>,
    cancel: &CancellationToken,
    checks: &mut Vec<Check>,
) {
    let info = docker.info().await;
    match &info {
        Ok(info) => {
            let api = docker.api().client_version();
            let api = (api.major_version, api.minor_version);
            checks.push(host::daemon(&cluster::docker_host(), info, api));
        }
        Err(error) => checks.push(Check::error(About::Docker, error)),
    }
    let info = info.unwrap_or_default();
    checks.push(tools::docker(info.id.as_deref()).await);
    checks.push(tools::kind().await);
    checks.push(host::cgroup(&info, &versions(patient.kubelets)));
    let Patient { kubelets: specs, lock, overrides } = patient;
    let resolve = Resolve { docker, lock, overrides, progress: &|_| {} };
    let there = docker.images("kindest/node").await;
    let image = match resolve_first(&resolve, specs).await {
        Some(image) => Some(image),
        None => there.iter().flatten().next().cloned(),
    };
    checks.extend(on_host(docker, image.as_deref(), (&info, specs.len()), cancel).await);
    if !specs.is_empty() {
        checks.extend(kubelets::asked(&resolve, specs).await);
        return;
    }
    match (there, resolve.newest().await) {
        (Ok(there), Ok(newest)) => {
            let newest = newest.as_ref().map(kubelets::name);
            checks.push(kubelets::there(&there, newest.as_deref().unwrap_or("VERSION")));
        }
        (Err(error), _) => checks.push(Check::error(About::NodeImage, &error)),
        (_, Err(error)) => checks.push(Check::error(About::NodeImage, &error)),
    }
}

/// What one container of an image tells.
async fn on_host(
    docker: &Docker,
    image: Option<&str>,
    (info, kubelets): (&SystemInfo, usize),
    cancel: &CancellationToken,
) -> Vec<Check> {
    let advice = "Bring a node image: `docker pull kindest/node:VERSION`, or run with a network once.";
    let unknown = |abouts: &[About], why: &str, advice: &str| -> Vec<Check> {
        abouts.iter().map(|about| Check::unknown(*about, why, advice)).collect()
    };
    let Some(image) = image else {
        return unknown(&BY_CONTAINER, "there is no image to try it with", advice);
    };
    match probe(docker, image, &new_id(), cancel).await {
        Ok(Some(told)) => {
            let total = info.mem_total.and_then(|total| u64::try_from(total).ok());
            vec![
                Check::ok(About::Privileged, format!("a privileged container of {image} ran")),
                host::inotify(&told),
                host::memory(&told, total, kubelets),
                host::disk(&told, info.docker_root_dir.as_deref()),
            ]
        }
        Ok(None) => unknown(&BY_CONTAINER, "interrupted", ""),
        Err(error) => {
            let refused = Check::fail(
                About::Privileged,
                error.to_string().replace('\n', " "),
                "kind's nodes are privileged containers: allow them (an authorization plugin, a user namespace or a hosted runner may forbid them).",
            );
            let mut checks = vec![refused];
            checks.extend(unknown(&BY_CONTAINER[1..], "no privileged container runs", ""));
            checks
        }
    }
}

/// The first image of the asked kubelets that is there.
async fn resolve_first(resolve: &Resolve<'_>, specs: &[KubeletSpec]) -> Option<String> {
    for spec in specs {
        if let Ok(Looked { image, here: true }) = resolve.look(spec).await {
            return Some(image);
        }
    }
    None
}

/// The versions that are known without looking.
fn versions(specs: &[KubeletSpec]) -> Vec<KubeletVersion> {
    let version = |spec: &KubeletSpec| match &spec.source {
        KubeletSource::Release(version) => Some(version.clone()),
        KubeletSource::Minor(minor) => Some(KubeletVersion::minor(*minor)),
        KubeletSource::Image(_) | KubeletSource::Binary(_) => spec.claimed.clone(),
    };
    specs.iter().filter_map(version).collect()
}
