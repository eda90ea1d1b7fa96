//! Errors of resolving kubelets.

use std::path::PathBuf;

use evictlab_rules::KubeletVersion;

use super::pull::PullError;
use crate::docker::DockerError;

/// A kubelet could not be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// The node image could not be pulled.
    #[error(
        "{0}, or name a node image that Docker has, also one of another version: --node-image VERSION=IMAGE"
    )]
    Pull(#[from] PullError),
    /// No node image is known for the version.
    #[error(
        "failed to find a node image for kubelet {version}; the closest known versions are {nearest}\nhelp: name an image with --node-image {version}=IMAGE, or load kindest/node:{version} into Docker"
    )]
    NoImage {
        /// Requested version.
        version: KubeletVersion,
        /// Closest known versions.
        nearest: String,
    },
    /// No node image is known for the minor version.
    #[error(
        "failed to find a node image for kubelet v1.{minor}: images are known for {known}\nhelp: name one of these versions, or an image: --kubelet v1.{minor}.0=IMAGE"
    )]
    NoImageOfMinor {
        /// Requested minor version.
        minor: u32,
        /// Minor versions with a known image.
        known: String,
    },
    /// The image is not a kind node image.
    #[error(
        "failed to read the Kubernetes version of image {image}: it is not a kind node image (no /kind/version)"
    )]
    NotANodeImage {
        /// Name of the image.
        image: String,
    },
    /// The binary is not a kubelet.
    #[error(
        "failed to read the version of {path}: `{path} --version` {problem}\nhelp: pass an executable kubelet that runs on this machine, a version or a node image"
    )]
    NotAKubelet {
        /// Path of the binary.
        path: PathBuf,
        /// Result of running the binary, as a verb phrase.
        problem: String,
    },
    /// The version differs from the expected one.
    #[error(
        "failed to use {source_name} as {claimed}: its version is {found}\nhelp: correct the version before `=`, or use another image or binary"
    )]
    VersionMismatch {
        /// Name of the image or path of the binary.
        source_name: String,
        /// Version of the image or binary.
        found: KubeletVersion,
        /// Expected version.
        claimed: KubeletVersion,
    },
    /// The version of an image is unknown.
    #[error(
        "failed to find the version of node image {image}: it is not in Docker, and its tag is not a version\nhelp: name the version: --kubelet v1.32.11={image}"
    )]
    UnknownVersion {
        /// Name of the image.
        image: String,
    },
    /// No node image can run the binary.
    #[error(
        "failed to find a node image for kubelet {path}: no image of {version}'s minor version or a newer one is available\nhelp: name an image with --node-image {version}=IMAGE"
    )]
    NoHostImage {
        /// Path of the binary.
        path: PathBuf,
        /// Version of the binary.
        version: KubeletVersion,
    },
}

/// Checks the version of an image or binary against the version that the user expects, if any.
pub(super) fn check_claim(
    source_name: &str,
    found: KubeletVersion,
    claimed: Option<&KubeletVersion>,
) -> Result<(), ResolveError> {
    match claimed {
        Some(claimed) if *claimed != found => Err(ResolveError::VersionMismatch {
            source_name: source_name.to_owned(),
            found,
            claimed: claimed.clone(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_another_version_than_expected() {
        let found: KubeletVersion = "v1.31.14".parse().unwrap();
        let claimed = "v1.32.13".parse().unwrap();
        let error = check_claim("./kubelet", found, Some(&claimed)).unwrap_err().to_string();
        assert!(error.starts_with("failed to use ./kubelet as v1.32.13: its version is v1.31.14"), "{error}");
    }
}
