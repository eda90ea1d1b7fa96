//! What CEL does not have, and eviction cases need.

use std::sync::{Arc, LazyLock};

use cel::common::types::{
    CelBool, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, DYN_TYPE, STRING_TYPE,
};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use evictlab_rules::quantity::Quantity;

use super::value::Boxed;
use crate::observe::STATUSES;

/// The functions of the harness, by name:
/// - `quantity(text)`: a Kubernetes quantity in bytes, or counts;
/// - `evicted(pod)`: `status.reason` is `Evicted`;
/// - `running(pod)`: every regular container and every sidecar of it runs;
/// - `container(pod, name)`: the status of a container, of whatever kind;
/// - `condition(object, type)`: a condition of a pod, a node or a job.
pub(super) const FUNCTIONS: [&str; 5] = ["quantity", "evicted", "running", "container", "condition"];

/// CEL with them.
pub(super) static ENVIRONMENT: LazyLock<Result<Arc<Env>, DeclarationError>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    env.add_overload("quantity", "quantity_string", vec![STRING_TYPE], quantity)?;
    env.add_overload("evicted", "evicted_dyn", vec![DYN_TYPE], evicted)?;
    env.add_overload("running", "running_dyn", vec![DYN_TYPE], running)?;
    env.add_overload("container", "container_dyn_string", vec![DYN_TYPE, STRING_TYPE], container)?;
    env.add_overload("condition", "condition_dyn_string", vec![DYN_TYPE, STRING_TYPE], condition)?;
    Ok(Arc::new(env))
});

/// What a function is given, and what it answers.
type Given<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

fn quantity<'b, 'v>(given: Given<'b, 'v>) -> Answer<'b, 'v> {
    let read = text(Some(&*given[0])).unwrap_or_default().parse::<Quantity>();
    let value = read.map_err(|why| refused("quantity", why.to_string()))?.value();
    Ok(CowVal::owned(CelInt::from(value)))
}

fn evicted<'b, 'v>(given: Given<'b, 'v>) -> Answer<'b, 'v> {
    let evicted = text(at(&*given[0], &["status", "reason"])) == Some("Evicted");
    Ok(CowVal::owned(CelBool::from(evicted)))
}

fn running<'b, 'v>(given: Given<'b, 'v>) -> Answer<'b, 'v> {
    let pod = &*given[0];
    let is_sidecar = |container: &&Boxed<'v>| text(field(&***container, "restartPolicy")) == Some("Always");
    let sidecars = list(pod, &["spec", "initContainers"]).iter().filter(is_sidecar);
    let mut wanted = list(pod, &["spec", "containers"]).iter().chain(sidecars).peekable();
    let runs = |status: &Boxed<'v>| {
        at(&**status, &["state", "running"])
            .is_some_and(|running| running.downcast_ref::<CelNull>().is_none())
    };
    let all =
        wanted.peek().is_some() && wanted.all(|container| status_of(pod, name(container)).is_some_and(runs));
    Ok(CowVal::owned(CelBool::from(all)))
}

fn container<'b, 'v>(given: Given<'b, 'v>) -> Answer<'b, 'v> {
    let name = text(Some(&*given[1]));
    let why = || format!("there is no status of a container `{}`", name.unwrap_or_default());
    found(status_of(&*given[0], name), "container", why)
}

fn condition<'b, 'v>(given: Given<'b, 'v>) -> Answer<'b, 'v> {
    let kind = text(Some(&*given[1]));
    let mut conditions = list(&*given[0], &["status", "conditions"]).iter();
    let why = || format!("there is no condition `{}`", kind.unwrap_or_default());
    found(conditions.find(|condition| text(field(&***condition, "type")) == kind), "condition", why)
}

fn status_of<'b, 'v>(pod: &'b (dyn Val + 'v), container: Option<&str>) -> Option<&'b Boxed<'v>> {
    let mut statuses = STATUSES.into_iter().flat_map(|kind| list(pod, &["status", kind]));
    statuses.find(|status| name(status) == container)
}

fn name<'b>(of: &'b Boxed<'_>) -> Option<&'b str> {
    text(field(&**of, "name"))
}

fn field<'b, 'v>(of: &'b (dyn Val + 'v), name: &'static str) -> Option<&'b (dyn Val + 'v)> {
    Some(&**of.downcast_ref::<CelMap<'_>>()?.inner().get(&CelMapKey::from(name))?)
}

fn at<'b, 'v>(of: &'b (dyn Val + 'v), path: &[&'static str]) -> Option<&'b (dyn Val + 'v)> {
    path.iter().try_fold(of, |of, name| field(of, name))
}

/// What is not there is an empty list.
fn list<'b, 'v>(of: &'b (dyn Val + 'v), path: &[&'static str]) -> &'b [Boxed<'v>] {
    at(of, path).and_then(|list| list.downcast_ref::<CelList<'_>>()).map_or(&[], CelList::inner)
}

fn text<'b>(value: Option<&'b (dyn Val + '_)>) -> Option<&'b str> {
    value?.downcast_ref::<CelString<'_>>().map(CelString::inner)
}

fn found<'b, 'v>(
    value: Option<&Boxed<'v>>,
    function: &str,
    otherwise: impl FnOnce() -> String,
) -> Answer<'b, 'v> {
    value.map(|value| CowVal::Owned(value.clone())).ok_or_else(|| refused(function, otherwise()))
}

fn refused(function: &str, message: String) -> ExecutionError {
    ExecutionError::FunctionError { function: function.to_owned(), message }
}
