//! Images in the containerd of a node.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::sync::Arc;

use evictlab_api_types::ImageReference;

use crate::docker::{Docker, DockerError};

/// Path of an image archive in a node. Docker does not write into a file system that was mounted in
/// the running container, as over `/var`.
pub(crate) const ARCHIVE_PATH: &str = "/kind/evictlab-images.tar";

/// An operation on the containerd of a node failed.
#[derive(Debug, thiserror::Error)]
pub enum ContainerdError {
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// The containerd configuration has no snapshotter.
    #[error("failed to find the snapshotter of containerd on node {node}: {problem}")]
    Snapshotter {
        /// Name of the node.
        node: String,
        /// Problem of the configuration.
        problem: SnapshotterProblem,
    },
}

/// The containerd of one node.
#[derive(Clone, Copy)]
pub(super) struct Containerd<'a> {
    pub(super) docker: &'a Docker,
    pub(super) node: &'a str,
}

impl Containerd<'_> {
    async fn ctr(&self, arguments: &[&str]) -> Result<String, DockerError> {
        let command = [&["ctr", "-n", "k8s.io"][..], arguments].concat();
        self.docker.run(self.node, &command).await
    }

    /// Digests of all images by full name.
    pub(super) async fn digests(&self) -> Result<BTreeMap<String, String>, DockerError> {
        let listed = self.ctr(&["images", "ls"]).await?;
        // REF TYPE DIGEST …
        let rows = listed.lines().map(|line| line.split_whitespace());
        Ok(rows.filter_map(|mut row| Some((row.next()?.to_owned(), row.nth(1)?.to_owned()))).collect())
    }

    /// Returns those of `images` that the node does not have.
    pub(super) async fn missing(&self, images: &[String]) -> Result<Vec<String>, DockerError> {
        let listed = self.ctr(&["images", "ls", "-q"]).await?;
        let present: Vec<&str> = listed.lines().map(str::trim).collect();
        Ok(images.iter().filter(|image| !present.contains(&full_name(image).as_str())).cloned().collect())
    }

    /// Protects images from the garbage collection of the kubelet. Under disk pressure the kubelet
    /// would delete them as soon as no pod uses them, and the next pod would need a registry.
    pub(super) async fn pin(&self, images: &[String]) -> Result<(), DockerError> {
        for image in images {
            self.ctr(&["images", "label", image, "io.cri-containerd.pinned=pinned"]).await?;
        }
        Ok(())
    }

    /// Unpacks images. containerd unpacks the images of a node image only when the first container
    /// uses them, which then starts slowly.
    pub(super) async fn unpack(&self, images: &[String]) -> Result<(), ContainerdError> {
        let snapshotter = self.snapshotter_flag().await?;
        let digests = self.digests().await?;
        for image in images {
            if let Some(digest) = digests.get(&full_name(image)) {
                self.ctr(&["snapshots", &snapshotter, "unpack", digest]).await?;
            }
        }
        Ok(())
    }

    /// Imports and unpacks an image archive.
    pub(super) async fn import(&self, archive: &Arc<File>) -> Result<(), ContainerdError> {
        let snapshotter = self.snapshotter_flag().await?;
        self.docker.send_file(self.node, ARCHIVE_PATH, 0o600, archive).await?;
        let imported = self.ctr(&["images", "import", "--digests", &snapshotter, ARCHIVE_PATH]).await;
        self.docker.run(self.node, &["rm", "-f", ARCHIVE_PATH]).await?;
        Ok(imported.map(drop)?)
    }

    /// Removes the images whose full names have a prefix, with their layers.
    pub(super) async fn remove_with_prefix(&self, prefix: &str) -> Result<(), DockerError> {
        let listed = self.ctr(&["images", "ls", "-q"]).await?;
        let images: Vec<&str> =
            listed.lines().map(str::trim).filter(|name| name.starts_with(prefix)).collect();
        if !images.is_empty() {
            self.ctr(&[&["images", "rm", "--sync"], &images[..]].concat()).await?;
        }
        Ok(())
    }

    async fn snapshotter_flag(&self) -> Result<String, ContainerdError> {
        let config = self.docker.run(self.node, &["containerd", "config", "dump"]).await?;
        let snapshotter = parse_snapshotter(&config)
            .map_err(|problem| ContainerdError::Snapshotter { node: self.node.to_owned(), problem })?;
        Ok(format!("--snapshotter={snapshotter}"))
    }
}

/// Problem of a containerd configuration that does not state its snapshotter.
#[derive(Debug, PartialEq, Eq)]
pub enum SnapshotterProblem {
    /// The configuration is not TOML.
    NotToml(Box<toml::de::Error>),
    /// The configuration has a version that is not known.
    UnknownVersion(i64),
    /// The configuration does not have this key.
    Missing(&'static str),
    /// The snapshotter is not a string.
    NotText,
}

impl fmt::Display for SnapshotterProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotToml(error) => error.fmt(f),
            Self::UnknownVersion(version) => {
                write!(f, "unknown configuration version {version} (known: 2, 3, 4)")
            }
            Self::Missing(key) => write!(f, "the configuration has no {key}"),
            Self::NotText => f.write_str("the snapshotter is not a string"),
        }
    }
}

/// Snapshotter of the CRI plugin.
///
/// `ctr` does not read this setting, and the kubelet does not find images in another snapshotter.
/// kind changes it on file systems that do not support overlayfs. The configuration has version 2
/// since containerd 1.3, and version 3 or 4 in containerd 2.
fn parse_snapshotter(config: &str) -> Result<String, SnapshotterProblem> {
    let config: toml::Table =
        toml::from_str(config).map_err(|error| SnapshotterProblem::NotToml(Box::new(error)))?;
    let version = config.get("version").and_then(toml::Value::as_integer);
    let path: &[&str] = match version {
        Some(2) => &["io.containerd.grpc.v1.cri", "containerd", "snapshotter"],
        Some(3 | 4) => &["io.containerd.cri.v1.images", "snapshotter"],
        Some(other) => return Err(SnapshotterProblem::UnknownVersion(other)),
        None => return Err(SnapshotterProblem::Missing("version")),
    };
    let plugins = config.get("plugins").ok_or(SnapshotterProblem::Missing("plugins"))?;
    let found =
        path.iter().try_fold(plugins, |table, key| table.get(key).ok_or(SnapshotterProblem::Missing(key)))?;
    found.as_str().map(str::to_owned).ok_or(SnapshotterProblem::NotText)
}

/// Full name under which containerd stores an image.
fn full_name(image: &str) -> String {
    ImageReference::parse(image).full_name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_snapshotter_in_each_configuration_version() {
        let version_2 =
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\nsnapshotter = \"native\"\n";
        let version_3 =
            "version = 3\n[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'fuse-overlayfs'\n";
        assert_eq!(parse_snapshotter(version_2), Ok("native".to_owned()));
        assert_eq!(parse_snapshotter(version_3), Ok("fuse-overlayfs".to_owned()));
        for (config, expected) in [
            ("version = 9\n", "unknown configuration version 9"),
            ("version = 3\n[plugins.a]\n", "has no io.containerd.cri.v1.images"),
            ("version = 3\n", "has no plugins"),
            ("a = 1\n", "has no version"),
            ("version =", "TOML parse error"),
        ] {
            let problem = parse_snapshotter(config).unwrap_err().to_string();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
