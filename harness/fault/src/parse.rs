//! Parser of fault scripts.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Fault;

/// Text that is not a fault script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// Invalid YAML or an unknown fault, with its position.
    #[error("{}", .0.without_snippet())]
    Syntax(Box<serde_saphyr::Error>),
    /// YAML that is neither a fault nor a list of faults.
    #[error(
        "{0} is neither a file nor a fault script\nhelp: write a fault such as `event-lost: {{times: 1}}`, or a list of faults"
    )]
    NotAScript(String),
}

/// Parses a fault script: YAML with one fault or a list of faults.
///
/// # Errors
/// [`ScriptError`] for invalid YAML and for unknown faults and fields.
pub fn parse(yaml: &str) -> Result<Vec<Fault>, ScriptError> {
    match from_yaml::<Value>(yaml)? {
        Value::Array(_) => from_yaml(yaml),
        Value::Object(_) => Ok(vec![from_yaml(yaml)?]),
        other => Err(ScriptError::NotAScript(other.to_string())),
    }
}

/// Deserializes YAML in which an enum is a map with one entry, as in JSON.
pub(crate) fn from_yaml<T: DeserializeOwned>(yaml: &str) -> Result<T, ScriptError> {
    serde_saphyr::from_str(yaml).map_err(|error| ScriptError::Syntax(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_one_fault_or_a_list() {
        let names = |yaml: &str| parse(yaml).unwrap().iter().map(Fault::name).collect::<Vec<_>>();
        assert_eq!(names("event-lost: {times: 1}"), ["event-lost"]);
        assert_eq!(
            names("- oom-kill: {at: 5s}\n- api-slow: {by: 500ms, resource: pods}\n"),
            ["oom-kill", "api-slow"]
        );
    }

    #[test]
    fn rejects_invalid_scripts_with_their_position() {
        for (yaml, says) in [
            ("faults.yaml", "\"faults.yaml\" is neither a file nor a fault script"),
            ("- oom-kill: {}\n- event-lst: {}\n", "event-lst"),
            ("- oom-kill: {}\n- event-lost: {tims: 1}\n", "line 2"),
            ("event-late: {by: soon}", "\"soon\" is not a duration"),
            ("event-late: {", "unclosed bracket '{' at line 1, column 13"),
        ] {
            let error = parse(yaml).unwrap_err().to_string();
            assert!(error.contains(says), "{yaml}: {error}");
        }
    }
}
