//! Exports a case as a directory that reproduces it with only kind and kubectl.
//!
//! The threshold is a flag of the workers' kubelets, so that it does not apply to the control
//! plane. The kind configuration contains a threshold for the Docker host of the export; the script
//! computes the threshold from the available amount of each worker, as a run does.

mod check;
mod cluster;
mod comment;
mod expectations;
mod host_info;
mod images;
mod kind_config;
mod manifests;
mod recipe;
mod script;
mod signal;
#[cfg(test)]
mod tests;

pub use check::ExportError;
pub use host_info::HostInfo;
pub use recipe::{Binary, Recipe, WriteError, recipe};
