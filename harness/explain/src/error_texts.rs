//! Texts of all errors of this crate, in one snapshot.

#[path = "../../error_row.rs"]
mod error_row;

use error_row::row;
use evictlab_rules::message::EvictionMessage;

use crate::{EncodingError, ExplainError, InputError};

#[test]
fn texts() {
    let text = |text: &str| text.to_owned();
    let problem = "The node was low on resource: threads.".parse::<EvictionMessage>().unwrap_err();
    let source = serde_json::from_str("{\"status\": 1}").and_then(serde_json::from_value::<u8>).unwrap_err();
    let rows = [
        row(ExplainError::NoEviction(text("3 events, 2 pods"))),
        row(ExplainError::Cut { of: text("pod web"), after: text("memory") }),
        row(ExplainError::Message { of: text("pod web"), problem }),
        row(InputError::Empty),
        row(InputError::Kind(text("Deployment"))),
        row(InputError::Syntax {
            format: "YAML",
            line: 3,
            column: 5,
            problem: text("mapping values are not allowed in this context"),
            is_end: false,
        }),
        row(InputError::Object { kind: "Pod", source }),
        row(InputError::Truncated(text("memory"))),
        row(InputError::Message {
            after: text("The node was low on resource: "),
            expected: text("a resource"),
            found: text("threads."),
        }),
        row(InputError::NodePressure(text("EvictionThresholdMet: Attempting to reclaim memory"))),
        row(InputError::Text(text("NAME READY STATUS"))),
        row(EncodingError::Unknown { offset: 12 }),
        row(EncodingError::Utf16),
    ];
    insta::assert_snapshot!(rows.concat());
}
