//! The embedded cluster: any kubelets together, in this process, in a time of their own.

mod backend;
mod kubelets;
mod machine;

pub use backend::{EmbeddedBackend, Shape, Words};
pub use kubelets::{MINORS, NotModelled, every_minor, modelled};
