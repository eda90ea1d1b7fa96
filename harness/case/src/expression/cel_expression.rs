//! An expression: its text, compiled on demand.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use cel::context::VariableResolver;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::error::ExpressionError;
use super::free_variables::free_variables;
use super::functions::function_names;
use super::program::{KeysRead, Program};
use super::shape::ObjectTypes;
use super::syntax_error;
use super::unknown_fields::UnknownField;
use super::variable::Variable;
use crate::did_you_mean;

/// An expression in CEL (<https://cel.dev>), such as `pods.hog.status.reason`.
///
/// It is compiled when it is first needed. Checking a case compiles all expressions; listing cases
/// compiles none.
#[derive(Clone)]
pub struct Expression {
    text: String,
    compiled: OnceLock<Result<Compiled, ExpressionError>>,
}

/// The program of an expression, and the variables that it reads.
#[derive(Clone)]
struct Compiled {
    program: Program,
    variables: Vec<Variable>,
}

impl Expression {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Compiles the expression, unless it is already compiled.
    ///
    /// # Errors
    /// [`ExpressionError::Syntax`], [`ExpressionError::Unknown`] or [`ExpressionError::TooLong`].
    pub fn check(&self) -> Result<(), ExpressionError> {
        self.compiled().map(drop)
    }

    fn compiled(&self) -> Result<&Compiled, ExpressionError> {
        self.compiled.get_or_init(|| compile(&self.text)).as_ref().map_err(Clone::clone)
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), and [`ExpressionError::Absent`],
    /// [`ExpressionError::NoValue`] or [`ExpressionError::TooCostly`].
    pub fn value(&self, variables: &dyn VariableResolver) -> Result<Value, ExpressionError> {
        self.compiled()?.program.value(variables).map(sort_keys)
    }

    /// Returns whether the value is `true`. An expression without a value does not hold.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), and [`ExpressionError::TooCostly`].
    pub fn holds(&self, variables: &dyn VariableResolver) -> Result<bool, ExpressionError> {
        match self.value(variables) {
            Err(ExpressionError::Absent(_) | ExpressionError::NoValue(_)) => Ok(false),
            value => value.map(|value| value == Value::Bool(true)),
        }
    }

    /// Returns whether the expression reads the variable; false if it cannot be compiled.
    pub fn references(&self, variable: Variable) -> bool {
        self.compiled().is_ok_and(|compiled| compiled.variables.contains(&variable))
    }

    /// Returns the fields that the expression reads and that cannot exist, such as `spec.contaners`
    /// of a pod. `objects` are the types of the objects of the case.
    pub(crate) fn unknown_fields(&self, objects: &ObjectTypes<'_>) -> Vec<UnknownField> {
        self.compiled().map(|compiled| compiled.program.unknown_fields(objects)).unwrap_or_default()
    }

    /// Returns whether the value cannot be `true` or `false`, such as that of `1 + 1`; false if the
    /// expression cannot be compiled.
    pub(crate) fn is_never_boolean(&self) -> bool {
        self.compiled().is_ok_and(|compiled| compiled.program.is_never_boolean())
    }

    /// Returns the depth of the nested macros; 0 if the expression cannot be compiled.
    pub(crate) fn macro_depth(&self) -> usize {
        self.compiled().map_or(0, |compiled| compiled.program.macro_depth())
    }

    /// Returns the keys of a map variable, such as `objects`, that the expression reads; none if it
    /// cannot be compiled.
    pub fn keys_read(&self, variable: Variable) -> KeysRead {
        self.keys_read_at(&[variable.as_str()])
    }

    /// Returns the keys that the expression reads of a map in a map variable, such as
    /// `logs.web`.
    pub fn keys_read_of(&self, variable: Variable, key: &str) -> KeysRead {
        match self.keys_read(variable) {
            KeysRead::All => KeysRead::All,
            KeysRead::Keys(_) => self.keys_read_at(&[variable.as_str(), key]),
        }
    }

    fn keys_read_at(&self, path: &[&str]) -> KeysRead {
        let keys = self.compiled().map(|compiled| compiled.program.keys_read(path));
        keys.unwrap_or_else(|_| KeysRead::Keys(BTreeSet::new()))
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
        let expression = Self { text: text.to_owned(), compiled: OnceLock::new() };
        expression.check().map(|()| expression)
    }
}

/// Maximum number of bytes of an expression. The compiler and the interpreter use stack for each
/// operator.
const MAX_LENGTH: usize = 1024;

fn compile(text: &str) -> Result<Compiled, ExpressionError> {
    if text.len() > MAX_LENGTH {
        return Err(ExpressionError::TooLong { length: text.len(), max: MAX_LENGTH });
    }
    let program = cel::Program::compile(text).map_err(|errors| ExpressionError::Syntax {
        text: text.to_owned(),
        why: syntax_error::describe(text, &errors),
    })?;
    check_names(&program)?;
    let references = program.references();
    let variables =
        Variable::ALL.into_iter().filter(|variable| references.has_variable(variable.as_str())).collect();
    drop(references);
    Ok(Compiled { program: Program::new(program.expression()), variables })
}

/// Checks that all variables and functions of a program exist.
fn check_names(program: &cel::Program) -> Result<(), ExpressionError> {
    let variables = free_variables(program.expression());
    if let Some(name) = variables.iter().find(|name| Variable::from_name(name).is_none()) {
        return Err(unknown("variable", name, &Variable::ALL.map(Variable::as_str)));
    }
    let references = program.references();
    // Operators are functions with names such as `_+_`, `!_`, `@not_strictly_false`.
    let is_operator =
        |name: &&str| name.starts_with('_') || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let known: Vec<&str> = function_names().collect();
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
        Ok(Self { text: String::deserialize(deserializer)?, compiled: OnceLock::new() })
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

#[cfg(test)]
mod tests {
    use super::*;
    use cel::common::types::{CelInt, CelList, CelMap, CelMapKey, CelNull, CelString};
    use cel::common::value::{CowVal, Val};
    use serde_json::json;
    use std::collections::HashMap;

    /// Variables `pods` and `samples`.
    struct Variables {
        pods: Box<dyn Val>,
        samples: Box<dyn Val>,
    }

    impl Variables {
        fn new(samples: usize) -> Self {
            let pods = json!({"web": {"status": {"conditions": [{"type": "Ready"}], "message": null}}});
            Self { pods: val(&pods), samples: val(&Value::from(vec![1; samples])) }
        }
    }

    impl VariableResolver for Variables {
        fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
            match name {
                "pods" => Some(CowVal::Borrowed(&*self.pods)),
                "samples" => Some(CowVal::Borrowed(&*self.samples)),
                _ => None,
            }
        }
    }

    fn val(json: &Value) -> Box<dyn Val> {
        match json {
            Value::String(text) => Box::new(CelString::from(text.clone())),
            Value::Number(number) => Box::new(CelInt::from(number.as_i64().unwrap())),
            Value::Array(list) => Box::new(CelList::from(list.iter().map(val).collect::<Vec<_>>())),
            Value::Object(map) => {
                let entries = map.iter().map(|(key, value)| (CelMapKey::from(key.clone()), val(value)));
                Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
            }
            _ => Box::new(CelNull),
        }
    }

    fn value(text: &str, samples: usize) -> Result<Value, ExpressionError> {
        text.parse::<Expression>()?.value(&Variables::new(samples))
    }

    #[test]
    fn only_the_last_access_in_an_existing_parent_is_absent() {
        let absent = [
            "pods.web.status.reason",
            "pods['web']['metadata']",
            "pods.dog",
            "samples[3]",
            "pods.web.status.conditions[1]",
            "condition(pods.web, 'DisruptionTarget')",
            "container(pods.web, 'el1')",
        ];
        for text in absent {
            assert!(
                matches!(value(text, 3), Err(ExpressionError::Absent(_))),
                "{text}: {:?}",
                value(text, 3)
            );
        }
        let no_value = [
            "pods.dog.status.reason",
            "pods.web.statuz.reason",
            "pods.web.status.message.text",
            "pods.web.status.conditions[1].status",
            "condition(pods.web, 'DisruptionTarget').reason",
            "condition(pods, 'DisruptionTarget')",
            "condition(pods.dog, 'DisruptionTarget')",
            "container(pods.web.status, 'el1')",
            "samples.filter(s, s > 5)[0] + pods.dog",
            "!pods.web.status.ready",
            "node.status",
            "logTime('')",
            "logTime('Flag --feature-gates has been deprecated')",
            "logTime('I1127 24:00:00.000000 1 x.go:1] text')",
        ];
        for text in no_value {
            assert!(
                matches!(value(text, 3), Err(ExpressionError::NoValue(_))),
                "{text}: {:?}",
                value(text, 3)
            );
        }
    }

    #[test]
    fn the_time_of_a_log_line_is_in_seconds() {
        let line = "I1127 19:34:38.250000    1234 eviction_manager.go:412] \"Eviction manager: pods ranked\"";
        for line in [line.to_owned(), format!("??? {line}")] {
            assert_eq!(value(&format!("logTime('{line}')"), 0), Ok(json!(70478.25)), "{line}");
        }
    }

    #[test]
    fn nested_macros_over_long_lists_are_too_costly() {
        let nested = |inner: &str| format!("samples.all(a, samples.all(b, samples.all(c, {inner})))");
        let rows = [
            nested("true"),
            nested("pods.dog == 1"),
            format!("{} || true", nested("true")),
            "samples.exists(a, samples.exists(b, samples.exists(c, false)))".to_owned(),
            "samples.exists_one(a, samples.exists_one(b, samples.exists_one(c, false)))".to_owned(),
            "samples.map(a, samples.map(b, samples.map(c, 1)))".to_owned(),
            "samples.filter(a, samples.filter(b, samples.filter(c, true) != []) != [])".to_owned(),
            "samples.map(a, true, samples.map(b, true, samples.map(c, true, 1)))".to_owned(),
        ];
        for text in rows {
            let error = value(&text, 1000).unwrap_err();
            assert!(matches!(error, ExpressionError::TooCostly(_)), "{text}: {error}");
            assert!(error.to_string().contains("too costly"), "{error}");
            let condition = text.parse::<Expression>().unwrap().holds(&Variables::new(300));
            assert_eq!(condition, Err(error), "{text}");
        }
    }

    #[test]
    fn texts_and_lists_do_not_grow_without_bound() {
        let doubled = |first: &str, times: usize| {
            let names: Vec<char> = ('a'..='z').collect();
            names[..times].iter().rev().fold("true".to_owned(), |inner, name| {
                let before =
                    if *name == 'a' { first.to_owned() } else { char::from(*name as u8 - 1).to_string() };
                format!("[{before} + {before}].all({name}, {inner})")
            })
        };
        let rows = [
            doubled("'0123456789'", 25),
            doubled("samples", 25),
            format!("{} || true", doubled("samples", 25)),
            format!("samples.map(a, samples.map(b, '{}' + 'a'))", "x".repeat(900)),
        ];
        for text in rows {
            let error = value(&text, 300).unwrap_err();
            assert!(matches!(error, ExpressionError::TooCostly(_)), "{text}: {error}");
        }
        assert_eq!(value(&doubled("samples", 10), 300), Ok(json!(true)));
    }

    #[test]
    fn an_evaluation_searches_and_compiles_only_so_much() {
        let all = |inner: &str| format!("samples.all(a, samples.all(b, {inner} || true))");
        let rows = [
            all(&format!("'{}'.matches('y')", "x".repeat(900))),
            all(&format!("matches('{}', 'y')", "x".repeat(900))),
            "[1, 2, 3, 4, 5, 6, 7, 8, 9, 0].map(a, [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 11].map(b, \
             'x'.matches(string(a) + '-' + string(b))))"
                .to_owned(),
        ];
        for text in rows {
            let error = value(&text, 300).unwrap_err();
            assert!(matches!(error, ExpressionError::TooCostly(_)), "{text}: {error}");
        }
        assert_eq!(value(&all("'x'.matches('y')"), 300), Ok(json!(true)), "the pattern is compiled once");
        // Patterns that earlier evaluations compiled count: a case has the same verdict every time.
        let patterns = |first: usize, count: usize| {
            format!("[{}].all(a, 'x'.matches('p' + string(a)) || true)", numbers(first, count))
        };
        for text in [patterns(0, 100), patterns(1000, 100), patterns(2000, 90)] {
            assert_eq!(value(&text, 1), Ok(json!(true)), "{text}");
            assert_eq!(value(&text, 1), Ok(json!(true)), "{text}");
        }
        for _ in 0..3 {
            assert!(matches!(value(&patterns(0, 101), 1), Err(ExpressionError::TooCostly(_))));
        }
        assert_eq!(value("'web-7'.matches('^[a-z]+-[0-9]$') && !matches('web', 'x')", 1), Ok(json!(true)));
        for text in ["'x'.matches('(')", "'x'.matches('\\\\w{2000}')"] {
            let error = value(text, 1).unwrap_err();
            assert!(matches!(&error, ExpressionError::NoValue(why) if why.contains("regex")), "{error}");
        }
    }

    fn numbers(first: usize, count: usize) -> String {
        (first..first + count).map(|number| number.to_string()).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn a_variable_of_a_macro_is_unknown_outside_of_it() {
        for text in [
            "samples.all(s, s.t > 1) && s.t < 9",
            "'samples.all(s, ' == s",
            "samples.all(a, a.t == 1) || samples.exists(b, a.t == 1)",
            "samples.map(t, {t: s})[0] == t",
        ] {
            let error = text.parse::<Expression>().unwrap_err();
            assert!(matches!(&error, ExpressionError::Unknown { kind: "variable", .. }), "{text}: {error}");
        }
    }

    /// The longest expressions of each form: they have a value or an error, without a panic.
    #[test]
    fn deep_expressions_do_not_overflow_the_stack() {
        for text in longest_expressions() {
            match text.parse::<Expression>() {
                Ok(deep) => {
                    assert!(deep.value(&Variables::new(1)).is_ok() || text.starts_with("pods"), "{text}")
                }
                Err(error) => assert!(matches!(error, ExpressionError::Syntax { .. }), "{text}: {error}"),
            }
        }
    }

    #[test]
    fn long_expressions_are_errors() {
        for text in longest_expressions() {
            let error = (text + &" ".repeat(MAX_LENGTH)).parse::<Expression>().unwrap_err();
            assert!(matches!(error, ExpressionError::TooLong { .. }), "{error}");
        }
    }

    fn longest_expressions() -> [String; 8] {
        let longest = |part: &str, end: &str| part.repeat((MAX_LENGTH - end.len()) / part.len()) + end;
        [
            longest("1+", "1"),
            longest("!", "true"),
            longest("pods.", "pods"),
            longest("[", "1"),
            format!("{}1{}", "(".repeat(MAX_LENGTH / 2 - 1), ")".repeat(MAX_LENGTH / 2 - 1)),
            format!("{}1{}", "[".repeat(MAX_LENGTH / 2 - 1), "]".repeat(MAX_LENGTH / 2 - 1)),
            longest("true?1:", "1"),
            longest("{1:", "1"),
        ]
    }

    #[test]
    fn counted_macros_have_their_value() {
        let rows = [
            ("samples.all(s, s == 1) && !samples.all(s, s == 2)", json!(true)),
            ("samples.exists(s, s == 1) && !samples.exists(s, s == 2)", json!(true)),
            ("[samples.exists_one(s, s == 1), [1, 2].exists_one(s, s == 1)]", json!([false, true])),
            ("[1, 2, 3].map(n, [n, n + 1])", json!([[1, 2], [2, 3], [3, 4]])),
            ("[1, 2, 3].map(n, n > 1, n * 2)", json!([4, 6])),
            ("[1, 2, 3].filter(n, [1, 2].exists(m, m == n))", json!([1, 2])),
            ("[].map(n, n)", json!([])),
        ];
        for (text, expected) in rows {
            assert_eq!(value(text, 1000), Ok(expected), "{text}");
        }
    }

    #[test]
    fn keys_that_an_expression_reads() {
        let keys = |text: &str| text.parse::<Expression>().unwrap().keys_read(Variable::Objects);
        let named = |names: &[&str]| KeysRead::Keys(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(
            keys("objects.web.status.replicas + objects['db'].status.replicas"),
            named(&["web", "db"])
        );
        assert_eq!(keys("samples.all(s, has(objects.web.status))"), named(&["web"]));
        assert_eq!(keys("pods.web"), named(&[]));
        assert_eq!(keys("objects.exists(name, name == 'web')"), KeysRead::All);
    }

    #[test]
    fn keys_of_a_map_in_a_variable_that_an_expression_reads() {
        let keys = |text: &str| text.parse::<Expression>().unwrap().keys_read_of(Variable::Logs, "web");
        let named = |names: &[&str]| KeysRead::Keys(names.iter().map(|name| (*name).to_owned()).collect());
        let rows = [
            ("logs.web.el1 + logs['web']['el-debug']", named(&["el1", "el-debug"])),
            ("has(logs.web.el1)", named(&["el1"])),
            ("logs.db.el1 == ''", named(&[])),
            ("pods.web.el1 == ''", named(&[])),
            ("logs.web.size()", KeysRead::All),
            ("logs.web.el1 == '' && logs.web.all(name, name != 'el2')", KeysRead::All),
            ("logs.all(pod, logs[pod].el1 == '')", KeysRead::All),
        ];
        for (text, expected) in rows {
            assert_eq!(keys(text), expected, "{text}");
        }
    }
}
