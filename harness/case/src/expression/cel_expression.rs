//! A compiled expression.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use cel::context::VariableResolver;
use cel::{Context, Program};
use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::functions::{ENVIRONMENT, FUNCTIONS};
use crate::did_you_mean;

/// An expression in CEL (<https://cel.dev>), such as `pods.hog.status.reason`.
#[derive(Clone)]
pub struct Expression {
    text: String,
    program: Arc<Program>,
    variables: Arc<[&'static str]>,
}

/// An expression that cannot be compiled, or that has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The text is not CEL.
    #[error("invalid CEL expression {text:?}: {why}")]
    Syntax {
        /// The text.
        text: String,
        /// The cause.
        why: String,
    },
    /// The expression refers to an unknown variable or function.
    #[error("unknown {kind} `{name}`{}", hint.as_deref().map(|hint| format!(": {hint}")).unwrap_or_default())]
    Unknown {
        /// `variable` or `function`.
        kind: &'static str,
        /// The name.
        name: String,
        /// A similar name, or the valid names.
        hint: Option<String>,
    },
    /// A value that the expression reads does not exist (yet), or has another type.
    #[error("{0}")]
    NoValue(String),
}

/// The variables. `cases/README.md` describes them.
pub const VARIABLES: [&str; 20] = [
    "answers",
    "cgroup",
    "configz",
    "counted",
    "created",
    "events",
    "history",
    "kubelet",
    "kubeletLog",
    "logs",
    "minor",
    "node",
    "nodeHistory",
    "objects",
    "podList",
    "pods",
    "samples",
    "stats",
    "summaryBefore",
    "t",
];

/// The functions and macros of CEL.
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

/// The variable that a macro such as `all(name, …)` binds.
static MACRO_VARIABLE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\.(?:all|exists|exists_one|map|filter)\(\s*([A-Za-z_]\w*)\s*,").ok());

impl Expression {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// [`ExpressionError::NoValue`] if a value that the expression reads does not exist.
    pub fn value(&self, variables: &dyn VariableResolver) -> Result<Value, ExpressionError> {
        let no_value = |why: String| ExpressionError::NoValue(why);
        let environment = ENVIRONMENT.clone().map_err(|error| no_value(error.to_string()))?;
        let mut context = Context::with_env(environment);
        context.set_variable_resolver(variables);
        let value = self.program.execute(&context).map_err(|error| no_value(error.to_string()))?;
        value.json().map(sort_keys).map_err(|error| no_value(error.to_string()))
    }

    /// Reports whether the value is `true`. An expression without a value does not hold.
    pub fn holds(&self, variables: &dyn VariableResolver) -> bool {
        self.value(variables) == Ok(Value::Bool(true))
    }

    /// Reports whether the expression reads the variable.
    pub fn references(&self, variable: &str) -> bool {
        self.variables.contains(&variable)
    }
}

/// Sorts the keys of all maps: CEL maps are unordered, and reports must be deterministic.
fn sort_keys(value: Value) -> Value {
    match value {
        Value::Array(list) => list.into_iter().map(sort_keys).collect(),
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(key, value)| (key, sort_keys(value))).collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(entries.into_iter().collect())
        }
        other => other,
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let program = Program::compile(text).map_err(|errors| {
            let why = errors.to_string();
            let why = why.lines().next().unwrap_or_default().trim_start_matches("ERROR: ").to_owned();
            ExpressionError::Syntax { text: text.to_owned(), why }
        })?;
        check_names(&program, text)?;
        let references = program.references();
        let variables = VARIABLES.into_iter().filter(|name| references.has_variable(name)).collect();
        drop(references);
        Ok(Self { text: text.to_owned(), program: Arc::new(program), variables })
    }
}

/// Checks that all variables and functions of a program exist.
fn check_names(program: &Program, text: &str) -> Result<(), ExpressionError> {
    let bound: BTreeSet<&str> = MACRO_VARIABLE
        .iter()
        .flat_map(|pattern| pattern.captures_iter(text))
        .filter_map(|found| Some(found.get(1)?.as_str()))
        .collect();
    let references = program.references();
    let mut variables = references.variables();
    variables.sort_unstable();
    if let Some(name) = variables.iter().find(|name| !VARIABLES.contains(name) && !bound.contains(*name)) {
        return Err(unknown("variable", name, &VARIABLES));
    }
    // Operators are functions with names such as `_+_`, `!_`, `@not_strictly_false`.
    let is_operator =
        |name: &&str| name.starts_with('_') || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let known: Vec<&str> = FUNCTIONS.iter().copied().chain(BUILT_IN).collect();
    let mut functions = references.functions();
    functions.sort_unstable();
    match functions.iter().find(|name| !is_operator(name) && !known.contains(name)) {
        Some(name) => Err(unknown("function", name, &known)),
        None => Ok(()),
    }
}

fn unknown(kind: &'static str, name: &str, known: &[&str]) -> ExpressionError {
    let hint =
        did_you_mean(name, known.iter().copied()).or_else(|| Some(format!("valid: {}", known.join(", "))));
    ExpressionError::Unknown { kind, name: name.to_owned(), hint }
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
        json_schema!({ "type": "string", "description": "CEL expression (https://cel.dev)" })
    }
}
