//! Texts of all errors of this crate, in one snapshot.

#[path = "../../error_row.rs"]
mod error_row;

pub(crate) use error_row::row;
use evictlab_rules::threshold::{ThresholdConfigError, UnknownSignalError};
use tokio_rustls::rustls;

use crate::OptionsError;
use crate::defect::Defect;
use crate::http::AccessError;
use crate::kubelet::config::ConfigError;
use crate::machine::{ExecError, NoSpace};

#[test]
fn texts() {
    let text = |text: &str| text.to_owned();
    let thresholds = ThresholdConfigError::Signal(UnknownSignalError(text("memory.free")));
    let rows = [
        row("no-such-defect".parse::<Defect>().unwrap_err()),
        row(AccessError::Certificate(rcgen::Error::CouldNotParseCertificate)),
        row(AccessError::Tls(rustls::Error::HandshakeNotComplete)),
        row(ConfigError::Decode(text("unknown field `evictionHrad`"))),
        row(ConfigError::FeatureGates(text("unrecognized feature gate: NoSuchGate"))),
        row(ConfigError::Invalid(text("invalid configuration: maxPods must be positive"))),
        row(ConfigError::Logs(text("invalid MaxFiles 1, must be > 1"))),
        row(ConfigError::HardThresholds(thresholds.clone())),
        row(ConfigError::Thresholds(thresholds)),
        row(ConfigError::Allocatable(text("capacity of 2Gi, reservation of 4Gi"))),
        row(ExecError::NotRunning),
        row(ExecError::UnknownProgram),
        row(ExecError::CannotFork),
        row(NoSpace),
        row(OptionsError { place: text("nodes[0].memory"), problem: text("must be at least 64Mi") }),
    ];
    insta::assert_snapshot!(rows.concat());
}
