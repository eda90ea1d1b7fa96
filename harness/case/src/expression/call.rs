//! Calls of functions in CEL expressions.

use cel::ExecutionError;
use cel::common::types::CelString;
use cel::common::value::{CowVal, Val};

/// A CEL value that may borrow its strings.
pub type CelValue<'v> = Box<dyn Val + 'v>;

/// Arguments of a call. They may borrow values for `'b`, whose strings are borrowed for `'v`.
pub(super) type Arguments<'b, 'v> = Vec<CowVal<'b, 'v>>;

/// Result of a call, which may borrow what the arguments borrow.
pub(super) type FunctionResult<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

pub(super) fn as_text<'b>(value: Option<&'b (dyn Val + '_)>) -> Option<&'b str> {
    value?.downcast_ref::<CelString<'_>>().map(CelString::inner)
}

pub(super) fn function_error(function: &str, message: String) -> ExecutionError {
    ExecutionError::FunctionError { function: function.to_owned(), message }
}
