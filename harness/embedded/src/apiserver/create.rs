//! Creation of objects.

use evictlab_rules::KubeletVersion;
use k8s_openapi::api::policy::v1::PodDisruptionBudgetStatus;
use serde_json::{Value, json};

use super::decode::decode;
use super::field_errors::FieldErrors;
use super::objects::{control_plane_version, store_error};
use super::options::{FieldValidation, StoredObject};
use super::status::Status;
use super::{metadata, names, namespace, pod, priority_class, quota, runtime_class, workload};
use crate::context::SimContext;
use crate::resource::{CorrelatedEvent, Event, Kind, ObjectExt, Scope};

/// Creates an object. `namespace` is empty for cluster-scoped kinds.
///
/// # Errors
/// Those of the API server: 400 for an object of another type, 403 by admission, 404 without the
/// namespace, 409 if the name exists, 422 for an invalid object.
pub(crate) fn create(
    ctx: &mut SimContext,
    kind: Kind,
    namespace: &str,
    mut object: Value,
    field_validation: FieldValidation,
) -> Result<StoredObject, Status> {
    let warnings = decode(kind, &mut object, field_validation)?;
    let name = metadata::prepare(ctx, kind, namespace, &mut object)?;
    metadata::check_namespace(ctx, kind, namespace, &name)?;
    match kind {
        Kind::Pod => pod::prepare(ctx, namespace, &name, &mut object)?,
        Kind::Namespace => namespace::prepare(&name, &mut object),
        Kind::Event => prepare_event(&mut object),
        Kind::PriorityClass => priority_class::prepare(&mut object),
        Kind::PodDisruptionBudget => prepare_budget(&mut object),
        Kind::Deployment | Kind::ReplicaSet | Kind::Job => workload::prepare(ctx, kind, &name, &mut object)?,
        Kind::ResourceQuota => quota::check_supported(&name, &object)?,
        Kind::Node | Kind::ServiceAccount | Kind::ConfigMap | Kind::RuntimeClass | Kind::Lease => {}
    }
    validate(kind, &object, &control_plane_version(ctx)).into_result(kind, &name)?;
    let key = if kind.scope() == Scope::Namespaced { namespace } else { "" };
    if ctx.store.get(kind, key, &name).is_some() {
        return Err(Status::already_exists(kind, &name));
    }
    let object = ctx.store.create(kind, object, ctx.now).map_err(|error| store_error(kind, &name, error))?;
    Ok(StoredObject { object, warnings })
}

/// Applies the defaults of an API server of a version to a pod that no API server has processed,
/// and validates the pod.
///
/// # Errors
/// 400 for an object that is not a pod, 422 for an invalid pod.
pub(crate) fn default_and_validate_pod(pod: &mut Value, version: &KubeletVersion) -> Result<(), Status> {
    decode(Kind::Pod, pod, FieldValidation::Ignore)?;
    pod::set_defaults(pod, version);
    let name = pod.name().to_owned();
    validate(Kind::Pod, pod, version).into_result(Kind::Pod, &name)
}

/// Validates a new object as an API server of a version.
pub(super) fn validate(kind: Kind, object: &Value, version: &KubeletVersion) -> FieldErrors {
    match kind {
        Kind::Pod => pod::validate_new(object, version),
        Kind::Namespace => metadata::validate(object, names::dns_label),
        Kind::Event => metadata::validate(object, |_| Vec::new()),
        Kind::PriorityClass => priority_class::validate(object),
        Kind::RuntimeClass => runtime_class::validate(object),
        Kind::Deployment | Kind::ReplicaSet | Kind::Job => workload::validate(kind, object, version),
        Kind::Node
        | Kind::PodDisruptionBudget
        | Kind::ServiceAccount
        | Kind::ConfigMap
        | Kind::ResourceQuota
        | Kind::Lease => metadata::validate(object, names::dns_subdomain),
    }
}

/// Sets the initial status of a budget; the disruption controller computes the rest.
fn prepare_budget(budget: &mut Value) {
    budget.metadata_mut().write("generation", 1);
    budget.write("status", PodDisruptionBudgetStatus::default());
}

/// Sets the fields that core/v1 always serializes in an event.
pub(super) fn prepare_event(event: &mut Value) {
    for (field, value) in [
        ("involvedObject", json!({})),
        ("source", json!({})),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        if event.get(field).is_none() {
            event[field] = value;
        }
    }
}

/// Returns whether a namespace accepts new events: it exists and is not being deleted.
fn accepts_events(ctx: &SimContext, namespace: &str) -> bool {
    let namespace = ctx.store.get(Kind::Namespace, "", namespace);
    namespace.is_some_and(|namespace| namespace.phase() != "Terminating")
}

/// Creates an event, or counts it in the stored event that it repeats. Components do not send an
/// event again that the namespace does not accept, or whose name exists.
pub(crate) fn store_event(ctx: &mut SimContext, CorrelatedEvent { event, is_repeated }: &CorrelatedEvent) {
    let accepts = accepts_events(ctx, &event.metadata.namespace);
    if accepts && !(*is_repeated && count_event(ctx, event)) {
        let _is_created = create_event(ctx, event);
    }
}

/// Creates an event; returns false if the namespace does not accept events or has one of this name.
pub(crate) fn create_event(ctx: &mut SimContext, event: &Event) -> bool {
    accepts_events(ctx, &event.metadata.namespace)
        && ctx.store.create(Kind::Event, json!(event), ctx.now).is_ok()
}

/// Counts a repetition in the stored event of the same name; returns false if it does not exist.
fn count_event(ctx: &mut SimContext, event: &Event) -> bool {
    let metadata = &event.metadata;
    let write = |stored: &mut Value| event.update_repeated(stored);
    ctx.store.update(Kind::Event, &metadata.namespace, &metadata.name, write).is_some()
}
