//! Bodies in `application/vnd.kubernetes.protobuf`.
//!
//! kubectl's typed commands (`create namespace`, `drain`, `debug node`) send protobuf since 1.32,
//! and do not fall back to JSON.

mod decode;
mod envelope;
mod schema;
mod wire;

pub(crate) use envelope::to_json;
