//! Defects of a simulated kubelet, for mutation tests of cases.
//!
//! A defect is a plausible regression of one line of the kubelet: a comparison that is missing, a
//! field that is not set, a figure that is doubled. A kubelet asks [`Defects::has`] where that line
//! stands in the model. A case that fails on a kubelet with the defect kills it.
//!
//! The model has no defects in swap, and in file systems with quotas, which it does not simulate.

mod area;
mod list;
mod set;

pub use area::Area;
pub use list::{Defect, UnknownDefectError};
pub use set::Defects;
