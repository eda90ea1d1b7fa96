//! The program of an expression. Its evaluation counts the iterations of macros, and distinguishes
//! an absent value from other errors.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use cel::common::types::CelBool;
use cel::common::value::CowVal;
use cel::context::VariableResolver;
use cel::{Context, ExecutionError, IdedExpr, Value as CelValue};
use serde_json::Value;

use super::concatenation::{CONCAT_HOOK, MAX_CONCAT_SIZE, measure_concatenation};
use super::error::ExpressionError;
use super::functions::ENVIRONMENT;
use super::macro_depth::macro_depth;
use super::matches::{MATCHES, measure_matches};
use super::parts::parts;
use super::result_type::is_never_boolean;
use super::shape::{ITERATION, ObjectTypes};
use super::unknown_fields::{UnknownField, unknown_fields};

/// Maximum number of iterations of all macros in one evaluation. Each copies one item, such as a
/// pod, which takes up to 50 µs.
pub(crate) const MAX_ITERATIONS: u64 = 100_000;

/// A compiled expression whose iterations are counted.
#[derive(Clone, Debug)]
pub(super) struct Program(Arc<IdedExpr>);

/// Keys of a map variable that an expression reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeysRead {
    /// The keys, such as `web` in `objects.web.status`.
    Keys(BTreeSet<String>),
    /// The expression may read any key.
    All,
}

impl KeysRead {
    /// Returns whether the key is read.
    pub fn contains(&self, key: &str) -> bool {
        match self {
            Self::Keys(keys) => keys.contains(key),
            Self::All => true,
        }
    }

    /// Returns the keys of both.
    pub(crate) fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Keys(mut keys), Self::Keys(others)) => {
                keys.extend(others);
                Self::Keys(keys)
            }
            _ => Self::All,
        }
    }
}

/// The variables of an expression, and the number of iterations so far.
struct Meter<'a> {
    variables: &'a dyn VariableResolver,
    iterations: AtomicU64,
}

impl Meter<'_> {
    fn is_exceeded(&self) -> bool {
        self.iterations.load(Ordering::Relaxed) > MAX_ITERATIONS
    }
}

impl VariableResolver for Meter<'_> {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        if name != ITERATION {
            return self.variables.resolve(name);
        }
        // An undeclared variable ends the macro, and each macro around it with its next iteration.
        let before = self.iterations.fetch_add(1, Ordering::Relaxed);
        (before < MAX_ITERATIONS).then(|| CowVal::owned(CelBool::from(true)))
    }
}

impl Program {
    pub(super) fn new(expression: &IdedExpr) -> Self {
        let mut expression = expression.clone();
        add_concat_hooks(&mut expression);
        count_iterations(&mut expression);
        replace_matches(&mut expression);
        Self(Arc::new(expression))
    }

    /// Evaluates the program.
    pub(super) fn value(&self, variables: &dyn VariableResolver) -> Result<Value, ExpressionError> {
        let no_value = |why: String| ExpressionError::NoValue(why);
        let environment = ENVIRONMENT.clone().map_err(|error| no_value(error.to_string()))?;
        let meter = Meter { variables, iterations: AtomicU64::new(0) };
        let mut context = Context::with_env(environment);
        context.set_variable_resolver(&meter);
        let evaluate = || CelValue::resolve(&self.0, &context);
        let ((result, size), cost) = measure_matches(|| measure_concatenation(evaluate));
        // An operator such as `||` may have replaced the error by a value.
        if meter.is_exceeded() {
            return Err(ExpressionError::TooCostly(format!(
                "its macros iterate more than {MAX_ITERATIONS} times"
            )));
        }
        if size > MAX_CONCAT_SIZE {
            return Err(ExpressionError::TooCostly(format!(
                "`+` makes more than {MAX_CONCAT_SIZE} bytes of text or items of lists"
            )));
        }
        if let Some(limit) = cost.exceeded() {
            return Err(ExpressionError::TooCostly(limit));
        }
        match result {
            Ok(value) => value.json().map_err(|error| no_value(error.to_string())),
            Err(error) if is_absent(&self.0.expr, &error, &context) => {
                Err(ExpressionError::Absent(error.to_string()))
            }
            Err(error) => Err(no_value(error.to_string())),
        }
    }

    /// Returns the fields that the program reads and that cannot exist.
    pub(super) fn unknown_fields(&self, objects: &ObjectTypes<'_>) -> Vec<UnknownField> {
        unknown_fields(&self.0, objects)
    }

    /// Returns whether the value of the program cannot be `true` or `false`.
    pub(super) fn is_never_boolean(&self) -> bool {
        is_never_boolean(&self.0)
    }

    /// Returns the depth of the nested macros of the program.
    pub(super) fn macro_depth(&self) -> usize {
        macro_depth(&self.0)
    }

    /// Returns the keys that the program reads of the map at a path: a variable and constant keys.
    pub(super) fn keys_read(&self, path: &[&str]) -> KeysRead {
        let mut keys = BTreeSet::new();
        match add_keys_read(&self.0, path, &mut keys) {
            Ok(()) => KeysRead::Keys(keys),
            Err(AnyKey) => KeysRead::All,
        }
    }
}

/// Returns whether an error means that the last access of an expression found nothing: a key that
/// its map does not have, an index beyond its list, a container or condition that its object does
/// not have. An error within the operands is not such an error.
fn is_absent(expression: &Expr, error: &ExecutionError, context: &Context<'_, '_>) -> bool {
    let is_missing = matches!(error, ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_));
    let has_value = |operand: &IdedExpr| CelValue::resolve_val(operand, context).is_ok();
    is_missing
        && match expression {
            Expr::Select(select) => !select.test && has_value(&select.operand),
            Expr::Call(call) if ["container", "condition", operators::INDEX].contains(&&*call.func_name) => {
                call.target.iter().all(|target| has_value(target)) && call.args.iter().all(has_value)
            }
            _ => false,
        }
}

/// Makes each operator `+` of an expression pass its result through [`CONCAT_HOOK`], except those
/// by which macros append an item to their result.
fn add_concat_hooks(expression: &mut IdedExpr) {
    if let Expr::Comprehension(comprehension) = &mut expression.expr {
        let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } =
            &mut **comprehension;
        [iter_range, accu_init, loop_cond, result].into_iter().for_each(add_concat_hooks);
        return add_concat_hooks_to_step(loop_step);
    }
    for_each_part(&mut expression.expr, &mut add_concat_hooks);
    if is_addition(&expression.expr) {
        let id = expression.id;
        let args = vec![IdedExpr { id, expr: std::mem::take(&mut expression.expr) }];
        expression.expr = Expr::Call(CallExpr { func_name: CONCAT_HOOK.to_owned(), target: None, args });
    }
}

/// Adds the hooks to the parts of the step of a macro: the step itself is `result + [item]`, or
/// that with a condition.
fn add_concat_hooks_to_step(step: &mut IdedExpr) {
    match &mut step.expr {
        Expr::Call(call) if call.func_name == operators::CONDITIONAL => {
            if let [condition, step, otherwise] = &mut call.args[..] {
                add_concat_hooks(condition);
                add_concat_hooks_to_step(step);
                add_concat_hooks(otherwise);
            }
        }
        expr if is_addition(expr) => for_each_part(expr, &mut add_concat_hooks),
        _ => add_concat_hooks(step),
    }
}

fn is_addition(expression: &Expr) -> bool {
    matches!(expression, Expr::Call(call) if call.func_name == operators::ADD && call.target.is_none())
}

/// Makes each macro of an expression read [`ITERATION`] in every iteration.
fn count_iterations(expression: &mut IdedExpr) {
    for_each_part(&mut expression.expr, &mut count_iterations);
    let Expr::Comprehension(comprehension) = &mut expression.expr else { return };
    let ComprehensionExpr { loop_cond, loop_step, .. } = &mut **comprehension;
    // `map` and `filter` append to a list. The interpreter recognizes them by their literal
    // condition and by the form of their step, which therefore stay as they are.
    let counted = match (&loop_cond.expr, &mut loop_step.expr) {
        (Expr::Literal(_), Expr::Call(step)) if step.func_name == operators::CONDITIONAL => {
            step.args.first_mut()
        }
        (Expr::Literal(_), Expr::Call(step)) => match step.args.last_mut().map(|list| &mut list.expr) {
            Some(Expr::List(list)) => list.elements.first_mut(),
            _ => None,
        },
        _ => None,
    };
    let counted = counted.unwrap_or(loop_cond);
    let id = counted.id;
    let with = |expr: Expr| IdedExpr { id, expr };
    let otherwise = with(Expr::Literal(LiteralValue::Boolean(false.into())));
    let iteration = with(Expr::Ident(ITERATION.to_owned()));
    let args = vec![iteration, std::mem::take(counted), otherwise];
    counted.expr = Expr::Call(CallExpr { func_name: operators::CONDITIONAL.to_owned(), target: None, args });
}

/// Replaces the function `matches` in each call by [`MATCHES`], which has limits.
fn replace_matches(expression: &mut IdedExpr) {
    for_each_part(&mut expression.expr, &mut replace_matches);
    if let Expr::Call(call) = &mut expression.expr
        && call.func_name == "matches"
    {
        MATCHES.clone_into(&mut call.func_name);
    }
}

/// Calls a function with each direct part of an expression.
fn for_each_part(expression: &mut Expr, function: &mut dyn FnMut(&mut IdedExpr)) {
    match expression {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => {
            call.target.iter_mut().map(|target| &mut **target).chain(&mut call.args).for_each(function);
        }
        Expr::Select(select) => function(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(function),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| for_each_value(&mut entry.expr, function)),
        Expr::Struct(fields) => {
            fields.entries.iter_mut().for_each(|entry| for_each_value(&mut entry.expr, function));
        }
        Expr::Comprehension(comprehension) => {
            let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } =
                &mut **comprehension;
            [iter_range, accu_init, loop_cond, loop_step, result].into_iter().for_each(function);
        }
    }
}

fn for_each_value(entry: &mut EntryExpr, function: &mut dyn FnMut(&mut IdedExpr)) {
    match entry {
        EntryExpr::StructField(field) => function(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            function(&mut entry.key);
            function(&mut entry.value);
        }
    }
}

/// The expression reads a variable other than by a constant key.
struct AnyKey;

/// Adds the keys of the map at a path, a variable and constant keys, that an expression reads.
fn add_keys_read(expression: &IdedExpr, path: &[&str], keys: &mut BTreeSet<String>) -> Result<(), AnyKey> {
    match constant_access(&expression.expr) {
        Some((map, key)) if is_at(map, path) => {
            keys.insert(key.to_owned());
            return Ok(());
        }
        _ if is_at(&expression.expr, path) => return Err(AnyKey),
        _ => {}
    }
    parts(&expression.expr).into_iter().try_for_each(|part| add_keys_read(part, path, keys))
}

/// Returns whether an expression is a variable with constant keys.
fn is_at(expression: &Expr, path: &[&str]) -> bool {
    match (path, expression, constant_access(expression)) {
        ([variable], Expr::Ident(name), _) => name == variable,
        ([map_path @ .., last], _, Some((map, key))) => key == *last && is_at(map, map_path),
        _ => false,
    }
}

/// Returns the map and the key of an access by a constant key: `map.key` or `map['key']`.
fn constant_access(expression: &Expr) -> Option<(&Expr, &str)> {
    match expression {
        Expr::Select(select) => Some((&select.operand.expr, &select.field)),
        Expr::Call(CallExpr { func_name, args, .. }) if func_name == operators::INDEX => match &args[..] {
            [map, IdedExpr { expr: Expr::Literal(LiteralValue::String(key)), .. }] => {
                Some((&map.expr, key.inner()))
            }
            _ => None,
        },
        _ => None,
    }
}
