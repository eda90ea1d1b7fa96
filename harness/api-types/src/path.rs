//! Paths within objects.

use std::fmt::{self, Display, Formatter};

/// A segment of a path from a value to one that it contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSegment {
    /// The value of a key.
    Key(String),
    /// An item of a list, from 0.
    Item(usize),
}

impl From<&str> for PathSegment {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for PathSegment {
    fn from(item: usize) -> Self {
        Self::Item(item)
    }
}

/// A path as strict decoding of the API server writes it, such as `spec.containers[0].image`. Every
/// key follows a dot, also one that contains dots: only errors of validation write the keys of maps
/// in brackets. Source: `appendStrictFieldStackKey` in `sigs.k8s.io/json`.
pub(crate) struct FieldPath<'a>(pub(crate) &'a [PathSegment]);

impl Display for FieldPath<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                PathSegment::Key(key) if at == 0 => f.write_str(key)?,
                PathSegment::Key(key) => write!(f, ".{key}")?,
                PathSegment::Item(item) => write!(f, "[{item}]")?,
            }
        }
        Ok(())
    }
}
