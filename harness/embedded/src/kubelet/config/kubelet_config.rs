//! Configuration of a kubelet: the file and the settings parsed from it.

use evictlab_api_types::merge_fields;
use serde_json::{Map, Value, json};

use super::error::ConfigError;
use super::settings::Settings;
use super::{fields, file};
use crate::options::NodeOptions;

/// Interval at which cAdvisor measures containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Housekeeping {
    /// 10 s.
    #[default]
    Default,
    /// 1 s, as with the flag `--housekeeping-interval=1s`.
    Fast,
}

/// Configuration of a kubelet.
#[derive(Clone, Debug)]
pub(crate) struct KubeletConfig {
    /// Content of `/var/lib/kubelet/config.yaml`.
    pub file: Map<String, Value>,
    /// Interval of cAdvisor's measurements.
    pub housekeeping: Housekeeping,
    /// Settings of the running kubelet.
    pub settings: Settings,
    /// All fields of the running kubelet, with defaults.
    all: Map<String, Value>,
    /// Original file, which changes apply to.
    own: Map<String, Value>,
}

impl KubeletConfig {
    /// Creates the configuration of a kind node.
    pub(crate) fn new(options: &NodeOptions) -> Self {
        let own = file::of_kind(options);
        Self {
            file: own.clone(),
            housekeeping: Housekeeping::default(),
            settings: Settings::before_start(&options.version),
            all: Map::new(),
            own,
        }
    }

    /// Applies changes to the original file: maps are merged, other values replaced. Takes effect
    /// at the next start of the kubelet.
    pub(crate) fn apply(&mut self, changes: &Map<String, Value>) {
        self.file = self.own.clone();
        merge_fields(&mut self.file, changes);
    }

    /// Returns the response of `configz`: all fields with their defaults.
    pub(crate) fn configz(&self) -> Value {
        json!({"kubeletconfig": self.all})
    }

    /// Parses the file for a start of the kubelet, and returns its unknown keys.
    ///
    /// # Errors
    /// [`ConfigError`] if the kubelet rejects the file.
    pub(super) fn read(&mut self, options: &NodeOptions) -> Result<Vec<String>, ConfigError> {
        let (all, unknown) = fields::complete(&self.file, &options.version, &options.defects)?;
        self.settings = Settings::read(&all, options)?;
        self.all = all;
        Ok(unknown)
    }
}
