//! Proving that a node is itself again before the next case, and learning how quick it is.

mod canary;
mod proof;

pub use canary::{CANARY, canary};
pub use proof::{Itself, NotItself, PATIENCE, own_taints, proof, recovered};
