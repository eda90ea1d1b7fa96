//! A kubelet on the command line.

use std::str::FromStr;

use evictlab_runner::cluster::{KubeletSpec, KubeletSpecError};

/// A kubelet as it was asked for.
#[derive(Clone)]
pub struct AskedKubelet {
    /// The text that says so.
    pub text: String,
    /// What it means.
    pub spec: KubeletSpec,
}

impl FromStr for AskedKubelet {
    type Err = KubeletSpecError;

    fn from_str(text: &str) -> Result<Self, KubeletSpecError> {
        Ok(Self { text: text.to_owned(), spec: text.parse()? })
    }
}
