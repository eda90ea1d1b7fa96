//! KubeletConfiguration: parsing, validation and changes.

mod config_fields;
mod error;
mod feature_gates;
mod fields;
mod file;
mod kubelet_config;
mod reconfigure;
mod settings;

#[cfg(test)]
pub(crate) use error::ConfigError;
pub(crate) use feature_gates::FeatureGates;
pub use kubelet_config::Housekeeping;
pub(crate) use kubelet_config::KubeletConfig;
