//! Errors of selectors, with the texts of a real API server.

/// A label or field selector is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectorError {
    /// A part of a field selector does not have an operator.
    #[error("invalid selector: '{selector}'; can't understand '{part}'")]
    MissingOperator {
        /// The whole selector.
        selector: String,
        /// Its part.
        part: String,
    },
    /// A field of a pod, node, namespace or event cannot be selected.
    #[error("field label not supported: {0}")]
    UnsupportedField(String),
    /// A field of an object of another kind cannot be selected.
    #[error("{0:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")]
    UnknownField(String),
    /// The operator before a list of label values is neither `in` nor `notin`.
    #[error("unable to parse requirement: found {0:?}, expected: in, notin")]
    LabelOperator(String),
    /// A list of label values contains a parenthesis.
    #[error("unable to parse requirement: found '(' twice in {0:?}")]
    NestedParenthesis(String),
    /// A list of label values does not end.
    #[error("unable to parse requirement: expected ')' in {0:?}")]
    UnclosedParenthesis(String),
    /// The key of a label is invalid.
    #[error("unable to parse requirement: <nil>: Invalid value: {key:?}: {problem}")]
    LabelKey {
        /// The key.
        key: String,
        /// The first rule that it breaks.
        problem: String,
    },
    /// The value of a label is invalid.
    #[error("unable to parse requirement: values[0][]: Invalid value: {value:?}: {problem}")]
    LabelValue {
        /// The value.
        value: String,
        /// The first rule that it breaks.
        problem: String,
    },
    /// The operand of `<` or `>` is not an integer.
    #[error(
        "unable to parse requirement: values[0]: Invalid value: {0:?}: for 'Gt', 'Lt' operators, the value must be an integer"
    )]
    LabelNumber(String),
}

#[cfg(test)]
mod error_texts {
    use super::*;
    use crate::error_texts::row;

    #[test]
    fn texts() {
        let text = |text: &str| text.to_owned();
        let rows = [
            row(SelectorError::MissingOperator { selector: text("a=b,c"), part: text("c") }),
            row(SelectorError::UnsupportedField(text("spec.foo"))),
            row(SelectorError::UnknownField(text("spec.foo"))),
            row(SelectorError::LabelOperator(text("x on (a)"))),
            row(SelectorError::NestedParenthesis(text("x in ((a)"))),
            row(SelectorError::UnclosedParenthesis(text("x in (a"))),
            row(SelectorError::LabelKey { key: text("a b"), problem: text("invalid") }),
            row(SelectorError::LabelValue { value: text("a b"), problem: text("invalid") }),
            row(SelectorError::LabelNumber(text("x"))),
        ];
        insta::assert_snapshot!(rows.concat());
    }
}
