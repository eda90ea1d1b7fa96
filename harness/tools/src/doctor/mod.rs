//! Checks whether this machine and its Docker host can run kind clusters.

mod check;
mod diagnose;
mod host_checks;
mod host_probe;
mod kind_and_docker;
mod node_images;

pub use check::{Check, CheckState, CheckSubject, Diagnosis};
pub use diagnose::{DoctorOptions, diagnose};
