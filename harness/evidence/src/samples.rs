//! The samples of a case.

use evictlab_case::expression::CelValue;
use evictlab_rules::quantity::MIB;
use evictlab_rules::summary::Sample;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use crate::cel_value::{LazyValue, cel_list};
use crate::sample_text::SampleText;

/// Maximum size of the samples of a case, in bytes: more than an hour of them.
const MAX_BYTES: usize = 16 * MIB as usize;

/// Maximum size of the samples that stay parsed after an expression has read them, in bytes of
/// text: some minutes of them.
const MAX_PARSED_BYTES: usize = MIB as usize;

/// Samples of the Summary, oldest first.
///
/// They are kept as JSON text: parsed, they take ten times the memory, and a run on many kubelets
/// has thousands of them. If they take too much memory, older ones are thinned out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    samples: Vec<SampleText>,
    bytes: usize,
    dropped: usize,
}

impl Samples {
    /// Appends the latest sample.
    pub fn push(&mut self, sample: &impl Serialize) {
        self.push_within(sample, MAX_BYTES);
    }

    fn push_within(&mut self, sample: &impl Serialize, max_bytes: usize) {
        // Serializing JSON values does not fail.
        let text: Box<str> = serde_json::to_string(sample).unwrap_or_default().into();
        self.bytes += text.len();
        self.samples.push(SampleText::new(text, self.bytes <= MAX_PARSED_BYTES));
        if self.bytes > max_bytes {
            self.thin();
        }
    }

    /// Drops every second sample of the older half: the judgement needs the time before an eviction
    /// in full.
    fn thin(&mut self) {
        let (before, half) = (self.samples.len(), self.samples.len() / 2);
        let mut index = 0;
        self.samples.retain(|_| {
            index += 1;
            index > half || index % 2 == 1
        });
        self.bytes = self.samples.iter().map(|sample| sample.text().len()).sum();
        self.dropped += before - self.samples.len();
    }

    /// Returns the number of samples that were dropped because all of them took too much memory.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Returns whether the list of samples is empty.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Returns each sample as JSON.
    pub fn iter(&self) -> impl Iterator<Item = Value> {
        self.samples.iter().map(SampleText::parse)
    }

    /// Returns the JSON text of each sample, in one line.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.samples.iter().map(SampleText::text)
    }

    /// Returns the samples as a list for expressions.
    pub(crate) fn cel_list(&self) -> CelValue<'_> {
        cel_list(self.samples.iter().map(|sample| Box::new(LazyValue::of_sample(sample)) as _))
    }

    /// Decodes the latest sample; `None` if there is none, or if it does not have the form of the
    /// Summary API.
    pub fn decode_latest(&self) -> Option<Sample> {
        self.decode_last_as()
    }

    /// Decodes the latest sample as `T`.
    pub(crate) fn decode_last_as<T: DeserializeOwned>(&self) -> Option<T> {
        self.samples.last().and_then(|sample| serde_json::from_str(sample.text()).ok())
    }

    /// Decodes the samples. A sample that does not have the form of the Summary API is an error.
    pub fn decode(&self) -> impl Iterator<Item = Result<Sample, serde_json::Error>> {
        self.samples.iter().map(|sample| serde_json::from_str(sample.text()))
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
