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
/// Maximum number of different patterns of one evaluation.
const MAX_PATTERNS: u32 = 100;
/// Maximum size of a compiled pattern, and of the states that a search adds to it, in bytes.
const MAX_PATTERN_SIZE: usize = 1 << 20;
/// Maximum number of patterns that are kept for the next evaluation.
const MAX_CACHED_PATTERNS: usize = 100;

/// Cost of the calls of one evaluation.
#[derive(Clone, Copy, Default)]
pub(super) struct MatchCost {
    searched: u64,
    patterns: u32,
}

impl MatchCost {
    /// Describes the limit that the evaluation exceeded, if any.
    pub(super) fn exceeded(self) -> Option<String> {
        if self.searched > MAX_SEARCHED {
            return Some(format!("`matches` searches more than {MAX_SEARCHED} bytes of text"));
        }
        (self.patterns > MAX_PATTERNS).then(|| format!("`matches` has more than {MAX_PATTERNS} patterns"))
    }
}

/// A compiled pattern, and when it was used.
struct CachedPattern {
    compiled: Result<Regex, regex::Error>,
    /// Number of the last evaluation that used the pattern.
    evaluation: u64,
}

thread_local! {
    /// Cost in the current evaluation. CEL passes no context to functions.
    static COST: Cell<MatchCost> = const { Cell::new(MatchCost { searched: 0, patterns: 0 }) };
    /// Number of the current evaluation.
    static EVALUATION: Cell<u64> = const { Cell::new(0) };
    /// Patterns of this evaluation and of earlier ones, by their text.
    static PATTERNS: RefCell<HashMap<String, CachedPattern>> = RefCell::default();
}

/// Runs an evaluation. Returns its result and the cost of its calls of `matches`.
pub(super) fn measure_matches<T>(evaluate: impl FnOnce() -> T) -> (T, MatchCost) {
    COST.set(MatchCost::default());
    EVALUATION.set(EVALUATION.get() + 1);
    // Not within an evaluation, which would count its patterns twice.
    PATTERNS.with_borrow_mut(|patterns| {
        if patterns.len() > MAX_CACHED_PATTERNS {
            patterns.clear();
        }
    });
    let result = evaluate();
    (result, COST.get())
}

/// `text.matches(pattern)` and `matches(text, pattern)`.
pub(super) fn matches<'b, 'v>(arguments: Arguments<'b, 'v>) -> FunctionResult<'b, 'v> {
    let text = as_text(arguments.first().map(|text| &**text)).unwrap_or_default();
    let pattern = as_text(arguments.get(1).map(|pattern| &**pattern)).unwrap_or_default();
    charge(MatchCost { searched: text.len() as u64, patterns: 0 })?;
    Ok(CowVal::owned(CelBool::from(is_match(text, pattern)?)))
}

/// Adds to the cost of the current evaluation.
///
/// # Errors
/// The evaluation exceeds a limit.
fn charge(cost: MatchCost) -> Result<(), ExecutionError> {
    let before = COST.get();
    let total =
        MatchCost { searched: before.searched + cost.searched, patterns: before.patterns + cost.patterns };
    COST.set(total);
    total.exceeded().map_or(Ok(()), |limit| Err(function_error("matches", limit)))
}

fn is_match(text: &str, pattern: &str) -> Result<bool, ExecutionError> {
    PATTERNS.with_borrow_mut(|patterns| {
        let evaluation = EVALUATION.get();
        if patterns.get(pattern).is_none_or(|cached| cached.evaluation != evaluation) {
            // A pattern counts also if an earlier evaluation compiled it: the cost of an evaluation
            // does not depend on others.
            charge(MatchCost { searched: 0, patterns: 1 })?;
        }
        let cached = patterns
            .entry(pattern.to_owned())
            .or_insert_with(|| CachedPattern { compiled: compile(pattern), evaluation });
        cached.evaluation = evaluation;
        match &cached.compiled {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(error) => {
                let message = format!("'{pattern}' not a valid regex:\n{error}");
                Err(function_error("matches", message))
            }
        }
    })
}

fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(MAX_PATTERN_SIZE).dfa_size_limit(MAX_PATTERN_SIZE).build()
}
