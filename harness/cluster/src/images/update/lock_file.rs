//! The node images in the text of an image catalog.

use std::collections::BTreeMap;

use evictlab_rules::KubeletVersion;
use semver::Version;

use super::releases::NodeImage;

/// Comment that names the kind release of an image, before its version.
const COMMENT: &str = "# kind ";

/// The text does not have the format of `images.lock`.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// The section of the node images does not exist.
    #[error("failed to update the image catalog: it does not contain the line `nodes:`")]
    NoNodes,
    /// A line of the node images is not an entry.
    #[error(
        "failed to update the image catalog: line {line} is not an entry: {text}\nhelp: write one entry per line: `  v1.36.4: kindest/node:v1.36.4@sha256:…`"
    )]
    Entry {
        /// Number of the line, from 1.
        line: usize,
        /// The line.
        text: String,
    },
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageChangeKind {
    /// The catalog did not contain the version.
    Added,
    /// A newer kind release built the version again.
    Rebuilt,
}

/// A changed entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageChange {
    /// Kubernetes version of the image.
    pub version: KubeletVersion,
    /// Release of kind.
    pub kind: Version,
    /// Kind of the change.
    pub change: ImageChangeKind,
}

/// An updated catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The new text.
    pub text: String,
    /// Changed entries, newest version first.
    pub changes: Vec<ImageChange>,
    /// Number of node images without a change.
    pub unchanged: usize,
}

/// An entry of the section `nodes`.
struct Entry {
    version: KubeletVersion,
    /// The line with its comment.
    line: String,
}

impl Entry {
    fn new(version: KubeletVersion, image: &NodeImage) -> Self {
        let Version { major, minor, patch, .. } = image.kind;
        let patch = if patch == 0 { String::new() } else { format!(".{patch}") };
        let line = format!("  {version}: {} {COMMENT}{major}.{minor}{patch}", image.image);
        Self { version, line }
    }

    /// Release of kind in the comment; `None` for an image of another origin.
    fn kind(&self) -> Option<Version> {
        let (_, comment) = self.line.split_once(COMMENT)?;
        let mut numbers = comment.trim().split('.').map(str::parse);
        let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Version::new(major, minor, numbers.next().transpose().ok()?.unwrap_or(0)))
    }

    /// Returns whether kind built the image again after the build in this entry.
    fn is_older(&self, image: &NodeImage) -> bool {
        !self.line.contains(&image.image) && self.kind().is_none_or(|kind| kind < image.kind)
    }
}

/// Adds published node images to the text of a catalog, newest version first, and replaces images
/// that kind built again. Comments and other sections are kept. Minor versions older than those of
/// the catalog are not added.
///
/// # Errors
/// The text is not a catalog with one entry per line.
pub fn update(text: &str, published: &BTreeMap<KubeletVersion, NodeImage>) -> Result<Update, UpdateError> {
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|line| line.trim_end() == "nodes:").ok_or(UpdateError::NoNodes)? + 1;
    let is_entry = |line: &&str| line.starts_with("  ");
    let end = start + lines[start..].iter().take_while(|line| is_entry(line)).count();
    let mut entries = (start..end).map(|at| entry(at + 1, lines[at])).collect::<Result<Vec<_>, _>>()?;
    let oldest = entries.iter().map(|entry| (entry.version.major, entry.version.minor)).min();

    let mut changes = Vec::new();
    for (version, image) in published {
        let new = Entry::new(version.clone(), image);
        let change = match entries.iter_mut().find(|entry| entry.version == *version) {
            Some(known) if known.is_older(image) => {
                *known = new;
                ImageChangeKind::Rebuilt
            }
            Some(_) => continue,
            None if oldest.is_some_and(|oldest| (version.major, version.minor) < oldest) => continue,
            None => {
                entries.push(new);
                ImageChangeKind::Added
            }
        };
        changes.push(ImageChange { version: version.clone(), kind: image.kind.clone(), change });
    }
    entries.sort_by(|left, right| right.version.cmp(&left.version));
    changes.sort_by(|left, right| right.version.cmp(&left.version));
    let unchanged = entries.len() - changes.len();
    let lines = lines[..start]
        .iter()
        .copied()
        .chain(entries.iter().map(|entry| entry.line.as_str()))
        .chain(lines[end..].iter().copied());
    let text = lines.map(|line| format!("{line}\n")).collect();
    Ok(Update { text, changes, unchanged })
}

fn entry(number: usize, line: &str) -> Result<Entry, UpdateError> {
    let version = line.trim().split_once(": ").and_then(|(version, _)| version.parse().ok());
    let invalid = || UpdateError::Entry { line: number, text: line.to_owned() };
    Ok(Entry { version: version.ok_or_else(invalid)?, line: line.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::ImageCatalog;
    use crate::images::update::node_images;

    const RELEASES: &str = include_str!("releases.json");

    fn digest(digit: char) -> String {
        format!("@sha256:{}", String::from(digit).repeat(64))
    }

    #[test]
    fn adds_new_versions_and_replaces_older_builds() {
        let (a, b) = (digest('a'), digest('b'));
        let catalog = format!(
            "# Images.\n\nnodes:\n  v1.33.1: kindest/node:v1.33.1{a} # kind main 2025-05-01\n  \
             v1.32.5: kindest/node:v1.32.5{a} # kind 0.28\n  v1.31.9: kindest/node:v1.31.9{b} # kind 0.30\n\n\
             # Case images.\ncases:\n  agnhost:2.52: registry/agnhost:2.52\n"
        );
        let published = node_images(RELEASES).unwrap();
        let updated = update(&catalog, &published).unwrap();
        let at = |version: &str| published[&version.parse().unwrap()].image.clone();
        let expected = format!(
            "# Images.\n\nnodes:\n  v1.33.1: {} # kind 0.29\n  v1.32.5: {} # kind 0.29\n  \
             v1.31.9: kindest/node:v1.31.9{b} # kind 0.30\n\n\
             # Case images.\ncases:\n  agnhost:2.52: registry/agnhost:2.52\n",
            at("v1.33.1"),
            at("v1.32.5")
        );
        assert_eq!(updated.text, expected, "the newer build of 0.30 stays, and 1.26 and 1.27 are too old");
        assert_eq!(updated.unchanged, 1);
        assert!(updated.changes.iter().all(|change| change.change == ImageChangeKind::Rebuilt));

        let again = update(&updated.text, &published).unwrap();
        assert_eq!((again.text, again.changes), (updated.text, vec![]), "an update is idempotent");
    }

    #[test]
    fn entries_are_sorted_and_prereleases_follow_their_release() {
        let a = digest('a');
        let catalog = format!(
            "nodes:\n  v1.27.1-rc.1: kindest/node:v1.27.1-rc.1{a}\n  v1.26.0: kindest/node:v1.26.0{a}\ncases: {{}}\n"
        );
        let updated = update(&catalog, &node_images(RELEASES).unwrap()).unwrap();
        let versions: Vec<_> = ImageCatalog::parse(&updated.text).unwrap().nodes.into_keys().collect();
        let in_text: Vec<_> =
            updated.text.lines().filter_map(|line| line.strip_prefix("  ")?.split(": ").next()).collect();
        assert_eq!(versions.len(), in_text.len(), "the text is a catalog");
        let expected =
            ["v1.33.1", "v1.32.5", "v1.31.9", "v1.27.1", "v1.27.1-rc.1", "v1.27.0", "v1.26.3", "v1.26.0"];
        assert_eq!(in_text, expected);
        let added: Vec<_> = updated.changes.iter().map(|change| change.version.to_string()).collect();
        assert_eq!(added, ["v1.33.1", "v1.32.5", "v1.31.9", "v1.27.1", "v1.27.0", "v1.26.3"]);
    }

    #[test]
    fn the_built_in_catalog_is_a_fixed_point() {
        let text = ImageCatalog::BUILT_IN;
        let updated = update(text, &BTreeMap::new()).unwrap();
        assert_eq!(updated.text, text);
    }

    #[test]
    fn other_texts_are_errors() {
        let none = BTreeMap::new();
        assert!(matches!(update("cases: {}\n", &none), Err(UpdateError::NoNodes)));
        let error = update("nodes:\n  newest: kindest/node:v1\n", &none).unwrap_err().to_string();
        assert!(error.contains("line 2 is not an entry:   newest: kindest/node:v1\nhelp: "), "{error}");
    }
}
