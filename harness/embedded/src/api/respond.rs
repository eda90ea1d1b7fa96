//! Answers.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::request::{Accept, Encoding, Form};
use super::resource::{Resource, Source};
use super::table;
use crate::registry::{Status, event};

/// How objects of a request are shown.
#[derive(Clone, Copy)]
pub struct View {
    /// What they are.
    pub resource: &'static Resource,
    /// In which form they are wanted.
    pub accept: Accept,
    /// What a table's rows hold of them.
    pub include: Include,
    /// What the calendar says.
    pub now: Timestamp,
}

/// `includeObject`: what a table's row holds of its object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

impl Include {
    /// Reads the parameter.
    pub fn read(text: &str) -> Result<Self, Status> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            _ => Err(Status::bad_request(format!("unrecognized includeObject value: {text:?}"))),
        }
    }
}

impl View {
    /// An object as it is served; a stored one is told in the form of its group.
    pub fn served<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        match self.resource.source {
            Source::NewEvents => {
                let mut event = object.clone();
                event::from_core(&mut event);
                Cow::Owned(event)
            }
            _ => Cow::Borrowed(object),
        }
    }

    /// An object in the wanted form. `columns` are told with a table.
    pub fn shaped<'a>(&self, object: &'a Value, columns: bool) -> Cow<'a, Value> {
        match self.accept.form {
            Form::Object | Form::Discovery => self.served(object),
            Form::Metadata => Cow::Owned(metadata(object)),
            Form::Table => {
                let version = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                Cow::Owned(table::table(self, std::iter::once(object), version, columns))
            }
        }
    }

    /// One object.
    pub fn one(&self, code: u16, object: &Value, warnings: &[String]) -> Response {
        let mut response = self.written(code, &self.shaped(object, true));
        warn(response.headers_mut(), warnings);
        response
    }

    /// Several objects with the metadata of their list.
    pub fn many(&self, objects: &[Arc<Value>], metadata: Value) -> Response {
        let objects = objects.iter().map(|object| &**object);
        match self.accept.form {
            Form::Table => self.written(200, &table::table(self, objects, metadata, true)),
            Form::Metadata => {
                let items = objects.map(|object| Cow::Owned(self::metadata(object))).collect();
                let (kind, api_version) =
                    ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned());
                self.written(200, &List { kind, api_version, metadata, items })
            }
            Form::Object | Form::Discovery => {
                let items = objects.map(|object| self.served(object)).collect();
                let kind = format!("{}List", self.resource.kind);
                self.written(200, &List { kind, api_version: self.resource.api_version(), metadata, items })
            }
        }
    }

    fn written(&self, code: u16, object: &impl Serialize) -> Response {
        match self.accept.encoding {
            Encoding::Json => json(code, object),
            Encoding::Yaml => match serde_yaml::to_string(object) {
                Ok(text) => text_of(code, "application/yaml", text),
                Err(error) => refuse(&Status::internal(error.to_string())),
            },
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    kind: String,
    api_version: String,
    metadata: Value,
    items: Vec<Cow<'a, Value>>,
}

fn metadata(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// JSON.
pub fn json(code: u16, object: &impl Serialize) -> Response {
    match serde_json::to_vec(object) {
        Ok(bytes) => of(code, "application/json", Body::from(bytes)),
        Err(error) => text_of(500, "text/plain", error.to_string()),
    }
}

/// Text of some type.
pub fn text_of(code: u16, content: &'static str, text: String) -> Response {
    of(code, content, Body::from(text))
}

/// A body of some type.
pub fn of(code: u16, content: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content));
    response
}

/// A refusal.
pub fn refuse(status: &Status) -> Response {
    let mut response = json(status.code, &status.object());
    let seconds = status.details.as_ref().and_then(|details| details["retryAfterSeconds"].as_u64());
    if let Some(seconds) = seconds.filter(|seconds| *seconds > 0) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Warnings, as RFC 7234 writes them.
fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    for warning in warnings {
        let guarded = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{guarded}\"")) {
            headers.append(HeaderName::from_static("warning"), value);
        }
    }
}
