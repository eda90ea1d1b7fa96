//! Whether this machine and its Docker host are fit for a run, and what to do where they are not.

mod check;
mod examine;
mod host;
mod kubelets;
mod probe;
mod tools;

pub use check::{About, Check, Diagnosis, State};
pub use examine::{Patient, examine};
pub use probe::LABEL;
