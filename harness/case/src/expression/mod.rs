//! Expressions over the evidence of a case, in the Common Expression Language of Kubernetes.

mod cel_expression;
mod functions;
mod program;

pub use cel_expression::{Expression, ExpressionError, VARIABLES};
pub use functions::CONTAINER_STATUS_FIELDS;
pub use program::KeysRead;
