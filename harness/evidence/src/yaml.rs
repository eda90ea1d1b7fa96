//! Files with YAML documents: recorded evidence, and objects that kubectl printed.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::Options;

/// Text that is not YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct YamlError {
    /// Line of the problem, from 1; 1 if it is unknown.
    pub line: usize,
    /// Column of the problem, from 1; 1 if it is unknown.
    pub column: usize,
    /// The problem, with its position.
    pub problem: String,
}

/// Parses all documents of a text, without a limit on their size: the objects of a large cluster
/// are more than the parser permits by default. Aliases stay limited.
///
/// ```
/// let documents = evictlab_evidence::yaml_documents("kind: Pod\n---\nkind: Event\n")?;
/// assert_eq!(documents[1]["kind"], "Event");
/// # Ok::<(), evictlab_evidence::YamlError>(())
/// ```
///
/// # Errors
/// The first problem of the text.
pub fn yaml_documents(text: &str) -> Result<Vec<Value>, YamlError> {
    yaml_documents_as(text)
}

/// Parses all documents of a text as a type, as [`yaml_documents`] does.
///
/// # Errors
/// The first problem of the text.
pub fn yaml_documents_as<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, YamlError> {
    let options: Options =
        serde_saphyr::options! { budget: None, with_snippet: false, strict_booleans: true };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        let at = error.location();
        YamlError {
            line: at.map_or(1, |at| usize::try_from(at.line()).unwrap_or(usize::MAX)),
            column: at.map_or(1, |at| usize::try_from(at.column()).unwrap_or(usize::MAX)),
            problem: error.to_string(),
        }
    })
}
