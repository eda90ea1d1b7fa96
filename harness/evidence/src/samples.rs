//! The samples of a case.

use evictlab_rules::quantity::MIB;
use evictlab_rules::summary::Sample;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

/// Maximum size of the samples of a case, in bytes: more than an hour of them.
const MAX_BYTES: usize = 16 * MIB as usize;

/// Samples of the Summary, oldest first.
///
/// They are kept as JSON text: parsed, they take ten times the memory, and a run on many kubelets
/// has thousands of them. If they take too much memory, older ones are thinned out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    texts: Vec<Box<str>>,
    bytes: usize,
    dropped: usize,
}

impl Samples {
    /// Appends the latest sample.
    pub fn push(&mut self, sample: &Value) {
        self.push_within(sample, MAX_BYTES);
    }

    fn push_within(&mut self, sample: &Value, max_bytes: usize) {
        let text: Box<str> = sample.to_string().into();
        self.bytes += text.len();
        self.texts.push(text);
        if self.bytes > max_bytes {
            self.thin();
        }
    }

    /// Drops every second sample of the older half: the judgement needs the time before an eviction
    /// in full.
    fn thin(&mut self) {
        let (before, half) = (self.texts.len(), self.texts.len() / 2);
        let mut index = 0;
        self.texts.retain(|_| {
            index += 1;
            index > half || index % 2 == 1
        });
        self.bytes = self.texts.iter().map(|text| text.len()).sum();
        self.dropped += before - self.texts.len();
    }

    /// Returns the number of samples that were dropped because all of them took too much memory.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Returns whether the list of samples is empty.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns each sample as JSON.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Value> {
        // The texts are serialized values: parsing them does not fail.
        self.texts.iter().map(|text| serde_json::from_str(text).unwrap_or_default())
    }

    /// Decodes the samples. A sample that does not have the form of the Summary API is an error.
    pub fn decode(&self) -> impl Iterator<Item = Result<Sample, serde_json::Error>> {
        self.texts.iter().map(|text| serde_json::from_str(text))
    }
}

impl<'a> FromIterator<&'a Value> for Samples {
    fn from_iter<T: IntoIterator<Item = &'a Value>>(values: T) -> Self {
        let mut samples = Self::default();
        values.into_iter().for_each(|value| samples.push(value));
        samples
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn older_samples_are_thinned_out() {
        let mut samples = Samples::default();
        for t in 0..1000 {
            samples.push_within(&json!({"t": t, "padding": "x".repeat(80)}), 10_000);
        }
        let times: Vec<u64> = samples.iter().map(|sample| sample["t"].as_u64().unwrap()).collect();
        assert!(samples.bytes <= 10_000 && times.len() > 40, "{times:?}");
        assert_eq!(samples.dropped(), 1000 - times.len());
        assert_eq!((times[0], &times[times.len() - 3..]), (0, &[997, 998, 999][..]), "{times:?}");
        assert!(times.is_sorted(), "{times:?}");
    }
}
