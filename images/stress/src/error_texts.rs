//! Texts of all errors of this crate, in one snapshot.

#[path = "../../../harness/error_row.rs"]
mod error_row;

use error_row::row;
use evictlab_rules::quantity::QuantityError;

use crate::ArgumentError;
use crate::agnhost::AgnhostError;

fn text(text: &str) -> String {
    text.to_owned()
}

fn agnhost() -> AgnhostError {
    AgnhostError { text: text("Error: unknown flag: --mem\n"), code: 1 }
}

#[test]
fn texts() {
    let flag = || text("--hold");
    let rows = [
        row(ArgumentError::MissingCommand),
        row(ArgumentError::UnknownCommand(text("memry"))),
        row(ArgumentError::UnknownFlag { command: "memory", flag: text("--files") }),
        row(ArgumentError::MissingValue(text("--total"))),
        row(ArgumentError::UnexpectedValue(text("--touch"))),
        row(ArgumentError::Quantity { flag: text("--total"), source: QuantityError::Empty }),
        row(ArgumentError::TooSmall { flag: text("--step"), text: text("1"), minimum: 4096 }),
        row(ArgumentError::Duration { flag: flag(), text: text("soon") }),
        row(ArgumentError::ExitCode { flag: text("--exit-code"), text: text("300") }),
        row(ArgumentError::Word { flag: text("--then"), text: text("stop"), words: "exit or free" }),
        row(ArgumentError::MissingAmount { command: "memory", total: "200Mi", step: "10Mi" }),
        row(ArgumentError::ReleaseLogs),
        row(ArgumentError::RequiresHold("then")),
        row(ArgumentError::Agnhost(agnhost())),
        row(agnhost()),
    ];
    insta::assert_snapshot!(rows.concat());
}
