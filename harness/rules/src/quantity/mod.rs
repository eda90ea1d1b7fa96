//! Kubernetes quantities: read, printed and calculated exactly as `apimachinery/pkg/api/resource` does.

mod arithmetic;
mod parse;
mod print;
mod serde;

pub use arithmetic::{Format, Quantity};
pub use parse::QuantityError;
