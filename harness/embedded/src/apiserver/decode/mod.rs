//! Decoding of objects: JSON syntax, types, unknown fields, quantities.
//!
//! Objects stay [`serde_json::Value`]s, so that fields newer than k8s-openapi's types are kept; the
//! types only validate them.

mod object;
mod quantities;

pub(super) use object::decode;
pub(crate) use object::parse;
