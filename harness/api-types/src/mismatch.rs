//! Comparison of objects with their types.

use std::cell::RefCell;
use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use crate::path::FieldPath;
use crate::reader::{Findings, Place, Reader};
use crate::{ApiType, PathSegment, is_newer_field};

/// A difference between an object and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The place in the object.
    pub path: Vec<PathSegment>,
    /// The kind of difference.
    pub difference: Difference,
}

/// The kind of difference between a part of an object and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The type does not have this field.
    UnknownField,
    /// The value has another type, as serde describes it.
    WrongType(String),
}

impl ApiType {
    /// Compares an object with its type. Accepts fields of newer Kubernetes versions
    /// ([`is_newer_field`]).
    ///
    /// A value of a wrong type ends the comparison: it is the last item, and fields that come after
    /// it in the object are not compared.
    pub fn mismatches(self, object: &Value) -> Vec<Mismatch> {
        let findings = Findings { unknown: Some(RefCell::default()), ..Findings::default() };
        let result = self.check()(Reader { value: object, place: &Place::Root, findings: &findings });
        let unknown = findings.unknown.into_iter().flat_map(RefCell::into_inner);
        let unknown = unknown.filter(|path| !is_newer_field(keys(path)));
        let mut mismatches: Vec<_> =
            unknown.map(|path| Mismatch { path, difference: Difference::UnknownField }).collect();
        if let Err(error) = result {
            let path = findings.wrong.into_inner().unwrap_or_default();
            mismatches.push(Mismatch { path, difference: Difference::WrongType(error.to_string()) });
        }
        mismatches
    }
}

impl Mismatch {
    /// Returns the path as strict decoding of the API server writes it, such as
    /// `spec.containers[0].image`.
    pub fn field_path(&self) -> String {
        FieldPath(&self.path).to_string()
    }
}

impl Display for Mismatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", FieldPath(&self.path))?;
        }
        match &self.difference {
            Difference::UnknownField => f.write_str("unknown field"),
            Difference::WrongType(error) => f.write_str(error),
        }
    }
}

fn keys(path: &[PathSegment]) -> impl Iterator<Item = &str> {
    path.iter().filter_map(|segment| match segment {
        PathSegment::Key(key) => Some(key.as_str()),
        PathSegment::Item(_) => None,
    })
}
