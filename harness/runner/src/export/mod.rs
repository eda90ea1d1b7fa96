//! A case as a folder for people who have no evictlab: kind and kubectl are enough to repeat it.
//!
//! The threshold is a flag of the workers' kubelets, so that the control plane is spared. What the kind configuration has is reckoned for the machine
//! that the folder is made on; the script sets it anew from what each worker has in that moment, as a run does.

mod expectations;
mod kind_config;
mod machine;
mod manifests;
mod recipe;
mod refusal;
mod script;
mod signal;
mod workers;

pub use machine::Machine;
pub use recipe::{Binary, Recipe, WriteError, recipe};
pub use refusal::NotExportable;

#[cfg(test)]
mod tests;
