//! Default thresholds that an explicit `evictionHard` disables.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Signal, ThresholdConfig};
use crate::KubeletVersion;

/// Signals with a default hard threshold (`DefaultEvictionHard` in `eviction/defaults_linux.go`),
/// and the minor version that added the threshold.
const DEFAULTS: [(Signal, u32); 5] = [
    (Signal::MemoryAvailable, 0),
    (Signal::NodefsAvailable, 0),
    (Signal::NodefsInodesFree, 0),
    (Signal::ImagefsAvailable, 0),
    (Signal::ImagefsInodesFree, 30),
];

/// Default thresholds that a kubelet does not have: `evictionHard` replaces all of them, unless
/// `mergeDefaultEvictionSettings` is true (`cmd/kubelet/app/server.go`). Displayed as a warning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissingDefaults {
    /// Signals in `evictionHard`, also those that it disables with `0%` or `100%`.
    pub configured: Vec<String>,
    /// Signals without a threshold that have a default.
    pub missing: Vec<Signal>,
}

impl MissingDefaults {
    /// Returns the missing defaults of a configuration from `configz`, which contains the defaults
    /// that apply. `None` if every signal with a default has a threshold of any kind or is disabled
    /// by name.
    pub fn find(version: &KubeletVersion, config: &ThresholdConfig) -> Option<Self> {
        let is_configured = |signal: &Signal| {
            let name = signal.to_string();
            config.eviction_hard.contains_key(&name) || config.eviction_soft.contains_key(&name)
        };
        let defaults = DEFAULTS.iter().filter(|(_, since)| version.at_least(*since));
        let missing: Vec<Signal> =
            defaults.map(|(signal, _)| *signal).filter(|signal| !is_configured(signal)).collect();
        let configured = config.eviction_hard.keys().cloned().collect();
        (!missing.is_empty()).then_some(Self { configured, missing })
    }
}

impl fmt::Display for MissingDefaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing: Vec<String> = self.missing.iter().map(ToString::to_string).collect();
        match &self.configured[..] {
            [] => f.write_str("evictionHard is empty")?,
            configured => write!(f, "evictionHard sets only {}", configured.join(", "))?,
        }
        write!(f, ": no threshold for {}", missing.join(", "))
    }
}
