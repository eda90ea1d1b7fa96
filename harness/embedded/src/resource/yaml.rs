//! Objects in YAML.

use serde_json::Value;

/// Parses an object as Kubernetes does: `y` and `n` are texts.
///
/// # Errors
/// The first mistake, with its position.
pub(crate) fn parse_yaml(text: &[u8]) -> Result<Value, String> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_slice_with_options(text, options).map_err(|error| error.to_string())
}
