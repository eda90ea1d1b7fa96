//! Expressions over the evidence of a case, in the Common Expression Language of Kubernetes.

mod call;
mod cel_expression;
mod error;
mod free_variables;
mod functions;
mod macro_depth;
mod matches;
mod program;
mod result_type;
mod shape;
mod syntax_error;
mod unknown_fields;

pub use cel_expression::{Expression, VARIABLES};
pub use error::ExpressionError;
pub use functions::CONTAINER_STATUS_FIELDS;
pub use program::KeysRead;
pub(crate) use program::MAX_ITERATIONS;
pub(crate) use shape::ObjectTypes;
