//! A request for a resource.

use axum::body::Bytes;
use http::{HeaderMap, Method};

use super::content_type::body_to_json;
use super::query::Query;
use super::representation::Representation;
use super::resource_path::ResourcePath;
use crate::apiserver::Status;

/// A request for a resource.
pub(crate) struct ApiRequest {
    /// HTTP method.
    pub(crate) method: Method,
    /// Resource, namespace and name of the path.
    pub(crate) path: ResourcePath,
    /// Parameters.
    pub(crate) query: Query,
    /// Requested representation of objects.
    pub(crate) representation: Representation,
    /// Headers.
    pub(crate) headers: HeaderMap,
    /// Body as it was sent.
    pub(crate) body: Bytes,
}

impl ApiRequest {
    /// Returns the body as JSON.
    ///
    /// # Errors
    /// 400 for a malformed body, 415 for a media type that is not one of objects.
    pub(crate) fn json_body(&self) -> Result<Bytes, Status> {
        body_to_json(&self.headers, &self.body)
    }
}
