//! Comparison of objects with their types.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;
use serde_path_to_error::Track;

use crate::path::FieldPath;
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
        let mut mismatches = Vec::new();
        let mut on_unknown = |path: serde_ignored::Path<'_>| {
            let path = unknown_path(&path);
            if !is_newer_field(keys(&path)) {
                mismatches.push(Mismatch { path, difference: Difference::UnknownField });
            }
        };
        let mut track = Track::new();
        let fields = serde_ignored::Deserializer::new(object, &mut on_unknown);
        let located = serde_path_to_error::Deserializer::new(fields, &mut track);
        if let Err(error) = self.check()(&mut <dyn erased_serde::Deserializer<'_>>::erase(located)) {
            let path = track.path().iter().filter_map(error_segment).collect();
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

fn error_segment(segment: &serde_path_to_error::Segment) -> Option<PathSegment> {
    match segment {
        serde_path_to_error::Segment::Map { key } => Some(PathSegment::Key(key.clone())),
        serde_path_to_error::Segment::Seq { index } => Some(PathSegment::Item(*index)),
        _ => None,
    }
}

fn unknown_path(path: &serde_ignored::Path<'_>) -> Vec<PathSegment> {
    use serde_ignored::Path;
    let (parent, segment) = match path {
        Path::Root => return Vec::new(),
        Path::Seq { parent, index } => (parent, Some(PathSegment::Item(*index))),
        Path::Map { parent, key } => (parent, Some(PathSegment::Key(key.clone()))),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            (parent, None)
        }
    };
    let mut segments = unknown_path(parent);
    segments.extend(segment);
    segments
}
