//! Who is named by a message of node pressure, who is not, and why.

use evictlab_rules::KubeletVersion;
use evictlab_rules::message::{NodePressure, Offender};
use evictlab_rules::pod::{Container, Pod};
use evictlab_rules::threshold::Resource;
use serde_json::Value;

use super::explanation::{ContainerTold, Kind};
use super::words::amount;
use crate::observe::statuses;

/// Every container of a pod and what a message makes of it; without the pod, those that the message names. `status` is the pod's.
pub(super) fn containers(
    message: &NodePressure,
    pod: Option<&Pod>,
    status: &Value,
    version: Option<&KubeletVersion>,
) -> Vec<ContainerTold> {
    let resource = message.resource;
    let Some(pod) = pod else {
        return message.containers.iter().map(|offender| named(offender, None, resource)).collect();
    };
    let spec = &pod.spec;
    let init = spec
        .init_containers
        .iter()
        .map(|container| (container, if container.is_sidecar() { Kind::Sidecar } else { Kind::Init }));
    let all = init
        .chain(spec.containers.iter().map(|container| (container, Kind::Regular)))
        .chain(spec.ephemeral_containers.iter().map(|container| (container, Kind::Ephemeral)));
    all.map(|(container, kind)| {
        let offender = message.containers.iter().find(|offender| offender.name == container.name);
        match offender {
            Some(offender) => named(offender, Some(kind), resource),
            None => ContainerTold {
                name: container.name.clone(),
                kind: Some(kind),
                named: false,
                usage: None,
                request: container.request(resource.as_str()).cloned(),
                why: why_not(container, kind, resource, status, version),
            },
        }
    })
    .collect()
}

fn named(offender: &Offender, kind: Option<Kind>, resource: Resource) -> ContainerTold {
    let Offender { name, usage, request } = offender;
    let over = usage.value().saturating_sub(request.value());
    let why = match (request.is_zero(), over > 0) {
        (true, _) => "it asks for none, so that any use is more than its request".to_owned(),
        (false, true) => format!("{} more than its request", amount(over, resource)),
        (false, false) => "though it uses no more than its request".to_owned(),
    };
    ContainerTold {
        name: name.clone(),
        kind,
        named: true,
        usage: Some(usage.clone()),
        request: Some(request.clone()),
        why,
    }
}

/// Why a container is not named, as far as its spec and status tell.
fn why_not(
    container: &Container,
    kind: Kind,
    resource: Resource,
    status: &Value,
    version: Option<&KubeletVersion>,
) -> String {
    if matches!(resource, Resource::Inodes | Resource::Pids) {
        return format!("for {resource} kubelets name nobody");
    }
    let own = statuses(status).find(|own| own["name"] == *container.name).unwrap_or(&Value::Null);
    let early = matches!(kind, Kind::Sidecar | Kind::Init);
    match version {
        _ if kind == Kind::Ephemeral => {
            "ephemeral containers are never named: they cannot ask for anything, so that it would always be they".to_owned()
        }
        Some(version) if early && !version.at_least(32) => {
            format!("kubelet {version} looks at regular containers only; from 1.32 on sidecars and init containers are named, too")
        }
        _ if never_ran(own) => "it never ran, so that there were no statistics of it".to_owned(),
        _ if kind == Kind::Init && own["state"]["terminated"]["reason"] == "Completed" => {
            "it had ended, so that there were no statistics of it any more".to_owned()
        }
        None if early => {
            "kubelets before 1.32 look at regular containers only; a newer one saw it within its request, or had no statistics of it"
                .to_owned()
        }
        _ => match container.request(resource.as_str()) {
            Some(request) if !request.is_zero() => format!("within its request of {request} when the kubelet looked"),
            _ => "it asks for none, so that any use would be named: the kubelet had no statistics of it".to_owned(),
        },
    }
}

/// Whether a status tells of a container that nothing ever started. An end without a start is given to those by `TerminatePod`
/// (pkg/kubelet/status/status_manager.go); the same is left where the kubelet lost the true end.
pub(super) fn never_ran(own: &Value) -> bool {
    let [waiting, ended] = ["waiting", "terminated"].map(|state| &own["state"][state]);
    let lost = own["restartCount"].as_i64().unwrap_or(0) > 0
        || own["containerID"].as_str().is_some_and(|id| !id.is_empty());
    let unstarted = !ended.is_null() && ended["startedAt"].is_null() && !lost;
    unstarted || (!waiting.is_null() && own["lastState"]["terminated"].is_null() && !lost)
}
