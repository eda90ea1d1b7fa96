//! Values of `--kubelet` that are only versions.

use evictlab_cluster::{KubeletSource, KubeletSpec};

/// Returns whether a value of `--kubelet` selects only versions, and no program or image.
pub(crate) fn is_version_list(text: &str) -> bool {
    let is_release = |spec: KubeletSpec| {
        spec.claimed.is_none() && matches!(spec.source, KubeletSource::Release(_) | KubeletSource::Minor(_))
    };
    let is_version = |part: &str| is_plain(part) && part.parse().is_ok_and(is_release);
    text.split(',').map(str::trim).all(|part| part == "all" || is_version(part))
}

/// Returns whether a version has no characters that others than versions have, such as `/`.
pub(crate) fn is_plain(version: &str) -> bool {
    version.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_no_programs_and_images() {
        for text in ["all", "v1.32", "1.32.11", "v1.31, v1.37.0-rc.1", "v1.31.14+k3s1"] {
            assert!(is_version_list(text), "{text}");
        }
        for text in [
            "",
            "Cargo.toml",
            "kindest/node:v1.32.11",
            "v1.32.11=Cargo.toml",
            "v1.32.11+=Cargo.toml",
            "v1.31,a:b",
        ] {
            assert!(!is_version_list(text), "{text}");
        }
    }
}
