//! What CEL does not have, and eviction cases need.

use std::sync::Arc;

use cel::{Context, DeclarationError, ExecutionError, Value};
use evictlab_rules::quantity::Quantity;
use serde_json::Value as Json;

use super::value::value as to_value;
use crate::observe::statuses;

/// The functions of the harness, by name:
/// - `quantity(text)`: a Kubernetes quantity in bytes, or counts;
/// - `evicted(pod)`: `status.reason` is `Evicted`;
/// - `running(pod)`: every regular container and every sidecar of it runs;
/// - `container(pod, name)`: the status of a container, of whatever kind;
/// - `condition(object, type)`: a condition of a pod, a node or a job.
pub(super) const FUNCTIONS: [&str; 5] = ["quantity", "evicted", "running", "container", "condition"];

/// Adds them to a context. A name that CEL has itself is refused.
pub(super) fn register(context: &mut Context<'_, '_>) -> Result<(), DeclarationError> {
    context.add_function("quantity", |text: Arc<String>| {
        let read = text.parse::<Quantity>();
        read.map(|quantity| quantity.value()).map_err(|why| refused("quantity", why.to_string()))
    })?;
    context.add_function("evicted", |pod: Value| {
        json("evicted", &pod).map(|pod| pod["status"]["reason"] == "Evicted")
    })?;
    context.add_function("running", |pod: Value| json("running", &pod).map(|pod| running(&pod)))?;
    context.add_function("container", |pod: Value, name: Arc<String>| {
        let pod = json("container", &pod)?;
        let status = statuses(&pod["status"]).find(|status| status["name"] == name.as_str());
        found("container", status, &format!("there is no status of a container `{name}`"))
    })?;
    context.add_function("condition", |object: Value, kind: Arc<String>| {
        let object = json("condition", &object)?;
        let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let condition = conditions.find(|condition| condition["type"] == kind.as_str());
        found("condition", condition, &format!("there is no condition `{kind}`"))
    })
}

fn running(pod: &Json) -> bool {
    let init = pod["spec"]["initContainers"].as_array();
    let sidecars = init.into_iter().flatten().filter(|container| container["restartPolicy"] == "Always");
    let mut wanted = pod["spec"]["containers"].as_array().into_iter().flatten().chain(sidecars).peekable();
    wanted.peek().is_some()
        && wanted.all(|container| {
            statuses(&pod["status"])
                .any(|status| status["name"] == container["name"] && !status["state"]["running"].is_null())
        })
}

fn json(function: &str, value: &Value) -> Result<Json, ExecutionError> {
    value.json().map_err(|why| refused(function, why.to_string()))
}

fn found(function: &str, value: Option<&Json>, otherwise: &str) -> Result<Value, ExecutionError> {
    value.map(to_value).ok_or_else(|| refused(function, otherwise.to_owned()))
}

fn refused(function: &str, message: String) -> ExecutionError {
    ExecutionError::FunctionError { function: function.to_owned(), message }
}
