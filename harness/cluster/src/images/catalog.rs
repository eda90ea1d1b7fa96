//! The image catalog `images/images.lock`: full names of node images and case images.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use evictlab_api_types::ImageReference;
use evictlab_report::text::marked_ranges;
use evictlab_rules::KubeletVersion;
use schemars::JsonSchema;
use serde::Deserialize;

/// Image of the pod that verifies that a node starts pods.
pub const CANARY_IMAGE: &str = "agnhost:2.52";

/// Known images by version and by short name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageCatalog {
    /// Node images by Kubernetes version.
    pub nodes: BTreeMap<KubeletVersion, String>,
    /// Full names of case images by short name.
    pub cases: BTreeMap<String, String>,
}

/// The catalog could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ImageCatalogError {
    /// The file could not be read.
    #[error("failed to read image catalog {path}: {source}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a valid catalog.
    #[error("failed to parse image catalog {path}: {source}")]
    Parse {
        /// Path of the file.
        path: String,
        /// Parse error with its position.
        source: Box<serde_saphyr::Error>,
    },
}

/// Locations of a node image, in order of preference.
///
/// With `--node-image`, only the given image. Otherwise the local image with the tag of the
/// version, whatever its digest, then the image in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageLocations {
    /// Names of local images, in order of preference. The first that exists is used without a pull.
    pub local: Vec<String>,
    /// Image to pull if no local image exists; `None` for an unknown version.
    pub pull: Option<String>,
}

impl ImageCatalog {
    /// Text of the built-in catalog.
    pub const BUILT_IN: &str = include_str!("../../files/images.lock");

    /// Loads the catalog at this path, or the built-in catalog.
    pub fn load(path: Option<&Path>) -> Result<Self, ImageCatalogError> {
        let (path, text) = match path {
            None => ("images/images.lock".to_owned(), Self::BUILT_IN.to_owned()),
            Some(path) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(path)
                    .map_err(|source| ImageCatalogError::Read { path: name.clone(), source })?;
                (name, text)
            }
        };
        Self::parse(&text).map_err(|source| ImageCatalogError::Parse { path, source: Box::new(source) })
    }

    /// Parses a catalog.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_saphyr::Error> {
        serde_saphyr::from_str(text)
    }

    /// Locations of the node image of a version.
    pub fn locations(
        &self,
        version: &KubeletVersion,
        overrides: &BTreeMap<KubeletVersion, String>,
    ) -> ImageLocations {
        if let Some(image) = overrides.get(version) {
            return ImageLocations { local: vec![image.clone()], pull: Some(image.clone()) };
        }
        let Some(listed) = self.nodes.get(version) else {
            return ImageLocations { local: vec![format!("kindest/node:{version}")], pull: None };
        };
        let image = ImageReference::parse(listed);
        let tagged = image.digest.map(|_| image.without_digest().to_string());
        let local = tagged.into_iter().chain([listed.clone()]).collect();
        ImageLocations { local, pull: Some(listed.clone()) }
    }

    /// Releases of a minor version, without versions with a suffix such as `-rc.1`.
    pub(crate) fn releases(&self, minor: u32) -> impl Iterator<Item = &KubeletVersion> {
        self.nodes.keys().filter(move |version| is_release_of(version, minor))
    }

    /// Up to four known versions closest to an unknown version, closest first.
    pub fn nearest(&self, version: &KubeletVersion) -> String {
        let mut near: Vec<&KubeletVersion> = self.nodes.keys().collect();
        near.sort_by_key(|known| (known.minor.abs_diff(version.minor), known.patch.abs_diff(version.patch)));
        near.into_iter().take(4).map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Known minor versions, oldest first, as in `v1.25, v1.27 to v1.37`.
    pub(crate) fn minors(&self) -> String {
        let known: BTreeSet<u32> = self.nodes.keys().map(|version| version.minor).collect();
        let (first, last) = (known.first().copied(), known.last().copied());
        let all = first.into_iter().zip(last).flat_map(|(first, last)| first..=last);
        marked_ranges(all.map(|minor| (format!("v1.{minor}"), known.contains(&minor))))
    }

    /// Full name of a case image. A name that is not in the catalog is returned unchanged.
    pub fn case_image(&self, name: &str) -> String {
        self.cases.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }
}

/// Returns whether a version is a release of a minor version.
pub(super) fn is_release_of(version: &KubeletVersion, minor: u32) -> bool {
    version.minor == minor && version.suffix.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_images_match_their_version_and_are_pinned() {
        let catalog = ImageCatalog::load(None).unwrap();
        assert!(catalog.nodes.len() > 40);
        for (version, image) in &catalog.nodes {
            let (name, digest) = image.split_once("@sha256:").unwrap();
            assert_eq!(name, format!("kindest/node:{version}"));
            assert!(digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit()), "{image}");
        }
    }

    #[test]
    fn prefers_overrides_then_local_images_then_the_catalog() {
        let catalog: ImageCatalog =
            serde_saphyr::from_str("nodes: {v1.32.2: 'kindest/node:v1.32.2@sha256:f2'}\ncases: {}\n")
                .unwrap();
        let overrides = BTreeMap::from([("v1.33.0".parse().unwrap(), "mine:1".to_owned())]);
        let pinned = "kindest/node:v1.32.2@sha256:f2";
        let rows: [(&str, &[&str], Option<&str>); 3] = [
            ("v1.33.0", &["mine:1"], Some("mine:1")),
            ("v1.32.2", &["kindest/node:v1.32.2", pinned], Some(pinned)),
            ("v1.32.3", &["kindest/node:v1.32.3"], None),
        ];
        for (version, local, pull) in rows {
            let locations = catalog.locations(&version.parse().unwrap(), &overrides);
            assert_eq!(
                (locations.local, locations.pull.as_deref()),
                (local.iter().map(|s| s.to_string()).collect(), pull)
            );
        }
        let both = BTreeMap::from([("v1.32.2".parse().unwrap(), "mine:2".to_owned())]);
        assert_eq!(catalog.locations(&"v1.32.2".parse().unwrap(), &both).local, ["mine:2"]);
    }

    #[test]
    fn nearest_versions_are_of_the_same_minor_first() {
        let near = ImageCatalog::load(None).unwrap().nearest(&"v1.31.13".parse().unwrap());
        assert_eq!(near, "v1.31.12, v1.31.14, v1.31.9, v1.31.6");
    }

    #[test]
    fn known_minor_versions_are_ranges() {
        let minors = |versions: &[&str]| {
            let nodes = versions.iter().map(|version| (version.parse().unwrap(), String::new())).collect();
            ImageCatalog { nodes, cases: BTreeMap::new() }.minors()
        };
        assert_eq!(minors(&["v1.31.4", "v1.27.1", "v1.30.2", "v1.31.0"]), "v1.27, v1.30, v1.31");
    }

    #[test]
    fn completes_short_names() {
        let catalog = ImageCatalog::load(None).unwrap();
        assert_eq!(catalog.case_image("agnhost:2.52"), "registry.k8s.io/e2e-test-images/agnhost:2.52");
        assert_eq!(catalog.case_image("busybox:1.36"), "busybox:1.36");
    }

    #[test]
    fn parse_errors_have_a_position() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "nodes:\n  newest: kindest/node:v1.36.4\ncases: {}\n").unwrap();
        let error = ImageCatalog::load(Some(file.path())).unwrap_err().to_string();
        assert!(error.contains("newest") && error.contains("line 2"), "{error}");
    }
}
