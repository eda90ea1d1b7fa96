//! Functions of evictlab for CEL expressions.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, DYN_TYPE, STRING_TYPE,
};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use evictlab_rules::quantity::Quantity;

/// Fields of a pod's `status` with container statuses: init containers, regular ones, ephemeral
/// ones.
pub const CONTAINER_STATUS_FIELDS: [&str; 3] =
    ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];

/// A CEL value that may borrow its strings.
type CelValue<'v> = Box<dyn Val + 'v>;

/// Names of the functions:
/// - `quantity(text)`: a Kubernetes quantity in bytes, or counts;
/// - `evicted(pod)`: `status.reason` is `Evicted`;
/// - `running(pod)`: all its regular containers and sidecars run;
/// - `container(pod, name)`: the status of a container, of any kind;
/// - `condition(object, type)`: a condition of a pod, a node or a job;
/// - `logTime(line)`: the time of a line of the kubelet's log, in seconds since midnight.
pub(crate) const FUNCTIONS: [&str; 6] =
    ["quantity", "evicted", "running", "container", "condition", "logTime"];

/// CEL with the functions.
pub(crate) static ENVIRONMENT: LazyLock<Result<Arc<Env>, DeclarationError>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    env.add_overload(SUM, "sum_dyn", vec![DYN_TYPE], sum)?;
    env.add_overload("quantity", "quantity_string", vec![STRING_TYPE], quantity)?;
    env.add_overload("evicted", "evicted_dyn", vec![DYN_TYPE], evicted)?;
    env.add_overload("running", "running_dyn", vec![DYN_TYPE], running)?;
    env.add_overload("container", "container_dyn_string", vec![DYN_TYPE, STRING_TYPE], container)?;
    env.add_overload("condition", "condition_dyn_string", vec![DYN_TYPE, STRING_TYPE], condition)?;
    env.add_overload("logTime", "log_time_string", vec![STRING_TYPE], log_time)?;
    Ok(Arc::new(env))
});

/// Function that each `+` of a program passes its result through. Expressions cannot call it.
pub(super) const SUM: &str = "@sum";

thread_local! {
    /// Bytes of the texts, and items of the lists, that the operators `+` of an evaluation made.
    static SUM_SIZE: Cell<u64> = const { Cell::new(0) };
}

/// Runs an evaluation; returns its result and the size of what its operators `+` made: bytes of
/// texts and items of lists.
pub(super) fn with_size_of_sums<T>(evaluate: impl FnOnce() -> T) -> (T, u64) {
    SUM_SIZE.set(0);
    let result = evaluate();
    (result, SUM_SIZE.get())
}

/// Maximum size of all texts and lists that the operators `+` of one evaluation make.
pub(super) const MAX_SUM_SIZE: u64 = 16 << 20;

fn sum<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let value = arguments.remove(0);
    let text = value.downcast_ref::<CelString<'_>>().map(|text| text.inner().len());
    let list = value.downcast_ref::<CelList<'_>>().map(|list| list.inner().len());
    let size = SUM_SIZE.get() + text.or(list).unwrap_or_default() as u64;
    SUM_SIZE.set(size);
    if size > MAX_SUM_SIZE {
        return Err(function_error("+", "its texts and lists are too long".to_owned()));
    }
    Ok(value)
}

type Arguments<'b, 'v> = Vec<CowVal<'b, 'v>>;
type FunctionResult<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

fn quantity<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let read = text(Some(&*arguments[0])).unwrap_or_default().parse::<Quantity>();
    let value = read.map_err(|why| function_error("quantity", why.to_string()))?.value();
    Ok(CowVal::owned(CelInt::from(value)))
}

fn log_time<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let line = text(Some(&*arguments[0])).unwrap_or_default();
    let seconds = second_of_day(line)
        .ok_or_else(|| function_error("logTime", format!("`{line}` does not begin with a time")))?;
    Ok(CowVal::owned(CelDouble::from(seconds)))
}

/// Returns the seconds since midnight of a line in the format of klog: `I1127 19:34:38.123456  1234 …`.
fn second_of_day(line: &str) -> Option<f64> {
    let mut clock = line.split_ascii_whitespace().nth(1)?.split(':');
    let mut next = |end: f64| clock.next()?.parse().ok().filter(|number| (0.0..end).contains(number));
    let [hours, minutes, seconds]: [f64; 3] = [next(24.0)?, next(60.0)?, next(61.0)?];
    clock.next().is_none().then_some(hours * 3600.0 + minutes * 60.0 + seconds)
}

fn evicted<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let evicted = text(at(&*arguments[0], &["status", "reason"])) == Some("Evicted");
    Ok(CowVal::owned(CelBool::from(evicted)))
}

fn running<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let pod = &*arguments[0];
    let is_sidecar =
        |container: &&CelValue<'v>| text(field(&***container, "restartPolicy")) == Some("Always");
    let sidecars = list(pod, &["spec", "initContainers"]).iter().filter(is_sidecar);
    let mut required = list(pod, &["spec", "containers"]).iter().chain(sidecars).peekable();
    let runs = |status: &CelValue<'v>| {
        at(&**status, &["state", "running"])
            .is_some_and(|running| running.downcast_ref::<CelNull>().is_none())
    };
    let all = required.peek().is_some()
        && required.all(|container| status_of(pod, name(container)).is_some_and(runs));
    Ok(CowVal::owned(CelBool::from(all)))
}

fn container<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let name = text(Some(&*arguments[1]));
    require_status(&*arguments[0], "container")?;
    let absent = || format!("container `{}`", name.unwrap_or_default());
    found(status_of(&*arguments[0], name), absent)
}

fn condition<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let kind = text(Some(&*arguments[1]));
    require_status(&*arguments[0], "condition")?;
    let mut conditions = list(&*arguments[0], &["status", "conditions"]).iter();
    let absent = || format!("condition `{}`", kind.unwrap_or_default());
    found(conditions.find(|condition| text(field(&***condition, "type")) == kind), absent)
}

fn status_of<'b, 'v>(pod: &'b (dyn Val + 'v), container: Option<&str>) -> Option<&'b CelValue<'v>> {
    let mut statuses = CONTAINER_STATUS_FIELDS.into_iter().flat_map(|kind| list(pod, &["status", kind]));
    statuses.find(|status| name(status) == container)
}

fn name<'b>(of: &'b CelValue<'_>) -> Option<&'b str> {
    text(field(&**of, "name"))
}

fn field<'b, 'v>(of: &'b (dyn Val + 'v), name: &'static str) -> Option<&'b (dyn Val + 'v)> {
    Some(&**of.downcast_ref::<CelMap<'_>>()?.inner().get(&CelMapKey::from(name))?)
}

fn at<'b, 'v>(of: &'b (dyn Val + 'v), path: &[&'static str]) -> Option<&'b (dyn Val + 'v)> {
    path.iter().try_fold(of, |of, name| field(of, name))
}

/// Returns the items of a list, or an empty slice for anything else.
fn list<'b, 'v>(of: &'b (dyn Val + 'v), path: &[&'static str]) -> &'b [CelValue<'v>] {
    at(of, path).and_then(|list| list.downcast_ref::<CelList<'_>>()).map_or(&[], CelList::inner)
}

fn text<'b>(value: Option<&'b (dyn Val + '_)>) -> Option<&'b str> {
    value?.downcast_ref::<CelString<'_>>().map(CelString::inner)
}

/// Requires that a value is an object with a status: in any other value, neither a container nor a
/// condition can be absent.
fn require_status(object: &(dyn Val + '_), function: &str) -> Result<(), ExecutionError> {
    let status = at(object, &["status"]).and_then(|status| status.downcast_ref::<CelMap<'_>>());
    status.map(|_| ()).ok_or_else(|| function_error(function, "the object has no status".to_owned()))
}

fn found<'b, 'v>(value: Option<&CelValue<'v>>, absent: impl FnOnce() -> String) -> FunctionResult<'b, 'v> {
    value.map(|value| CowVal::Owned(value.clone())).ok_or_else(|| ExecutionError::no_such_key(&absent()))
}

fn function_error(function: &str, message: String) -> ExecutionError {
    ExecutionError::FunctionError { function: function.to_owned(), message }
}
