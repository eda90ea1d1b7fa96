//! `images/images.lock`: versions and short names to whole image names.

use std::collections::BTreeMap;
use std::path::Path;

use evictlab_rules::KubeletVersion;
use serde::Deserialize;

/// The file as it is built in.
const BUILT_IN: &str = include_str!("../../../../images/images.lock");

/// The images that are known by name and digest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Kubernetes version to node image.
    pub nodes: BTreeMap<KubeletVersion, String>,
    /// A case's short name to the whole name.
    pub cases: BTreeMap<String, String>,
}

/// The lock file is not right.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Not readable.
    #[error("the image list {path} cannot be read: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// Not of the right form.
    #[error("the image list {path} is not right: {source}")]
    Form {
        /// The file.
        path: String,
        /// What is wrong, and where.
        source: serde_yaml::Error,
    },
}

impl Lock {
    /// The list at this path, or the built-in one.
    pub fn load(path: Option<&Path>) -> Result<Self, LockError> {
        let (path, text) = match path {
            None => ("images/images.lock".to_owned(), BUILT_IN.to_owned()),
            Some(path) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(path)
                    .map_err(|source| LockError::Read { path: name.clone(), source })?;
                (name, text)
            }
        };
        serde_yaml::from_str(&text).map_err(|source| LockError::Form { path, source })
    }

    /// The whole name of a case's image; a name that is not listed stands for itself.
    pub fn case_image(&self, name: &str) -> String {
        self.cases.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_image_is_of_its_version_and_pinned() {
        let lock = Lock::load(None).unwrap();
        assert!(lock.nodes.len() > 40);
        for (version, image) in &lock.nodes {
            let (name, digest) = image.split_once("@sha256:").unwrap();
            assert_eq!(name, format!("kindest/node:{version}"));
            assert!(digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit()), "{image}");
        }
    }

    #[test]
    fn short_names_are_completed() {
        let lock = Lock::load(None).unwrap();
        assert_eq!(lock.case_image("agnhost:2.52"), "registry.k8s.io/e2e-test-images/agnhost:2.52");
        assert_eq!(lock.case_image("busybox:1.36"), "busybox:1.36");
    }

    #[test]
    fn a_wrong_list_is_told_by_place() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "nodes:\n  newest: kindest/node:v1.36.4\ncases: {}\n").unwrap();
        let error = Lock::load(Some(file.path())).unwrap_err().to_string();
        assert!(error.contains("newest") && error.contains("line 2"), "{error}");
    }
}
