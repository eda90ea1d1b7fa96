//! The Kubernetes API over HTTP.
//!
//! ```text
//! router → injected faults → (discovery | openapi | version | dispatch)
//! dispatch: ResourcePath → Resource → get, list, watch, write, patch, or a subresource
//! ```
//!
//! Handlers lock the model only while they read or write it. Watches and followed logs lock it for
//! each chunk of their response.

mod discovery;
mod dispatch;
mod errors;
mod log;
mod objects;
mod openapi;
mod patch;
mod proxy;
mod request;
mod resource;
mod responses;
mod router;
mod selector;
mod serve;
mod table;
#[cfg(test)]
mod tests;
mod version;
mod view;

pub use serve::{Access, AccessError, serve_http};
