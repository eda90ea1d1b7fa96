//! Requests as they come.

mod accept;
mod body;
mod path;
mod protobuf;
mod query;

use axum::body::Bytes;
use http::{HeaderMap, Method};

pub use accept::{Accept, Encoding, Form};
pub use body::{Content, json, yaml};
pub use path::Target;
pub use query::Query;

/// A request for a resource.
pub struct Request {
    /// What is to be done.
    pub method: Method,
    /// To what.
    pub target: Target,
    /// With which parameters.
    pub query: Query,
    /// The same as they were written.
    pub raw_query: String,
    /// The form of the answer.
    pub accept: Accept,
    /// The headers.
    pub headers: HeaderMap,
    /// What was sent.
    pub body: Bytes,
}
