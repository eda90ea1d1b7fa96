//! Errors of expressions.

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
    /// The last access of the expression found nothing, in a parent that exists: a key, an index, a
    /// container or a condition. Nothing else counts as an absent value.
    #[error("{0}")]
    Absent(String),
    /// A value that the expression reads does not exist (yet), or has another type.
    #[error("{0}")]
    NoValue(String),
    /// The text is longer than any expression needs to be.
    #[error("the expression is too long: it has {length} bytes, and {max} are allowed")]
    TooLong {
        /// Bytes of the text.
        length: usize,
        /// The maximum.
        max: usize,
    },
    /// The evaluation exceeds a limit, which the text states.
    #[error("the expression is too costly: {0}")]
    TooCostly(String),
}
