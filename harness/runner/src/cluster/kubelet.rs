//! The kubelets that a run is asked for: a version, an image, or a binary, and what it is claimed to be.

use std::path::PathBuf;
use std::str::FromStr;

use evictlab_rules::KubeletVersion;

/// One `--kubelet`: `v1.32.13`, `v1.32` for the newest patch at hand, `kindest/node:v1.32.13`, `./kubelet`, or one of the last two with a claim before it,
/// `v1.32.13=./kubelet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletSpec {
    /// What it is said to be; the node must agree.
    pub claimed: Option<KubeletVersion>,
    /// Where it comes from.
    pub source: KubeletSource,
}

/// Where a kubelet comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeletSource {
    /// The node image of this version.
    Release(KubeletVersion),
    /// The node image of this minor's newest patch.
    Minor(u32),
    /// A node image by its name.
    Image(String),
    /// A binary on this machine, to be put into a worker.
    Binary(PathBuf),
}

/// The text names no kubelet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeletSpecError {
    /// None of the three.
    #[error(
        "{0:?} is no kubelet: write a version (v1.32.13, or v1.32 for its newest patch at hand), a node image (kindest/node:v1.32.13), or the path of a binary (./kubelet)"
    )]
    Unknown(String),
    /// A path to nothing.
    #[error("there is no file {0}: --kubelet takes the path of a kubelet binary on this machine")]
    NoFile(PathBuf),
    /// A path to a folder.
    #[error("{0} is a folder: --kubelet takes the path of the kubelet binary itself")]
    Folder(PathBuf),
    /// The part before `=` is no version.
    #[error("{0}, and only a version can stand before the `=`")]
    Claim(#[from] evictlab_rules::VersionError),
}

impl FromStr for KubeletSpec {
    type Err = KubeletSpecError;

    fn from_str(text: &str) -> Result<Self, KubeletSpecError> {
        if let Some((claim, source)) = text.split_once('=') {
            let claimed = Some(claim.parse()?);
            return Ok(Self { claimed, source: source_of(source)? });
        }
        Ok(Self { claimed: None, source: source_of(text)? })
    }
}

fn source_of(text: &str) -> Result<KubeletSource, KubeletSpecError> {
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
        return Err(KubeletSpecError::Folder(path));
    }
    if text.starts_with(['.', '/', '~']) {
        return Err(KubeletSpecError::NoFile(path));
    }
    match text.contains([':', '@']) {
        true => Ok(KubeletSource::Image(text.to_owned())),
        false => Err(KubeletSpecError::Unknown(text.to_owned())),
    }
}

/// A kubelet that can be put on a node: everything about it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubelet {
    /// How reports name it: its version, with a mark where two are of one version.
    pub label: String,
    /// What it says it is.
    pub version: KubeletVersion,
    /// The image of its node.
    pub image: String,
    /// The version of that image's Kubernetes; other than `version` only where a binary is put in.
    pub image_version: KubeletVersion,
    /// The binary that replaces the image's own kubelet.
    pub binary: Option<PathBuf>,
}

impl Kubelet {
    /// Gives a mark to the labels of those whose version one before has.
    pub fn told_apart(mut kubelets: Vec<Self>) -> Vec<Self> {
        for place in 0..kubelets.len() {
            let same =
                kubelets[..place].iter().filter(|other| other.version == kubelets[place].version).count();
            if same > 0 {
                let label = format!("{}-{}", kubelets[place].label, same + 1);
                kubelets[place].label = label;
            }
        }
        kubelets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let version: KubeletVersion = "v1.32.13".parse().unwrap();
        let image = || KubeletSource::Image("kindest/node:v1.32.13@sha256:00".to_owned());
        let rows = [
            ("v1.32.13".to_owned(), None, KubeletSource::Release(version.clone())),
            ("1.32.13".to_owned(), None, KubeletSource::Release(version.clone())),
            ("v1.32".to_owned(), None, KubeletSource::Minor(32)),
            ("kindest/node:v1.32.13@sha256:00".to_owned(), None, image()),
            ("v1.32.13=kindest/node:v1.32.13@sha256:00".to_owned(), Some(version.clone()), image()),
            (path.to_owned(), None, KubeletSource::Binary(path.into())),
            (format!("v1.32.13={path}"), Some(version), KubeletSource::Binary(path.into())),
        ];
        for (text, claimed, source) in rows {
            assert_eq!(text.parse(), Ok(KubeletSpec { claimed, source }), "{text}");
        }
        for (text, says) in [
            ("newest", "write a version"),
            ("v1.x", "write a version"),
            ("./nothing-here", "there is no file"),
            ("/", "/ is a folder"),
            ("best=kindest/node:v1.32.13", "before the `=`"),
        ] {
            let error = text.parse::<KubeletSpec>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
