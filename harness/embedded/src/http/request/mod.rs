//! Requests: path, query, headers, body.

mod api_request;
mod content_type;
mod protobuf;
mod query;
mod representation;
mod resource_path;

pub(crate) use api_request::ApiRequest;
pub(crate) use content_type::ContentType;
pub(crate) use query::Query;
pub(crate) use representation::Representation;
pub(crate) use resource_path::ResourcePath;
