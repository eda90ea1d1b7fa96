//! Representation of objects in responses: as they are, as metadata, or as a table.

use std::borrow::Cow;
use std::sync::Arc;

use axum::response::Response;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::request::{ApiRequest, Representation};
use super::resource::Resource;
use super::{responses, table};
use crate::apiserver::Status;
use crate::cluster::Cluster;
use crate::resource::{Kind, ObjectExt};

/// The representation of a resource that a request asks for.
#[derive(Clone, Copy)]
pub(crate) struct View {
    /// Resource of the objects.
    pub(crate) resource: &'static Resource,
    /// Kind of the objects in the store.
    pub(crate) kind: Kind,
    /// Representation of objects.
    pub(crate) representation: Representation,
    /// Rows of a table contain the whole object (`includeObject=Object`), and not its metadata.
    with_objects: bool,
    /// Current time, for ages in tables.
    now: Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    kind: String,
    api_version: String,
    metadata: Value,
    items: Vec<Cow<'a, Value>>,
}

impl View {
    /// Reads the representation from a request.
    ///
    /// # Errors
    /// 400 for an unknown `includeObject`.
    pub(crate) fn from_request(
        cluster: &Cluster,
        request: &ApiRequest,
        resource: &'static Resource,
        kind: Kind,
    ) -> Result<Self, Status> {
        let with_objects = match request.query.text("includeObject") {
            "" | "Metadata" => false,
            "Object" => true,
            text => {
                return Err(Status::bad_request(format!("unrecognized includeObject value: {text:?}")));
            }
        };
        let now = cluster.with(|simulation| simulation.store.epoch.at(simulation.now));
        Ok(Self { resource, kind, representation: request.representation, with_objects, now })
    }

    /// Returns a stored object in the requested representation. A table has column definitions if
    /// `with_columns` is true.
    pub(crate) fn represent<'a>(&self, stored: &'a Value, with_columns: bool) -> Cow<'a, Value> {
        match self.representation {
            Representation::Object => Cow::Borrowed(stored),
            Representation::Metadata => Cow::Owned(partial_metadata(stored)),
            Representation::Table => {
                let metadata = json!({"resourceVersion": stored.resource_version()});
                Cow::Owned(self.table(std::iter::once(stored), metadata, with_columns))
            }
        }
    }

    /// Responds with one object.
    pub(crate) fn one(&self, code: u16, stored: &Value, warnings: &[String]) -> Response {
        let mut response = responses::json(code, &self.represent(stored, true));
        responses::add_warnings(&mut response, warnings);
        response
    }

    /// Responds with a list and its metadata.
    pub(crate) fn list(&self, stored: &[Arc<Value>], metadata: Value) -> Response {
        let objects = stored.iter().map(|object| &**object);
        let (kind, api_version, items) = match self.representation {
            Representation::Table => return responses::json(200, &self.table(objects, metadata, true)),
            Representation::Metadata => (
                "PartialObjectMetadataList".to_owned(),
                "meta.k8s.io/v1".to_owned(),
                objects.map(|object| Cow::Owned(partial_metadata(object))).collect(),
            ),
            Representation::Object => (
                format!("{}List", self.resource.kind),
                self.resource.api_version(),
                objects.map(Cow::Borrowed).collect(),
            ),
        };
        responses::json(200, &List { kind, api_version, metadata, items })
    }

    fn table<'a>(
        &self,
        objects: impl Iterator<Item = &'a Value>,
        metadata: Value,
        with_columns: bool,
    ) -> Value {
        let rows = objects.map(|object| {
            let included = if self.with_objects { object.clone() } else { partial_metadata(object) };
            table::row(self.kind, object, included, self.now)
        });
        table::table(self.kind, rows.collect(), metadata, with_columns)
    }
}

fn partial_metadata(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object.metadata()})
}
