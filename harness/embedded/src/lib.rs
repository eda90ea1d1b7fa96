//! A cluster that needs nothing installed: a Kubernetes API served from memory, and nodes whose kubelets follow
//! [`evictlab_rules`] for a stated version. It is a model, held to recordings of real kubelets.
//!
//! ```text
//! HTTP ─api→ registry ─→ store ─changes→ control (scheduler, controllers)
//!                                     └→ kubelet ─→ machine (processes, memory, disk)
//! ```
//!
//! Everything below [`Cluster`] is synchronous and knows no wall clock: a [`World`](world::World) is told what time it is and does what is
//! due. The same seed and the same requests at the same times give the same answers, to the byte.

pub mod agenda;
pub mod api;
pub mod cluster;
pub mod control;
pub mod fault;
pub mod kubelet;
pub mod machine;
pub mod news;
pub mod node;
pub mod options;
pub mod registry;
pub mod store;
pub mod time;
pub mod world;

pub use cluster::Cluster;
pub use options::{CgroupVersion, NodeOptions, Options, OptionsError};
