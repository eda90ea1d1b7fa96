//! Selection of objects by labels and fields.

use serde_json::Value;

use super::error::SelectorError;
use super::field_selector::FieldSelector;
use super::label_selector::LabelSelector;
use crate::apiserver::Status;
use crate::http::request::Query;
use crate::resource::{Kind, ObjectExt};

/// `labelSelector` and `fieldSelector` of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectSelector {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl ObjectSelector {
    /// Reads `labelSelector` and `fieldSelector`.
    ///
    /// # Errors
    /// 400 for an invalid selector.
    pub(crate) fn from_query(query: &Query, kind: Kind) -> Result<Self, Status> {
        let invalid = |error: SelectorError| Status::bad_request(error.to_string());
        Ok(Self {
            labels: LabelSelector::parse(query.text("labelSelector")).map_err(invalid)?,
            fields: FieldSelector::parse(query.text("fieldSelector"), kind).map_err(invalid)?,
        })
    }

    /// Returns whether the selector matches a stored object.
    pub(crate) fn matches(&self, stored: &Value) -> bool {
        self.labels.matches(stored.labels()) && self.fields.matches(stored)
    }
}
