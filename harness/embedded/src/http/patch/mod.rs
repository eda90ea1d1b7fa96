//! Strategic merge patches.

mod element_order;
mod strategic;
mod strategy;

pub(crate) use strategic::strategic_merge_patch;
