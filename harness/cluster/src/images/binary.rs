//! Versions of kubelet binaries and images, and the errors of resolving kubelets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use evictlab_rules::KubeletVersion;

use super::pull::PullError;
use crate::docker::DockerError;

/// Timeout of `kubelet --version`, which needs less than a second on a slow CPU.
pub(super) const VERSION_TIMEOUT: Duration = Duration::from_secs(60);

/// A kubelet could not be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// The node image could not be pulled.
    #[error(transparent)]
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

/// Returns the version of a kubelet binary on this machine: the output of its `--version`.
///
/// # Errors
/// The binary cannot be run here, or is not a kubelet.
pub fn kubelet_version(path: &Path) -> Result<KubeletVersion, ResolveError> {
    binary_version(path, VERSION_TIMEOUT)
}

/// Runs `--version` of a local binary and parses its output, `Kubernetes v1.32.13`.
pub(super) fn binary_version(path: &Path, timeout: Duration) -> Result<KubeletVersion, ResolveError> {
    let not_a_kubelet = |problem: String| ResolveError::NotAKubelet { path: path.to_owned(), problem };
    let cannot_run = |error: std::io::Error| not_a_kubelet(format!("cannot be run: {error}"));
    let path = path.canonicalize().map_err(cannot_run)?;
    let running = duct::cmd(&path, ["--version"])
        .stdin_null()
        .stderr_to_stdout()
        .stdout_capture()
        .unchecked()
        .start()
        .map_err(cannot_run)?;
    let Some(output) = running.wait_timeout(timeout).map_err(cannot_run)? else {
        running.kill().map_err(cannot_run)?;
        return Err(not_a_kubelet(format!("timed out after {} s", timeout.as_secs())));
    };
    let stdout = String::from_utf8_lossy(&output.stdout);
    let first = stdout.lines().next().unwrap_or_default();
    first
        .strip_prefix("Kubernetes ")
        .and_then(|version| version.trim().parse().ok())
        .ok_or_else(|| not_a_kubelet(format!("prints {first:?}; a kubelet prints \"Kubernetes v1.32.13\"")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn program(text: &str) -> tempfile::TempPath {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        file.into_temp_path()
    }

    #[test]
    fn reads_versions_of_kubelets_and_rejects_other_programs() {
        let kubelet = program("#!/bin/sh\necho Kubernetes v1.33.0-alpha.1\n");
        assert_eq!(binary_version(&kubelet, VERSION_TIMEOUT).unwrap().to_string(), "v1.33.0-alpha.1");
        for (text, problem) in [
            ("#!/bin/sh\necho Docker version 28\n", "prints \"Docker version 28\""),
            ("#!/bin/sh\nexit 1\n", "prints \"\""),
            ("not a program", "failed to read the version of"),
        ] {
            let error = binary_version(&program(text), VERSION_TIMEOUT).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        let silent = program("#!/bin/sh\nexec sleep 600\n");
        let error = binary_version(&silent, Duration::from_millis(50)).unwrap_err().to_string();
        assert!(error.contains("timed out"), "{error}");
    }

    #[test]
    fn rejects_another_version_than_expected() {
        let found: KubeletVersion = "v1.31.14".parse().unwrap();
        let claimed = "v1.32.13".parse().unwrap();
        let error = check_claim("./kubelet", found, Some(&claimed)).unwrap_err().to_string();
        assert!(error.starts_with("failed to use ./kubelet as v1.32.13: its version is v1.31.14"), "{error}");
    }
}
