//! Versions of kubelet binaries.

use std::path::Path;
use std::time::Duration;

use evictlab_rules::KubeletVersion;

use super::resolve_error::ResolveError;
use crate::timed_command::output_within;

/// Timeout of `kubelet --version`, which needs less than a second on a slow CPU.
pub(super) const VERSION_TIMEOUT: Duration = Duration::from_secs(60);

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
    let command =
        duct::cmd(&path, ["--version"]).stdin_null().stderr_to_stdout().stdout_capture().unchecked();
    let Some(output) = output_within(&command, timeout).map_err(cannot_run)? else {
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
}
