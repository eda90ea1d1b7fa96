//! Expressions over the evidence of a case, in the Common Expression Language of Kubernetes.

mod cel_expression;
mod error;
mod free_variables;
mod functions;
mod program;
mod shape;
mod unknown_fields;

pub use cel_expression::{Expression, VARIABLES};
pub use error::ExpressionError;
pub use functions::CONTAINER_STATUS_FIELDS;
pub use program::KeysRead;
pub(crate) use shape::ObjectTypes;
