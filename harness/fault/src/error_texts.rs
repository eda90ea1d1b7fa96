//! Texts of all errors of this crate, in one snapshot.

#[path = "../../error_row.rs"]
mod error_row;

use error_row::row;

use crate::{DurationError, ScriptError, Span, SpanError, parse};

#[test]
fn texts() {
    let rows = [
        row::<ScriptError>(parse("event-lst: {}").unwrap_err()),
        row::<ScriptError>(parse("faults.yaml").unwrap_err()),
        row::<SpanError>("soon".parse::<Span>().unwrap_err()),
        row(DurationError::NotADuration),
        row(DurationError::NoUnit { number: 5 }),
        row(DurationError::UnknownUnit { number: 5, unit: "x".to_owned() }),
        row(DurationError::Character(';')),
        row(DurationError::OutOfRange),
    ];
    insta::assert_snapshot!(rows.concat());
}
