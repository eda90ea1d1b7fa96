//! The body of a request.

use axum::body::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::protobuf;
use crate::api::refusal;
use crate::registry::Status;

/// How a body is to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
    /// `application/json-patch+json` (RFC 6902)
    JsonPatch,
    /// `application/merge-patch+json` (RFC 7396)
    MergePatch,
    /// `application/strategic-merge-patch+json`
    StrategicMergePatch,
    /// `application/apply-patch+yaml`: server-side apply
    ApplyPatch,
}

impl Content {
    /// What `Content-Type` says; nothing stands for JSON.
    pub fn read(headers: &HeaderMap) -> Result<Self, Status> {
        let stated = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Ok(match stated.split(';').next().unwrap_or_default().trim() {
            "" | "application/json" | "*/*" => Self::Json,
            "application/yaml" => Self::Yaml,
            "application/vnd.kubernetes.protobuf" => Self::Protobuf,
            "application/json-patch+json" => Self::JsonPatch,
            "application/merge-patch+json" => Self::MergePatch,
            "application/strategic-merge-patch+json" => Self::StrategicMergePatch,
            "application/apply-patch+yaml" => Self::ApplyPatch,
            other => {
                return Err(refusal::unsupported_media(other, &["application/json", "application/yaml"]));
            }
        })
    }
}

/// The forms in which objects are taken.
const OBJECTS: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The body of an object as JSON.
pub fn json(headers: &HeaderMap, body: &Bytes) -> Result<Bytes, Status> {
    match Content::read(headers)? {
        Content::Json => Ok(body.clone()),
        Content::Yaml => yaml(body),
        Content::Protobuf => protobuf::json(body).map(Bytes::from),
        Content::JsonPatch | Content::MergePatch | Content::StrategicMergePatch | Content::ApplyPatch => {
            Err(refusal::unsupported_media("a patch", OBJECTS))
        }
    }
}

/// YAML as JSON.
pub fn yaml(body: &Bytes) -> Result<Bytes, Status> {
    let bad = |problem: String| Status::bad_request(format!("error converting YAML to JSON: {problem}"));
    let value: serde_json::Value = serde_yaml::from_slice(body).map_err(|error| bad(error.to_string()))?;
    serde_json::to_vec(&value).map(Bytes::from).map_err(|error| bad(error.to_string()))
}
