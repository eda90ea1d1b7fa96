//! Many looks at a Summary.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

/// Looks at a Summary, in order. They are kept as text: taken apart they have ten times the size, and a run on many kubelets has thousands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples(Vec<Box<str>>);

impl Samples {
    /// Adds the newest.
    pub fn push(&mut self, sample: &Value) {
        self.0.push(sample.to_string().into());
    }

    /// Each of them, taken apart.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Value> {
        self.0.iter().map(|text| serde_json::from_str(text).unwrap_or_default())
    }
}

impl<'a> FromIterator<&'a Value> for Samples {
    fn from_iter<T: IntoIterator<Item = &'a Value>>(values: T) -> Self {
        Self(values.into_iter().map(|value| value.to_string().into()).collect())
    }
}

impl Serialize for Samples {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Samples {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Vec::<Value>::deserialize(from)?.iter().collect())
    }
}
