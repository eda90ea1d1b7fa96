//! Reading a script.

use serde_json::Value;

use super::Fault;

/// A text that is no fault script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// No YAML, or a fault that there is not; with its place.
    #[error("{0}")]
    Form(String),
    /// Neither a fault nor a list of them.
    #[error(
        "{0} is neither a file nor a fault script; write one such as `event-lost: {{times: 1}}`, or a list of them"
    )]
    NoScript(String),
}

/// Reads a script: one fault, or a list of them, in YAML.
///
/// # Errors
/// What is wrong, and where.
pub fn parse(yaml: &str) -> Result<Vec<Fault>, ScriptError> {
    let form = |error: serde_saphyr::Error| ScriptError::Form(error.to_string());
    match serde_saphyr::from_str::<Value>(yaml).map_err(form)? {
        Value::Array(_) => serde_saphyr::from_str(yaml).map_err(form),
        Value::Object(_) => Ok(vec![serde_saphyr::from_str(yaml).map_err(form)?]),
        other => Err(ScriptError::NoScript(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fault_or_a_list_of_them() {
        let names = |yaml: &str| parse(yaml).unwrap().iter().map(Fault::name).collect::<Vec<_>>();
        assert_eq!(names("event-lost: {times: 1}"), ["event-lost"]);
        assert_eq!(
            names("- oom-kill: {at: 5s}\n- api-slow: {by: 500ms, resource: pods}\n"),
            ["oom-kill", "api-slow"]
        );
    }

    #[test]
    fn what_is_no_script_is_told_with_its_place() {
        for (yaml, says) in [
            ("faults.yaml", "\"faults.yaml\" is neither a file nor a fault script"),
            ("- oom-kill: {}\n- event-lst: {}\n", "event-lst"),
            ("- oom-kill: {}\n- event-lost: {tims: 1}\n", "line 2"),
            ("event-late: {by: soon}", "\"soon\" is no length of time"),
            ("event-late: {", "line 1"),
        ] {
            let error = parse(yaml).unwrap_err().to_string();
            assert!(error.contains(says), "{yaml}: {error}");
        }
    }
}
