//! A kubelet of a given version: pods, statistics, eviction, node status, events and HTTP
//! endpoints.

pub mod config;
mod event;
pub mod eviction;
pub mod http;
mod identity;
pub mod log;
pub mod pods;
pub mod recorder;
mod run;
mod state;
pub mod stats;
pub mod status;

pub use identity::Identity;
pub use state::Kubelet;
