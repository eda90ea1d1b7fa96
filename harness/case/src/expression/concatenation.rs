//! The total size of the strings and lists that the operators `+` of an evaluation produce.

use std::cell::Cell;

use cel::common::types::{CelList, CelString};

use super::call::{Arguments, FunctionResult, function_error};

/// Function that each `+` of a program passes its result through ([`measure_concatenation`]).
/// Expressions cannot call it, because its name is not an identifier.
pub(super) const CONCAT_HOOK: &str = "@concatenation";

/// Maximum total size of the strings (bytes) and lists (items) that the operators `+` of one
/// evaluation produce.
pub(super) const MAX_CONCAT_SIZE: u64 = 16 << 20;

thread_local! {
    /// Total size of the strings (bytes) and lists (items) that `+` has produced in the current
    /// evaluation. CEL passes no context to functions.
    static CONCAT_SIZE: Cell<u64> = const { Cell::new(0) };
}

/// Runs an evaluation. Returns its result, and the total size of the strings (bytes) and lists
/// (items) that `+` produced.
pub(super) fn measure_concatenation<T>(evaluate: impl FnOnce() -> T) -> (T, u64) {
    CONCAT_SIZE.set(0);
    let result = evaluate();
    (result, CONCAT_SIZE.get())
}

/// Returns its only argument, and adds the size of a string or list to the total size.
pub(super) fn record_concatenation<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let value = arguments.remove(0);
    let text = value.downcast_ref::<CelString<'_>>().map(|text| text.inner().len());
    let list = value.downcast_ref::<CelList<'_>>().map(|list| list.inner().len());
    let size = CONCAT_SIZE.get() + text.or(list).unwrap_or_default() as u64;
    CONCAT_SIZE.set(size);
    if size > MAX_CONCAT_SIZE {
        return Err(function_error("+", "its texts and lists are too long".to_owned()));
    }
    Ok(value)
}
