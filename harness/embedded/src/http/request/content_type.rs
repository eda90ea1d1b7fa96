//! Media types of bodies, and their conversion to JSON.

use axum::body::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::protobuf;
use crate::apiserver::Status;
use crate::http::errors;

/// Media type of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentType {
    /// `application/json`
    Json,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
    /// `application/merge-patch+json` (RFC 7396)
    MergePatch,
    /// `application/strategic-merge-patch+json`
    StrategicMergePatch,
}

/// Media types of objects.
const OBJECT_TYPES: &[&str] = &["application/json", "application/vnd.kubernetes.protobuf"];

impl ContentType {
    /// Reads `Content-Type`; JSON if it is missing.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, Status> {
        let stated = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Ok(match stated.split(';').next().unwrap_or_default().trim() {
            "" | "application/json" | "*/*" => Self::Json,
            "application/vnd.kubernetes.protobuf" => Self::Protobuf,
            "application/merge-patch+json" => Self::MergePatch,
            "application/strategic-merge-patch+json" => Self::StrategicMergePatch,
            other => return Err(errors::unsupported_media_type(other, OBJECT_TYPES)),
        })
    }
}

/// Converts the body of an object to JSON.
pub(super) fn body_to_json(headers: &HeaderMap, body: &Bytes) -> Result<Bytes, Status> {
    match ContentType::from_headers(headers)? {
        ContentType::Json => Ok(body.clone()),
        ContentType::Protobuf => protobuf::to_json(body).map(Bytes::from),
        ContentType::MergePatch | ContentType::StrategicMergePatch => {
            Err(errors::unsupported_media_type("a patch", OBJECT_TYPES))
        }
    }
}
