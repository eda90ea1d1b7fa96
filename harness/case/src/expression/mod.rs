//! Expressions over the evidence of a case, in the Common Expression Language of Kubernetes.

mod call;
mod cel_expression;
mod concatenation;
mod error;
mod free_variables;
mod functions;
mod macro_depth;
mod matches;
mod parts;
mod program;
mod result_type;
mod shape;
mod syntax_error;
mod unknown_fields;
mod variable;

pub use call::CelValue;
pub use cel_expression::Expression;
pub use error::ExpressionError;
pub use functions::CONTAINER_STATUS_FIELDS;
pub use program::KeysRead;
pub(crate) use program::MAX_ITERATIONS;
pub(crate) use shape::ObjectTypes;
pub use variable::Variable;
