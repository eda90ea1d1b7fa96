//! The embedded backend: modelled nodes in this process, on a virtual clock.

mod backend;
mod kubelets;
mod node_backend;

pub use backend::{EmbeddedBackend, EmbeddedOptions, ReproCommand};
pub use kubelets::{MODELLED_MINORS, NotModelledError, every_minor, modelled_kubelets};
