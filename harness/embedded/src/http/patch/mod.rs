//! Strategic merge patches.

mod strategic;
mod strategy;

pub(crate) use strategic::strategic_merge_patch;
