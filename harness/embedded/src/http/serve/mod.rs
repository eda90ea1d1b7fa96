//! The API on a TCP port.

mod access;
mod server;
mod tls;

pub use access::{Access, AccessError};
