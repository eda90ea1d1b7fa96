//! Containers of an evicted pod, with the reason why the message names them or not.

use evictlab_rules::message::{NodePressure, Offender};
use evictlab_rules::pod::{Container, Pod};
use evictlab_rules::threshold::Resource;

use crate::explanation::{ContainerKind, ContainerReport, PodLevelReport};
use crate::objects::{ContainerStatus, PodStatus};
use crate::stated_version::StatedVersion;
use crate::text::difference;

/// Reports every container of a pod; without the pod, the containers that the message names.
pub(crate) fn container_reports(
    message: &NodePressure,
    pod: Option<&Pod>,
    status: &PodStatus,
    version: Option<&StatedVersion>,
) -> Vec<ContainerReport> {
    let resource = message.resource;
    let Some(pod) = pod else {
        return message.containers.iter().map(|offender| named(offender, None, resource)).collect();
    };
    let spec = &pod.spec;
    let init = spec.init_containers.iter().map(|container| {
        (container, if container.is_sidecar() { ContainerKind::Sidecar } else { ContainerKind::Init })
    });
    let all = init
        .chain(spec.containers.iter().map(|container| (container, ContainerKind::Regular)))
        .chain(spec.ephemeral_containers.iter().map(|container| (container, ContainerKind::Ephemeral)));
    all.map(|(container, kind)| {
        let offender = message.containers.iter().find(|offender| offender.name == container.name);
        let mut statuses = status.all_container_statuses();
        let status = statuses.find(|status| status.name == container.name);
        match offender {
            Some(offender) => named(offender, Some(kind), resource),
            None => ContainerReport {
                name: container.name.clone(),
                kind: Some(kind),
                named: false,
                usage: None,
                request: container.request(resource.as_str()).cloned(),
                why: why_not_named(container, kind, resource, status, version),
            },
        }
    })
    .collect()
}

/// Reports the pod that the message names. The kubelet names it without comparing its usage with
/// its request.
pub(crate) fn pod_level_report(message: &NodePressure) -> Option<PodLevelReport> {
    let Offender { name, usage, request } = message.pod.clone()?;
    let over = usage.value().saturating_sub(request.value());
    let why = if over > 0 {
        format!("{} above its pod-level request", difference(over, message.resource))
    } else {
        "named although its usage does not exceed its pod-level request".to_owned()
    };
    Some(PodLevelReport { name, usage, request, why })
}

fn named(offender: &Offender, kind: Option<ContainerKind>, resource: Resource) -> ContainerReport {
    let Offender { name, usage, request } = offender;
    let over = usage.value().saturating_sub(request.value());
    let why = match (request.is_zero(), over > 0) {
        (true, _) => "no request, so any usage exceeds it".to_owned(),
        (false, true) => format!("{} above its request", difference(over, resource)),
        (false, false) => "although its usage does not exceed its request".to_owned(),
    };
    ContainerReport {
        name: name.clone(),
        kind,
        named: true,
        usage: Some(usage.clone()),
        request: Some(request.clone()),
        why,
    }
}

/// Explains why the message does not name a container, from its spec and status.
fn why_not_named(
    container: &Container,
    kind: ContainerKind,
    resource: Resource,
    status: Option<&ContainerStatus>,
    version: Option<&StatedVersion>,
) -> String {
    if !resource.is_bytes() {
        return format!("messages for {resource} name no containers");
    }
    let is_init = matches!(kind, ContainerKind::Sidecar | ContainerKind::Init);
    let completed = status.is_some_and(|status| status.termination_reason() == Some("Completed"));
    match version {
        _ if kind == ContainerKind::Ephemeral => {
            "ephemeral containers are never named: they cannot have requests".to_owned()
        }
        Some(version) if is_init && !version.at_least(32) => format!(
            "kubelet {version} considers only regular containers; sidecars and init containers are \
             named from 1.32 on"
        ),
        _ if status.is_some_and(ContainerStatus::never_ran) => {
            "the container never ran, so the kubelet had no statistics".to_owned()
        }
        _ if kind == ContainerKind::Init && completed => {
            "the container had terminated, so the kubelet had no statistics".to_owned()
        }
        None if is_init => "kubelets before 1.32 consider only regular containers; for a newer one, the \
                            container was within its request, or had no statistics"
            .to_owned(),
        _ => match container.request(resource.as_str()) {
            Some(request) if !request.is_zero() => {
                format!("within its request of {request} when the kubelet measured it")
            }
            _ => "no request, so any usage would be named: the kubelet had no statistics".to_owned(),
        },
    }
}
