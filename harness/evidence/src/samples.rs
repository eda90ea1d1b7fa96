//! The samples of a case.

use evictlab_rules::summary::Sample;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

/// Samples of the Summary, oldest first.
///
/// They are kept as JSON text: parsed, they take ten times the memory, and a run on many kubelets
/// has thousands of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples(Vec<Box<str>>);

impl Samples {
    /// Appends the latest sample.
    pub fn push(&mut self, sample: &Value) {
        self.0.push(sample.to_string().into());
    }

    /// Reports whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each sample as JSON.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Value> {
        self.0.iter().map(|text| serde_json::from_str(text).unwrap_or_default())
    }

    /// Decodes the samples; skips those that are not in the format of the Summary API.
    pub fn decode(&self) -> impl Iterator<Item = Sample> {
        self.0.iter().filter_map(|text| serde_json::from_str(text).ok())
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
