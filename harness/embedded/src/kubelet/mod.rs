//! A kubelet of a given version: pods, statistics, eviction, node status, events and HTTP
//! endpoints.

pub(crate) mod config;
mod event;
pub(crate) mod eviction;
pub(crate) mod http;
mod images;
pub(crate) mod log;
pub(crate) mod pods;
pub(crate) mod recorder;
mod run;
mod state;
pub(crate) mod stats;
pub(crate) mod status;

pub use config::Housekeeping;
pub use state::Kubelet;
