//! Patches: JSON Patch, JSON Merge Patch, strategic merge patch.

mod element_order;
mod json_patch;
mod strategic;
mod strategy;

pub(crate) use json_patch::{json_patch, merge_patch};
pub(crate) use strategic::strategic_merge_patch;
