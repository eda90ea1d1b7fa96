//! Kubernetes quantities.
//!
//! A [`Quantity`] is parsed, printed, compared and summed exactly as
//! `apimachinery/pkg/api/resource` does it, because the text of an eviction message depends on the
//! print of every figure in it. [`KIB`], [`MIB`] and [`GIB`] are the binary units in bytes.

mod parse;
mod print;
mod value;

pub use parse::QuantityError;
pub use value::{Format, GIB, KIB, MIB, Quantity};
