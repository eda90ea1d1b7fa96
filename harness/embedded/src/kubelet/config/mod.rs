//! KubeletConfiguration: parsing, validation and changes.

mod error;
mod feature_gates;
mod fields;
mod file;
mod kubelet_config;
mod reconfigure;
mod settings;

pub use error::ConfigError;
pub use feature_gates::{FeatureGates, Gate};
pub use kubelet_config::KubeletConfig;
pub use settings::Settings;
