//! The text of a sample.

use std::sync::OnceLock;

use serde_json::Value;

/// The text of a sample, which may stay parsed once it has been: the condition of a case reads the
/// same samples again whenever there is another one.
#[derive(Clone, Debug)]
pub(crate) struct SampleText {
    text: Box<str>,
    /// `None` if the sample does not stay parsed.
    parsed: Option<OnceLock<Value>>,
}

impl SampleText {
    pub(crate) fn new(text: Box<str>, stays_parsed: bool) -> Self {
        Self { text, parsed: stays_parsed.then(OnceLock::new) }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Parses the text. It is a serialized value: parsing it does not fail.
    pub(crate) fn parse(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Parses the sample as expressions see it: with the pods of the case only, which are those
    /// with statistics of containers.
    pub(crate) fn parse_for_expressions(&self) -> Value {
        let mut sample = self.parse();
        if let Some(pods) = sample.get_mut("pods").and_then(Value::as_array_mut) {
            pods.retain(|pod| pod.get("containers").is_some());
        }
        sample
    }

    /// Returns the sample as expressions see it; `None` if it does not stay parsed.
    pub(crate) fn parsed_for_expressions(&self) -> Option<&Value> {
        Some(self.parsed.as_ref()?.get_or_init(|| self.parse_for_expressions()))
    }
}

/// Compares the texts.
impl PartialEq for SampleText {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
