//! Functions of evictlab for CEL expressions.

use std::sync::{Arc, LazyLock};

use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, DYN_TYPE, STRING_TYPE, Type,
};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use evictlab_rules::message::{EVICTED_REASON, is_rejection_message};
use evictlab_rules::quantity::Quantity;

use super::call::{Arguments, CelValue, FunctionResult, as_text, function_error};
use super::concatenation::{CONCAT_HOOK, record_concatenation};
use super::matches::{MATCHES, matches};

/// Fields of a pod's `status` with container statuses: init containers, regular ones, ephemeral
/// ones.
pub const CONTAINER_STATUS_FIELDS: [&str; 3] =
    ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];

/// A function of evictlab.
struct Function {
    name: &'static str,
    /// ID of its only overload.
    overload: &'static str,
    parameters: &'static [Type],
    returns_boolean: bool,
    call: for<'b, 'v> fn(Arguments<'b, 'v>) -> FunctionResult<'b, 'v>,
}

/// The functions:
/// - `quantity(text)`: the value of a Kubernetes quantity, such as a number of bytes;
/// - `evicted(pod)`: its status reports an eviction, not a rejection at admission;
/// - `running(pod)`: all its regular containers and sidecars run;
/// - `container(pod, name)`: the status of a container, of any kind;
/// - `condition(object, type)`: a condition of a pod, a node or a job;
/// - `logTime(line)`: the time of a line of the kubelet's log, in seconds since midnight.
static FUNCTIONS: [Function; 6] = [
    Function {
        name: "quantity",
        overload: "quantity_string",
        parameters: &[STRING_TYPE],
        returns_boolean: false,
        call: quantity,
    },
    Function {
        name: "evicted",
        overload: "evicted_dyn",
        parameters: &[DYN_TYPE],
        returns_boolean: true,
        call: evicted,
    },
    Function {
        name: "running",
        overload: "running_dyn",
        parameters: &[DYN_TYPE],
        returns_boolean: true,
        call: running,
    },
    Function {
        name: "container",
        overload: "container_dyn_string",
        parameters: &[DYN_TYPE, STRING_TYPE],
        returns_boolean: false,
        call: container,
    },
    Function {
        name: "condition",
        overload: "condition_dyn_string",
        parameters: &[DYN_TYPE, STRING_TYPE],
        returns_boolean: false,
        call: condition,
    },
    Function {
        name: "logTime",
        overload: "log_time_string",
        parameters: &[STRING_TYPE],
        returns_boolean: false,
        call: log_time,
    },
];

/// The functions and macros of CEL, and whether their values are booleans.
const BUILT_IN: [(&str, bool); 18] = [
    ("all", true),
    ("contains", true),
    ("double", false),
    ("duration", false),
    ("endsWith", true),
    ("exists", true),
    ("exists_one", true),
    ("filter", false),
    ("has", true),
    ("int", false),
    ("map", false),
    ("matches", true),
    ("size", false),
    ("startsWith", true),
    ("string", false),
    ("timestamp", false),
    ("type", false),
    ("uint", false),
];

/// The environment of CEL with the functions of evictlab, [`CONCAT_HOOK`] and [`MATCHES`].
pub(crate) static ENVIRONMENT: LazyLock<Result<Arc<Env>, DeclarationError>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    env.add_overload(CONCAT_HOOK, "concatenation_dyn", vec![DYN_TYPE], record_concatenation)?;
    env.add_overload(MATCHES, "matches_measured", vec![STRING_TYPE, STRING_TYPE], matches)?;
    env.add_member_overload(MATCHES, "string_matches_measured", STRING_TYPE, vec![STRING_TYPE], matches)?;
    for Function { name, overload, parameters, call, returns_boolean: _ } in &FUNCTIONS {
        env.add_overload(name, overload, parameters.iter().map(ToOwned::to_owned).collect(), *call)?;
    }
    Ok(Arc::new(env))
});

/// Returns the names of all functions and macros, and whether their values are booleans.
fn functions() -> impl Iterator<Item = (&'static str, bool)> {
    FUNCTIONS.iter().map(|function| (function.name, function.returns_boolean)).chain(BUILT_IN)
}

/// Returns the names of the functions and macros that expressions can call.
pub(super) fn function_names() -> impl Iterator<Item = &'static str> {
    functions().map(|(name, _)| name)
}

/// Returns whether a function or macro has this name, and its value is not a boolean.
pub(super) fn is_not_boolean(function: &str) -> bool {
    functions().any(|(name, returns_boolean)| name == function && !returns_boolean)
}

fn quantity<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let read = as_text(Some(&*arguments[0])).unwrap_or_default().parse::<Quantity>();
    let value = read.map_err(|why| function_error("quantity", why.to_string()))?.value();
    Ok(CowVal::owned(CelInt::from(value)))
}

fn log_time<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let line = as_text(Some(&*arguments[0])).unwrap_or_default();
    let seconds = second_of_day(line)
        .ok_or_else(|| function_error("logTime", format!("`{line}` does not begin with a time")))?;
    Ok(CowVal::owned(CelDouble::from(seconds)))
}

/// Returns the seconds since midnight of a line in the format of klog:
/// `I1127 19:34:38.123456  1234 …`. Kubelets of OpenShift may write a label before it.
fn second_of_day(line: &str) -> Option<f64> {
    line.split_ascii_whitespace().skip(1).take(2).find_map(second_of_clock)
}

/// Parses a time of the form `19:34:38.123456`.
fn second_of_clock(clock: &str) -> Option<f64> {
    let mut clock = clock.split(':');
    let mut next = |end: f64| clock.next()?.parse().ok().filter(|number| (0.0..end).contains(number));
    let [hours, minutes, seconds]: [f64; 3] = [next(24.0)?, next(60.0)?, next(61.0)?];
    clock.next().is_none().then_some(hours * 3600.0 + minutes * 60.0 + seconds)
}

fn evicted<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let pod = &*arguments[0];
    let has_reason = as_text(value_at(pod, &["status", "reason"])) == Some(EVICTED_REASON);
    let message = as_text(value_at(pod, &["status", "message"]));
    let is_rejected = message.is_some_and(is_rejection_message);
    Ok(CowVal::owned(CelBool::from(has_reason && !is_rejected)))
}

fn running<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let pod = &*arguments[0];
    let is_sidecar =
        |container: &&CelValue<'v>| as_text(field_of(&***container, "restartPolicy")) == Some("Always");
    let sidecars = list_at(pod, &["spec", "initContainers"]).iter().filter(is_sidecar);
    let mut required = list_at(pod, &["spec", "containers"]).iter().chain(sidecars).peekable();
    let runs = |status: &CelValue<'v>| {
        value_at(&**status, &["state", "running"])
            .is_some_and(|running| running.downcast_ref::<CelNull>().is_none())
    };
    let all = required.peek().is_some()
        && required.all(|container| status_of(pod, name_of(container)).is_some_and(runs));
    Ok(CowVal::owned(CelBool::from(all)))
}

fn container<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let name = as_text(Some(&*arguments[1]));
    require_status(&*arguments[0], "container")?;
    let absent = || format!("container `{}`", name.unwrap_or_default());
    or_absent(status_of(&*arguments[0], name), absent)
}

fn condition<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let kind = as_text(Some(&*arguments[1]));
    require_status(&*arguments[0], "condition")?;
    let mut conditions = list_at(&*arguments[0], &["status", "conditions"]).iter();
    let absent = || format!("condition `{}`", kind.unwrap_or_default());
    or_absent(conditions.find(|condition| as_text(field_of(&***condition, "type")) == kind), absent)
}

fn status_of<'b, 'v>(pod: &'b (dyn Val + 'v), container: Option<&str>) -> Option<&'b CelValue<'v>> {
    let mut statuses = CONTAINER_STATUS_FIELDS.into_iter().flat_map(|kind| list_at(pod, &["status", kind]));
    statuses.find(|status| name_of(status) == container)
}

fn name_of<'b>(value: &'b CelValue<'_>) -> Option<&'b str> {
    as_text(field_of(&**value, "name"))
}

fn field_of<'b, 'v>(value: &'b (dyn Val + 'v), name: &'static str) -> Option<&'b (dyn Val + 'v)> {
    Some(&**value.downcast_ref::<CelMap<'_>>()?.inner().get(&CelMapKey::from(name))?)
}

fn value_at<'b, 'v>(value: &'b (dyn Val + 'v), path: &[&'static str]) -> Option<&'b (dyn Val + 'v)> {
    path.iter().try_fold(value, |value, name| field_of(value, name))
}

/// Returns the items of a list, or an empty slice for anything else.
fn list_at<'b, 'v>(value: &'b (dyn Val + 'v), path: &[&'static str]) -> &'b [CelValue<'v>] {
    value_at(value, path).and_then(|list| list.downcast_ref::<CelList<'_>>()).map_or(&[], CelList::inner)
}

/// Requires that a value is an object with a status: in any other value, neither a container nor a
/// condition can be absent.
fn require_status(object: &(dyn Val + '_), function: &str) -> Result<(), ExecutionError> {
    let status = value_at(object, &["status"]).and_then(|status| status.downcast_ref::<CelMap<'_>>());
    status.map(|_| ()).ok_or_else(|| function_error(function, "the object has no status".to_owned()))
}

fn or_absent<'b, 'v>(
    value: Option<&CelValue<'v>>,
    absent: impl FnOnce() -> String,
) -> FunctionResult<'b, 'v> {
    value.map(|value| CowVal::Owned(value.clone())).ok_or_else(|| ExecutionError::no_such_key(&absent()))
}
