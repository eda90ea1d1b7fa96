//! The API on a TCP port.

mod access;
mod activity;
mod connection;
mod connections;
mod server;

pub use access::{Access, AccessError};
pub use server::serve_http;
