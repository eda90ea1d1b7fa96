//! Kubelets to test: the `--kubelet` argument and the kubelet it resolves to.

use std::path::PathBuf;
use std::str::FromStr;

use evictlab_rules::KubeletVersion;

/// A `--kubelet` argument: `v1.32.13`, `v1.32` for the newest available patch,
/// `kindest/node:v1.32.13`, `./kubelet`, or an image or binary with its expected version,
/// `v1.32.13=./kubelet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletSpec {
    /// Expected version of an image or a binary. A kubelet that reports another version is
    /// rejected.
    pub claimed: Option<KubeletVersion>,
    /// Source of the kubelet.
    pub source: KubeletSource,
}

/// Source of a kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeletSource {
    /// Node image of this version.
    Release(KubeletVersion),
    /// Node image of the newest patch of this minor version.
    Minor(u32),
    /// Node image with this name.
    Image(String),
    /// Binary on this machine, installed into a worker.
    Binary(PathBuf),
}

/// Invalid `--kubelet` argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeletSpecError {
    /// The text is not a version, an image or a path.
    #[error(
        "failed to parse kubelet {0:?}: not a version, a node image or a path\nhelp: use a version (v1.32.13, or v1.32 for its newest patch), a node image (kindest/node:v1.32.13) or a binary (./kubelet)"
    )]
    Unknown(String),
    /// The text is a range of versions.
    #[error(
        "failed to parse kubelet {0:?}: it is a range, and one version is expected\nhelp: name the version, as v1.31; options that take several kubelets take v1.31,v1.32 or `all`"
    )]
    Range(String),
    /// The path does not exist.
    #[error(
        "failed to read kubelet {0}: the file does not exist\nhelp: pass the path of a kubelet binary on this machine"
    )]
    NoFile(PathBuf),
    /// The path is a directory.
    #[error(
        "failed to read kubelet {0}: it is a directory\nhelp: pass the path of the kubelet binary itself"
    )]
    Directory(PathBuf),
    /// A version is expected of a version.
    #[error(
        "failed to parse kubelet {0:?}: the text after `=` is a version itself\nhelp: write an image or a binary after `=`, or use one version alone"
    )]
    ClaimOfVersion(String),
    /// The text before `=` is not a version.
    #[error("failed to parse the version before `=`: {0}")]
    Claim(#[from] evictlab_rules::VersionError),
}

impl From<KubeletSource> for KubeletSpec {
    /// Returns the argument without an expected version.
    fn from(source: KubeletSource) -> Self {
        Self { claimed: None, source }
    }
}

impl FromStr for KubeletSpec {
    type Err = KubeletSpecError;

    fn from_str(text: &str) -> Result<Self, KubeletSpecError> {
        if is_range(text) {
            return Err(KubeletSpecError::Range(text.to_owned()));
        }
        if let Some((claim, source)) = text.split_once('=') {
            let claimed = Some(claim.parse()?);
            return match parse_source(source)? {
                KubeletSource::Release(_) | KubeletSource::Minor(_) => {
                    Err(KubeletSpecError::ClaimOfVersion(text.to_owned()))
                }
                source => Ok(Self { claimed, source }),
            };
        }
        Ok(parse_source(text)?.into())
    }
}

/// Returns whether a text is a range of versions: `>=1.31`, `^v1.31`, `1.31.x`, `v1.31..v1.33` or
/// `1.31-1.33`.
fn is_range(text: &str) -> bool {
    let is_minor = |text: &str| {
        let text = text.trim();
        text.strip_prefix('v').unwrap_or(text).starts_with("1.")
    };
    let compared = text.trim_start_matches(['<', '>', '=', '~', '^', '!']);
    let wildcard = text.strip_suffix(".x").or(text.strip_suffix(".*")).or(text.strip_suffix('+'));
    let between = text.split_once("..").or(text.split_once('-'));
    (compared.len() < text.len() && is_minor(compared))
        || wildcard.is_some_and(|start| is_minor(start) && !start.contains('='))
        || between.is_some_and(|(start, end)| is_minor(start) && is_minor(end))
}

fn parse_source(text: &str) -> Result<KubeletSource, KubeletSpecError> {
    if let Ok(version) = text.parse() {
        return Ok(KubeletSource::Release(version));
    }
    let minor = text.strip_prefix('v').unwrap_or(text).strip_prefix("1.");
    if let Some(minor) = minor.and_then(|minor| minor.parse().ok()) {
        return Ok(KubeletSource::Minor(minor));
    }
    let path = PathBuf::from(text);
    if path.is_file() {
        return Ok(KubeletSource::Binary(path));
    }
    if path.is_dir() {
        return Err(KubeletSpecError::Directory(path));
    }
    if text.starts_with(['.', '/', '~']) {
        return Err(KubeletSpecError::NoFile(path));
    }
    if text.contains([':', '@']) {
        Ok(KubeletSource::Image(text.to_owned()))
    } else {
        Err(KubeletSpecError::Unknown(text.to_owned()))
    }
}

/// A resolved kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubelet {
    /// Name in reports: the version, with a number suffix if two kubelets share a version.
    pub label: String,
    /// Version that the kubelet reports.
    pub version: KubeletVersion,
    /// Image of its node.
    pub image: String,
    /// Kubernetes version of the image. Differs from `version` only if `binary` is set.
    pub image_version: KubeletVersion,
    /// Binary that replaces the kubelet of the image.
    pub binary: Option<PathBuf>,
}

impl Kubelet {
    /// Returns the `--kubelet` argument that selects this kubelet again on kind: its version and
    /// its binary or image. `None` if neither is known, as in a kept cluster.
    pub fn argument(&self) -> Option<String> {
        let binary = self.binary.as_ref().map(|path| path.display().to_string());
        let source = binary.or_else(|| Some(self.image.clone()).filter(|image| !image.is_empty()))?;
        Some(format!("{}={source}", self.version))
    }

    /// Appends `-2`, `-3`, … to the labels of kubelets that share a version.
    pub fn with_unique_labels(mut kubelets: Vec<Self>) -> Vec<Self> {
        for index in 0..kubelets.len() {
            let same =
                kubelets[..index].iter().filter(|other| other.version == kubelets[index].version).count();
            if same > 0 {
                let label = format!("{}-{}", kubelets[index].label, same + 1);
                kubelets[index].label = label;
            }
        }
        kubelets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_selects_the_kubelet_again() {
        let version: KubeletVersion = "v1.36.4".parse().unwrap();
        let of = |image: &str, binary: Option<&str>| Kubelet {
            label: "v1.36.4-2".to_owned(),
            version: version.clone(),
            image: image.to_owned(),
            image_version: version.clone(),
            binary: binary.map(PathBuf::from),
        };
        assert_eq!(of("kindest/node:v1.36.3", Some("./kubelet")).argument().unwrap(), "v1.36.4=./kubelet");
        let image = of("kindest/node:v1.36.4", None).argument().unwrap();
        let spec: KubeletSpec = image.parse().unwrap();
        assert_eq!(spec.source, KubeletSource::Image("kindest/node:v1.36.4".to_owned()));
        assert_eq!(spec.claimed, Some(version.clone()));
        assert_eq!(of("", None).argument(), None);
    }

    #[test]
    fn parses_every_form() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let version: KubeletVersion = "v1.32.13".parse().unwrap();
        let image = || KubeletSource::Image("kindest/node:v1.32.13@sha256:00".to_owned());
        let rows = [
            ("v1.32.13".to_owned(), None, KubeletSource::Release(version.clone())),
            ("1.32.13".to_owned(), None, KubeletSource::Release(version.clone())),
            ("v1.32".to_owned(), None, KubeletSource::Minor(32)),
            ("v1.32.13-rc.1".to_owned(), None, KubeletSource::Release("v1.32.13-rc.1".parse().unwrap())),
            ("v1.32.13+k3s1".to_owned(), None, KubeletSource::Release("v1.32.13+k3s1".parse().unwrap())),
            ("kindest/node:v1.32.13@sha256:00".to_owned(), None, image()),
            ("v1.32.13=kindest/node:v1.32.13@sha256:00".to_owned(), Some(version.clone()), image()),
            (path.to_owned(), None, KubeletSource::Binary(path.into())),
            (format!("v1.32.13={path}"), Some(version), KubeletSource::Binary(path.into())),
        ];
        for (text, claimed, source) in rows {
            assert_eq!(text.parse(), Ok(KubeletSpec { claimed, source }), "{text}");
        }
        for (text, says) in [
            ("newest", "use a version"),
            ("v1.x", "use a version"),
            (">=1.31", "it is a range"),
            ("~v1.31.2", "it is a range"),
            ("1.31.x", "it is a range"),
            ("v1.31+", "it is a range"),
            ("v1.31..v1.33", "it is a range"),
            ("1.31 - 1.33", "v1.31,v1.32 or `all`"),
            ("./nothing-here", "does not exist"),
            ("/", "/: it is a directory"),
            ("best=kindest/node:v1.32.13", "before `=`"),
            ("v1.32.13=v1.31.14", "is a version itself"),
            ("v1.32.13=v1.32", "is a version itself"),
        ] {
            let error = text.parse::<KubeletSpec>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
