//! One expression: read once, and evaluated as often as it is asked for.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use cel::{Context, Program};
use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::Scope;
use super::functions::{ENVIRONMENT, FUNCTIONS};
use super::scope::VARIABLES;
use crate::case::did_you_mean;

/// An expression in CEL (<https://cel.dev>), such as `pods.hog.status.reason`.
#[derive(Clone)]
pub struct Expression {
    text: String,
    program: Arc<Program>,
    variables: Arc<[&'static str]>,
}

/// An expression that does not read, or that has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It is no CEL.
    #[error("{text:?} is no CEL expression: {why}")]
    Syntax {
        /// What was written.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// It speaks of something that there is not.
    #[error("{kind} `{name}` is not known{}", hint.as_deref().map(|hint| format!(": {hint}")).unwrap_or_default())]
    Unknown {
        /// `the variable` or `the function`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What may be meant.
        hint: Option<String>,
    },
    /// What it speaks of is not there, or not (yet) of that type.
    #[error("{0}")]
    NoValue(String),
}

/// What CEL has itself.
const BUILT_IN: [&str; 18] = [
    "all",
    "contains",
    "double",
    "duration",
    "endsWith",
    "exists",
    "exists_one",
    "filter",
    "has",
    "int",
    "map",
    "matches",
    "size",
    "startsWith",
    "string",
    "timestamp",
    "type",
    "uint",
];

/// The names that a macro such as `all(name, …)` binds.
static BOUND: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\.(?:all|exists|exists_one|map|filter)\(\s*([A-Za-z_]\w*)\s*,").ok());

impl Expression {
    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its value over what was seen.
    ///
    /// # Errors
    /// What it speaks of is not there.
    pub fn value(&self, scope: &Scope<'_>) -> Result<Value, ExpressionError> {
        let no_value = |why: String| ExpressionError::NoValue(why);
        let environment = ENVIRONMENT.clone().map_err(|error| no_value(error.to_string()))?;
        let mut context = Context::with_env(environment);
        context.set_variable_resolver(scope);
        let value = self.program.execute(&context).map_err(|error| no_value(error.to_string()))?;
        value.json().map(sorted).map_err(|error| no_value(error.to_string()))
    }

    /// Whether it is true over what was seen. What it speaks of may not be there yet: that is no truth.
    pub fn holds(&self, scope: &Scope<'_>) -> bool {
        self.value(scope) == Ok(Value::Bool(true))
    }

    /// Whether it speaks of one of these variables.
    pub fn speaks_of(&self, variable: &str) -> bool {
        self.variables.contains(&variable)
    }
}

/// The same with the keys of its maps in order: CEL has none, and a report must not depend on chance.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(list) => list.into_iter().map(sorted).collect(),
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(entries.into_iter().collect())
        }
        other => other,
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let syntax = |why: String| {
            let why = why.lines().next().unwrap_or_default().trim_start_matches("ERROR: ").to_owned();
            ExpressionError::Syntax { text: text.to_owned(), why }
        };
        let program = Program::compile(text).map_err(|errors| syntax(errors.to_string()))?;
        let bound: BTreeSet<&str> = BOUND
            .iter()
            .flat_map(|bound| bound.captures_iter(text))
            .filter_map(|found| Some(found.get(1)?.as_str()))
            .collect();
        let unknown = |kind, name: &str, known: Vec<&str>| {
            let hint = did_you_mean(name, known.iter().copied())
                .or_else(|| Some(format!("there are {}", known.join(", "))));
            ExpressionError::Unknown { kind, name: name.to_owned(), hint }
        };
        let references = program.references();
        let mut variables = references.variables();
        variables.sort_unstable();
        for name in variables {
            if !VARIABLES.contains(&name) && !bound.contains(name) {
                return Err(unknown("the variable", name, VARIABLES.to_vec()));
            }
        }
        // Operators are functions, too: `_+_`, `!_`, `@not_strictly_false`.
        let mut functions = references.functions();
        functions.sort_unstable();
        for name in functions.into_iter().filter(|name| {
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with('_')
        }) {
            let known: Vec<&str> = FUNCTIONS.iter().copied().chain(BUILT_IN).collect();
            if !known.contains(&name) {
                return Err(unknown("the function", name, known));
            }
        }
        let variables = VARIABLES.into_iter().filter(|name| references.has_variable(name)).collect();
        drop(references);
        Ok(Self { text: text.to_owned(), program: Arc::new(program), variables })
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Expression {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Expression".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "an expression in CEL (https://cel.dev)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Observations;
    use serde_json::json;

    fn value(text: &str) -> Result<Value, String> {
        let seen = Observations {
            kubelet_version: "v1.32.13".to_owned(),
            cgroup: "v2".to_owned(),
            pods_final: vec![json!({
                "metadata": {"name": "hog"},
                "spec": {"containers": [{"name": "a"}]},
                "status": {"phase": "Failed", "reason": "Evicted",
                    "conditions": [{"type": "Ready", "status": "False"}],
                    "containerStatuses": [{"name": "a", "restartCount": 0, "state": {"terminated": {"exitCode": 137}}}]},
            })],
            events: vec![json!({"reason": "Evicted", "type": "Warning"}), json!({"reason": "Started"})],
            ..Observations::default()
        };
        let expression: Expression = text.parse().map_err(|error: ExpressionError| error.to_string())?;
        expression.value(&Scope::of(&seen)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_was_seen_can_be_asked_for() {
        let rows = [
            ("pods.hog.status.reason", json!("Evicted")),
            ("events.filter(e, e.reason == 'Evicted').size()", json!(1)),
            ("container(pods.hog, 'a').state.terminated.exitCode", json!(137)),
            ("condition(pods.hog, 'Ready').status", json!("False")),
            ("evicted(pods.hog) && !running(pods.hog)", json!(true)),
            ("quantity('1.5Gi') - quantity('512Mi')", json!(1073741824)),
            ("minor >= 32 && cgroup == 'v2'", json!(true)),
            ("has(pods.hog.status.message)", json!(false)),
        ];
        for (text, expected) in rows {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_pod_runs_when_its_containers_and_its_sidecars_do() {
        let runs = |running: &[&str]| {
            let status = |name: &str| {
                let state = if running.contains(&name) { "running" } else { "waiting" };
                json!({"name": name, "state": {state: {}}})
            };
            let pod = json!({
                "metadata": {"name": "p"},
                "spec": {
                    "initContainers": [{"name": "init"}, {"name": "sidecar", "restartPolicy": "Always"}],
                    "containers": [{"name": "main"}],
                },
                "status": {
                    "initContainerStatuses": [status("init"), status("sidecar")],
                    "containerStatuses": [status("main")],
                },
            });
            let seen = Observations { pods_final: vec![pod], ..Observations::default() };
            let expression: Expression = "running(pods.p)".parse().unwrap();
            expression.value(&Scope::of(&seen)).unwrap()
        };
        assert_eq!(runs(&["sidecar", "main"]), true);
        for wanting in [&["main"][..], &["sidecar"], &["init", "main"], &[]] {
            assert_eq!(runs(wanting), false, "{wanting:?}");
        }
    }

    #[test]
    fn a_mistake_is_told_when_the_case_is_read() {
        let mistakes = [
            "pods.hog.",
            "podz.hog",
            "events.all(e, f.reason == 'x')",
            "evictd(pods.hog)",
            "pods.dog.status",
        ];
        let told = mistakes.map(|text| format!("{text}\n  {}\n", value(text).unwrap_err()));
        insta::assert_snapshot!(told.join("\n"));
    }
}
