//! Which objects are wanted.

mod fields;
mod labels;

pub use fields::Fields;
pub use labels::Labels;

use serde_json::Value;

use super::request::Query;
use super::resource::Source;
use crate::registry::Status;

/// A choice of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Labels,
    fields: Fields,
}

impl Selector {
    /// Reads `labelSelector` and `fieldSelector`.
    pub fn read(query: &Query, source: Source) -> Result<Self, Status> {
        Ok(Self {
            labels: Labels::read(query.text("labelSelector")).map_err(Status::bad_request)?,
            fields: Fields::read(query.text("fieldSelector"), source).map_err(Status::bad_request)?,
        })
    }

    /// Whether it chooses everything.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether it chooses an object, in the form in which it is stored.
    pub fn chooses(&self, object: &Value) -> bool {
        self.labels.choose(&object["metadata"]["labels"]) && self.fields.choose(object)
    }
}
