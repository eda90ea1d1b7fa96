//! KubeletConfiguration: what a kubelet runs with.

use serde_json::{Map, Value, json};

use super::Identity;

/// A configuration: the file, and what follows from it.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file `/var/lib/kubelet/config.yaml`, as kind writes it, with what was changed in it.
    pub file: Map<String, Value>,
    /// `--housekeeping-interval=1s` is among the flags.
    pub fast_housekeeping: bool,
}

impl Config {
    /// As kind configures its nodes.
    pub fn new(_identity: &Identity) -> Self {
        Self { file: Map::new(), fast_housekeeping: false }
    }

    /// What `configz` answers: every field with its default.
    pub fn configz(&self) -> Value {
        json!({"kubeletconfig": self.file})
    }
}
