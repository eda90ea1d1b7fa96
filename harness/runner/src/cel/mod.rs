//! Expressions over what was seen of a case, in the Common Expression Language that Kubernetes itself uses for its policies.

mod expression;
mod functions;
mod scope;
mod value;

pub use expression::{Expression, ExpressionError};
pub use scope::Scope;
