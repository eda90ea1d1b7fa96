//! The node images in the release notes of kind.

use std::collections::BTreeMap;

use evictlab_rules::KubeletVersion;
use semver::Version;
use serde::Deserialize;

/// End of the lines before the lists of images, such as "Images pre-built for this release:".
const HEADING: &str = "built for this release:";
/// Repository of kind's node images.
const REPOSITORY: &str = "kindest/node:";

/// A node image that kind published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeImage {
    /// Full name with tag and digest.
    pub image: String,
    /// Release of kind.
    pub kind: Version,
}

/// The document is not a list of releases.
#[derive(Debug, thiserror::Error)]
pub enum ReleasesError {
    /// The document has another format.
    #[error(
        "failed to parse the releases of kind: {0}\nhelp: use the JSON of `gh api repos/kubernetes-sigs/kind/releases`"
    )]
    Parse(#[from] serde_json::Error),
    /// No release lists an image.
    #[error("failed to parse the releases of kind: none of {releases} releases lists a node image by digest")]
    NoImages {
        /// Number of releases.
        releases: usize,
    },
}

/// A release in GitHub's API.
#[derive(Deserialize)]
struct Release {
    tag_name: String,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    prerelease: bool,
    #[serde(default)]
    body: Option<String>,
}

/// Returns the newest node image of each Kubernetes version in a list of kind's releases, the JSON
/// of `GET /repos/kubernetes-sigs/kind/releases`.
///
/// A later kind release may build a version again, with another digest. Drafts and prereleases are
/// ignored.
///
/// # Errors
/// The document is not a list of releases, or does not contain an image.
pub fn node_images(document: &str) -> Result<BTreeMap<KubeletVersion, NodeImage>, ReleasesError> {
    let releases: Vec<Release> = serde_json::from_str(document)?;
    let mut images: BTreeMap<KubeletVersion, NodeImage> = BTreeMap::new();
    for release in releases.iter().filter(|release| !release.draft && !release.prerelease) {
        let Ok(kind) = release.tag_name.trim_start_matches('v').parse::<Version>() else { continue };
        for (version, image) in listed(release.body.as_deref().unwrap_or_default()) {
            if images.get(&version).is_none_or(|known| known.kind < kind) {
                images.insert(version, NodeImage { image, kind: kind.clone() });
            }
        }
    }
    if images.is_empty() { Err(ReleasesError::NoImages { releases: releases.len() }) } else { Ok(images) }
}

/// Returns the images in the lists of release notes. Notes also name images elsewhere, for instance
/// as an example of another release.
fn listed(notes: &str) -> Vec<(KubeletVersion, String)> {
    let mut images = Vec::new();
    let mut is_list = false;
    for line in notes.lines().map(str::trim) {
        match line {
            line if line.to_lowercase().ends_with(HEADING) => is_list = true,
            line if line.starts_with(['-', '*']) && is_list => images.extend(image(line)),
            "" => {}
            _ => is_list = false,
        }
    }
    images
}

/// Returns the image in a line such as "- v1.36.4: `kindest/node:v1.36.4@sha256:…`".
fn image(line: &str) -> Option<(KubeletVersion, String)> {
    let start = line.find(REPOSITORY)?;
    let name = line[start..].split(['`', ' ', '"']).next()?;
    let (tag, digest) = name.strip_prefix(REPOSITORY)?.split_once("@sha256:")?;
    let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let version = tag.parse().ok().filter(|_| is_digest)?;
    Some((version, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Releases in the format of GitHub's API, with digests of real images.
    const RELEASES: &str = include_str!("releases.json");

    #[test]
    fn the_newest_build_of_each_version_is_found() {
        let images = node_images(RELEASES).unwrap();
        let found: Vec<_> = images
            .iter()
            .map(|(version, image)| {
                let digest = image.image.rsplit(':').next().unwrap();
                format!("{version} {} {}", image.kind, &digest[..8])
            })
            .collect();
        assert_eq!(
            found,
            [
                // "Additional images" of v0.18.0, with its two patches of 1.27.
                "v1.26.3 0.18.0 61b92f38",
                "v1.27.0 0.18.0 c6b22e61",
                "v1.27.1 0.18.0 9915f562",
                "v1.31.9 0.29.0 b94a3a6c",
                "v1.32.5 0.29.0 e3b2327e",
                // v0.28.0 built the version with another digest.
                "v1.33.1 0.29.0 05007225",
            ]
        );
        let tags: Vec<_> = images.values().map(|image| image.image.split_once('@').unwrap().0).collect();
        assert_eq!(tags[5], "kindest/node:v1.33.1");
    }

    #[test]
    fn other_documents_are_errors() {
        for (document, expected) in [
            (r#"{"message": "API rate limit exceeded"}"#, "expected a sequence"),
            (r#"[{"tag_name": "v0.33.0", "body": "Nothing new"}]"#, "none of 1 releases lists a node image"),
            (r#"[{"tag_name": "v0.33.0", "body": null}]"#, "none of 1 releases"),
        ] {
            let error = node_images(document).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
