//! Checks whether this machine and its Docker host can run kind clusters.

mod check;
mod commands;
mod diagnose;
mod host_checks;
mod host_probe;
mod node_images;

pub use check::{Check, CheckState, CheckSubject, Diagnosis};
pub use diagnose::{DoctorOptions, diagnose};
