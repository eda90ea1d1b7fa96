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

/// Where an image is looked for: what was named for the version (`--node-image`) and nothing else, else by tag in Docker, whatever its
/// digest, else as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The names under which Docker may have it, best first. The first that is there is used without a pull.
    pub local: Vec<String>,
    /// What is pulled if none is there; nothing for a version that is not known.
    pub pull: Option<String>,
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

    /// Where the image of a version is looked for.
    pub fn places(&self, version: &KubeletVersion, overrides: &BTreeMap<KubeletVersion, String>) -> Places {
        if let Some(image) = overrides.get(version) {
            return Places { local: vec![image.clone()], pull: Some(image.clone()) };
        }
        let Some(listed) = self.nodes.get(version) else {
            return Places { local: vec![format!("kindest/node:{version}")], pull: None };
        };
        let tagged = listed.split_once('@').map(|(name, _)| name.to_owned());
        let local = tagged.into_iter().chain([listed.clone()]).collect();
        Places { local, pull: Some(listed.clone()) }
    }

    /// The known versions nearest to one that is not known, nearest first.
    pub fn nearest(&self, version: &KubeletVersion) -> String {
        let mut near: Vec<&KubeletVersion> = self.nodes.keys().collect();
        near.sort_by_key(|known| (known.minor.abs_diff(version.minor), known.patch.abs_diff(version.patch)));
        near.into_iter().take(4).map(ToString::to_string).collect::<Vec<_>>().join(", ")
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
    fn an_override_comes_before_docker_and_docker_before_the_list() {
        let lock: Lock =
            serde_yaml::from_str("nodes: {v1.32.2: 'kindest/node:v1.32.2@sha256:f2'}\ncases: {}\n").unwrap();
        let overrides = BTreeMap::from([("v1.33.0".parse().unwrap(), "mine:1".to_owned())]);
        let pinned = "kindest/node:v1.32.2@sha256:f2";
        let rows: [(&str, &[&str], Option<&str>); 3] = [
            ("v1.33.0", &["mine:1"], Some("mine:1")),
            ("v1.32.2", &["kindest/node:v1.32.2", pinned], Some(pinned)),
            ("v1.32.3", &["kindest/node:v1.32.3"], None),
        ];
        for (version, local, pull) in rows {
            let places = lock.places(&version.parse().unwrap(), &overrides);
            assert_eq!(
                (places.local, places.pull.as_deref()),
                (local.iter().map(|s| s.to_string()).collect(), pull)
            );
        }
        let both = BTreeMap::from([("v1.32.2".parse().unwrap(), "mine:2".to_owned())]);
        assert_eq!(lock.places(&"v1.32.2".parse().unwrap(), &both).local, ["mine:2"]);
    }

    #[test]
    fn the_nearest_versions_are_of_the_same_minor_first() {
        let near = Lock::load(None).unwrap().nearest(&"v1.31.13".parse().unwrap());
        assert_eq!(near, "v1.31.12, v1.31.14, v1.31.9, v1.31.6");
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
