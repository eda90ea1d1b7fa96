//! The embedded backend: modelled nodes in this process, on a virtual clock.

mod backend;
mod kubelets;

pub(crate) use backend::EmbeddedHandle;
pub use backend::{EmbeddedBackend, EmbeddedOptions, ReproCommand};
pub use kubelets::{MODELLED_MINORS, NotModelledError, every_minor, modelled_kubelets, newest_patch};
