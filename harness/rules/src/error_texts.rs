//! Texts of all errors of this crate, in one snapshot.

#[path = "../../error_row.rs"]
mod error_row;

use error_row::row;

use crate::message::{AnnotationError, MessageParseError};
use crate::quantity::QuantityError;
use crate::threshold::{
    GracePeriodError, Signal, ThresholdConfigError, ThresholdValueError, UnknownSignalError,
};
use crate::{CgroupVersionError, GoDurationError, VersionError};

fn quantities_and_messages() -> Vec<String> {
    vec![
        row(VersionError("1.32".to_owned())),
        row(CgroupVersionError("v3".to_owned())),
        row(QuantityError::Empty),
        row(QuantityError::UnexpectedCharacter { text: "20x0Mi".to_owned(), character: 'x', position: 3 }),
        row(QuantityError::UnknownSuffix { text: "200MB".to_owned(), suffix: "MB".to_owned() }),
        row(QuantityError::TooLarge("1e40".to_owned())),
        row(MessageParseError {
            offset: 30,
            expected: "a resource".to_owned(),
            text: "The node was low on resource: threads.".to_owned(),
        }),
        row(AnnotationError::Missing {
            missing: "offending_containers_usage",
            present: "offending_containers",
        }),
        row(AnnotationError::UnknownResource("threads".to_owned())),
        row(AnnotationError::LengthMismatch {
            name_count: 2,
            usage_count: 1,
            names: "web,sidecar".to_owned(),
            usages: "200Mi".to_owned(),
        }),
        row(AnnotationError::Usage {
            key: "offending_containers_usage",
            source: QuantityError::TooLarge("1e40".to_owned()),
        }),
    ]
}

fn thresholds() -> Vec<String> {
    let (signal, text) = (Signal::MemoryAvailable, |text: &str| text.to_owned());
    vec![
        row(UnknownSignalError(text("memory.free"))),
        row(ThresholdValueError::Quantity(QuantityError::Empty)),
        row(ThresholdValueError::Percentage(text("ten%"))),
        row(GoDurationError(text("soon"))),
        row(GracePeriodError::InvalidDuration(GoDurationError(text("soon")))),
        row(GracePeriodError::Negative(text("-30s"))),
        row(ThresholdConfigError::Signal(UnknownSignalError(text("memory.free")))),
        row(ThresholdConfigError::Value { signal, source: ThresholdValueError::Percentage(text("ten%")) }),
        row(ThresholdConfigError::NotPositive { signal, text: text("-100Mi") }),
        row(ThresholdConfigError::PercentageNegative { signal, text: text("-5%") }),
        row(ThresholdConfigError::PercentageTooLarge { signal, text: text("105%") }),
        row(ThresholdConfigError::MissingGracePeriod(signal)),
        row(ThresholdConfigError::GracePeriod(GracePeriodError::Negative(text("-30s")))),
        row(ThresholdConfigError::MinReclaimPercentage { signal, text: text("-5%") }),
        row(ThresholdConfigError::MinReclaimNegative(signal)),
    ]
}

#[test]
fn texts() {
    insta::assert_snapshot!([quantities_and_messages(), thresholds()].concat().concat());
}
