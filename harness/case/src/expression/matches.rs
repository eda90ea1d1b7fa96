//! The function `matches` of CEL, with limits. That of the library compiles its pattern at every
//! call, and neither the size of the pattern nor that of the texts is limited.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use cel::ExecutionError;
use cel::common::types::CelBool;
use cel::common::value::CowVal;
use regex::{Regex, RegexBuilder};

use super::call::{Arguments, FunctionResult, as_text, function_error};

/// Name of the function in a program. Expressions cannot call it, because it is not an identifier.
pub(super) const MATCHES: &str = "@matches";
/// Maximum total size of the texts that one evaluation searches, in bytes.
const MAX_SEARCHED: u64 = 64 << 20;
/// Maximum number of patterns that one evaluation compiles.
const MAX_COMPILED: u32 = 100;
/// Maximum size of a compiled pattern, in bytes.
const MAX_PATTERN_SIZE: usize = 1 << 20;
/// Maximum number of patterns that are kept.
const MAX_KEPT: usize = 256;

/// Cost of the calls of one evaluation.
#[derive(Clone, Copy, Default)]
pub(super) struct MatchCost {
    searched: u64,
    compiled: u32,
}

impl MatchCost {
    /// Describes the limit that the evaluation exceeded.
    pub(super) fn exceeded(self) -> Option<String> {
        if self.searched > MAX_SEARCHED {
            return Some(format!("`matches` searches more than {MAX_SEARCHED} bytes of text"));
        }
        (self.compiled > MAX_COMPILED)
            .then(|| format!("`matches` compiles more than {MAX_COMPILED} patterns"))
    }
}

thread_local! {
    /// Cost in the present evaluation. CEL passes no context to functions.
    static COST: Cell<MatchCost> = const { Cell::new(MatchCost { searched: 0, compiled: 0 }) };
    /// Compiled patterns, or why they are not valid, by their text.
    static PATTERNS: RefCell<HashMap<String, Result<Regex, String>>> = RefCell::default();
}

/// Runs an evaluation. Returns its result and the cost of its calls of `matches`.
pub(super) fn measure_matches<T>(evaluate: impl FnOnce() -> T) -> (T, MatchCost) {
    COST.set(MatchCost::default());
    let result = evaluate();
    (result, COST.get())
}

/// `text.matches(pattern)` and `matches(text, pattern)`.
pub(super) fn matches<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let text = as_text(arguments.first().map(|text| &**text)).unwrap_or_default();
    let pattern = as_text(arguments.get(1).map(|pattern| &**pattern)).unwrap_or_default();
    let mut cost = COST.get();
    cost.searched += text.len() as u64;
    COST.set(cost);
    if let Some(limit) = cost.exceeded() {
        return Err(function_error("matches", limit));
    }
    Ok(CowVal::owned(CelBool::from(is_match(text, pattern)?)))
}

fn is_match(text: &str, pattern: &str) -> Result<bool, ExecutionError> {
    PATTERNS.with_borrow_mut(|patterns| {
        if !patterns.contains_key(pattern) {
            let mut cost = COST.get();
            cost.compiled += 1;
            COST.set(cost);
            if let Some(limit) = cost.exceeded() {
                return Err(function_error("matches", limit));
            }
            if patterns.len() >= MAX_KEPT {
                patterns.clear();
            }
            let compiled = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_SIZE).build();
            let invalid = |error: regex::Error| format!("'{pattern}' not a valid regex:\n{error}");
            patterns.insert(pattern.to_owned(), compiled.map_err(invalid));
        }
        match patterns.get(pattern) {
            Some(Ok(regex)) => Ok(regex.is_match(text)),
            Some(Err(why)) => Err(function_error("matches", why.clone())),
            None => Ok(false),
        }
    })
}
