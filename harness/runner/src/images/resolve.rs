//! From what `--kubelet` says to a kubelet that can be put on a node.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use evictlab_rules::KubeletVersion;

use super::{Lock, PullError, have, pull};
use crate::cluster::{Docker, DockerError, Kubelet, KubeletSource, KubeletSpec};

/// How long a binary may take to tell its version; a kubelet needs less than a second of a slow CPU.
pub(super) const ANSWER: Duration = Duration::from_secs(60);

/// A kubelet cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// Its image cannot be had.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// No image is known for the version.
    #[error(
        "no node image is known for kubelet {version}; the nearest are {nearest}\nName one with --node-image {version}=IMAGE, or bring kindest/node:{version} into Docker."
    )]
    NoImage {
        /// The version.
        version: KubeletVersion,
        /// Versions of the same or the next minor.
        nearest: String,
    },
    /// The image holds no Kubernetes.
    #[error("the image {image} is no kind node image: it has no readable /kind/version")]
    NoNode {
        /// The image.
        image: String,
    },
    /// The binary is no kubelet.
    #[error(
        "{path} is no kubelet: `{path} --version` {said}\nGive --kubelet the path of an executable kubelet that runs on this machine, or a version or node image."
    )]
    NoKubelet {
        /// The file.
        path: PathBuf,
        /// What it did instead.
        said: String,
    },
    /// What was claimed is not so.
    #[error(
        "{source_name} is Kubernetes {found}, but {claimed} was claimed\nCorrect the version before the `=`, or take another image or binary."
    )]
    NotAsClaimed {
        /// The image or binary.
        source_name: String,
        /// What it is.
        found: KubeletVersion,
        /// What was claimed.
        claimed: KubeletVersion,
    },
    /// Nobody can say what the image holds.
    #[error(
        "what version the node image {image} holds cannot be told: Docker does not have it, and its tag is none\nSay it: --kubelet v1.32.13={image}"
    )]
    Untold {
        /// The image.
        image: String,
    },
    /// There is no image to put the binary into.
    #[error(
        "there is no node image that could take the kubelet {path} of {version}: none of that minor or a newer one is at hand\nName one with --node-image {version}=IMAGE."
    )]
    NoHostImage {
        /// The binary.
        path: PathBuf,
        /// Its version.
        version: KubeletVersion,
    },
}

/// What is needed to find a kubelet's image.
pub struct Resolve<'a> {
    /// The Docker host.
    pub docker: &'a Docker,
    /// Known images.
    pub lock: &'a Lock,
    /// `--node-image VERSION=IMAGE`.
    pub overrides: &'a BTreeMap<KubeletVersion, String>,
    /// Tells how far a pull is.
    pub progress: &'a dyn Fn(&str),
}

/// Where a kubelet would come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Its node image.
    pub image: String,
    /// Whether Docker has it.
    pub here: bool,
}

impl Resolve<'_> {
    /// All kubelets, in the order they were asked for. Labels are versions; where two are of one version, the later ones get a mark.
    pub async fn all(&self, specs: &[KubeletSpec]) -> Result<Vec<Kubelet>, ResolveError> {
        let mut kubelets: Vec<Kubelet> = Vec::new();
        for spec in specs {
            kubelets.push(self.one(spec).await?);
        }
        Ok(Kubelet::told_apart(kubelets))
    }

    /// The newest release whose node image is in Docker.
    pub async fn newest_here(&self) -> Result<Option<KubeletSpec>, ResolveError> {
        Ok(newest_release(self.there().await?.into_iter()))
    }

    /// The newest release whose node image is in Docker, else the newest that is listed.
    pub async fn newest(&self) -> Result<Option<KubeletSpec>, ResolveError> {
        Ok(self.newest_here().await?.or_else(|| newest_release(self.lock.nodes.keys().cloned())))
    }

    /// The versions whose node image is in Docker.
    pub async fn there(&self) -> Result<Vec<KubeletVersion>, ResolveError> {
        let images = self.docker.images("kindest/node").await?;
        Ok(images.iter().filter_map(|image| image.rsplit_once(':')?.1.parse().ok()).collect())
    }

    /// Of every minor the newest release whose node image is in Docker, oldest first.
    pub async fn every_minor_here(&self) -> Result<Vec<KubeletSpec>, ResolveError> {
        let mut newest = BTreeMap::new();
        for version in self.there().await?.into_iter().filter(|version| version.suffix.is_empty()) {
            let known: &mut KubeletVersion =
                newest.entry((version.major, version.minor)).or_insert_with(|| version.clone());
            *known = version.max(known.clone());
        }
        let spec = |version| KubeletSpec { claimed: None, source: KubeletSource::Release(version) };
        Ok(newest.into_values().map(spec).collect())
    }

    /// The newest release of a minor whose node image is in Docker, else the newest that is listed.
    pub(super) async fn newest_patch(&self, minor: u32) -> Result<KubeletVersion, ResolveError> {
        let newest = |versions: &mut dyn Iterator<Item = KubeletVersion>| {
            versions.filter(|version| version.minor == minor && version.suffix.is_empty()).max()
        };
        let there = self.there().await?;
        let found = newest(&mut there.into_iter()).or_else(|| newest(&mut self.lock.nodes.keys().cloned()));
        found.ok_or_else(|| {
            let version = KubeletVersion::minor(minor);
            ResolveError::NoImage { nearest: self.lock.nearest(&version), version }
        })
    }

    async fn one(&self, spec: &KubeletSpec) -> Result<Kubelet, ResolveError> {
        let (version, image, binary) = match &spec.source {
            KubeletSource::Release(version) => {
                let image = self.image(version).await?;
                if self.overrides.contains_key(version) {
                    agreed(&image, self.version_of(&image).await?, Some(version))?;
                }
                (version.clone(), image, None)
            }
            KubeletSource::Minor(minor) => {
                let version = self.newest_patch(*minor).await?;
                (version.clone(), self.image(&version).await?, None)
            }
            KubeletSource::Image(image) => {
                self.need(image).await?;
                let found = self.version_of(image).await?;
                agreed(image, found.clone(), spec.claimed.as_ref())?;
                (found, image.clone(), None)
            }
            KubeletSource::Binary(path) => {
                let found = binary_version(path, ANSWER)?;
                agreed(&path.display().to_string(), found.clone(), spec.claimed.as_ref())?;
                let image = self.image_for_binary(path, &found).await?;
                (found, image, Some(path.clone()))
            }
        };
        let image_version = match &binary {
            Some(_) => self.version_of(&image).await?,
            None => version.clone(),
        };
        Ok(Kubelet { label: version.to_string(), version, image, image_version, binary })
    }

    /// What a kubelet is. That of a release its name tells; an image is brought here; a binary is run.
    pub async fn version(&self, spec: &KubeletSpec) -> Result<KubeletVersion, ResolveError> {
        match &spec.source {
            KubeletSource::Release(version) => Ok(version.clone()),
            KubeletSource::Minor(minor) => self.newest_patch(*minor).await,
            KubeletSource::Image(image) => {
                self.need(image).await?;
                self.version_of(image).await
            }
            KubeletSource::Binary(path) => binary_version(path, ANSWER),
        }
    }

    /// The image that a kubelet would be run from, without bringing it here. A binary is run for its version.
    pub async fn look(&self, spec: &KubeletSpec) -> Result<Looked, ResolveError> {
        let image = match &spec.source {
            KubeletSource::Release(version) => self.name(version).await?,
            KubeletSource::Minor(minor) => self.name(&self.newest_patch(*minor).await?).await?,
            KubeletSource::Image(image) => image.clone(),
            KubeletSource::Binary(path) => {
                let version = binary_version(path, ANSWER)?;
                agreed(&path.display().to_string(), version.clone(), spec.claimed.as_ref())?;
                match (self.overrides.get(&version), self.hosts(&version).await?.first()) {
                    (Some(image), _) => image.clone(),
                    (None, Some(host)) => self.name(host).await?,
                    (None, None) => return Err(ResolveError::NoHostImage { path: path.clone(), version }),
                }
            }
        };
        Ok(Looked { here: have(self.docker, &image).await?, image })
    }

    /// The image of a version, pulled if it is missing.
    async fn image(&self, version: &KubeletVersion) -> Result<String, ResolveError> {
        let image = self.name(version).await?;
        self.need(&image).await?;
        Ok(image)
    }

    /// The name of a version's image: the first that Docker has, else the one to pull.
    pub(super) async fn name(&self, version: &KubeletVersion) -> Result<String, ResolveError> {
        let places = self.lock.places(version, self.overrides);
        for image in places.local {
            if have(self.docker, &image).await? {
                return Ok(image);
            }
        }
        let nearest = || self.lock.nearest(version);
        places.pull.ok_or_else(|| ResolveError::NoImage { version: version.clone(), nearest: nearest() })
    }

    async fn need(&self, image: &str) -> Result<(), ResolveError> {
        if !have(self.docker, image).await? {
            pull(self.docker, image, self.progress).await?;
        }
        Ok(())
    }

    /// The image that a binary is put into: one of its own minor, else the nearest newer one that Docker has.
    async fn image_for_binary(&self, path: &Path, version: &KubeletVersion) -> Result<String, ResolveError> {
        if let Some(image) = self.overrides.get(version) {
            self.need(image).await?;
            return Ok(image.clone());
        }
        let mut not_had = None;
        for host in self.hosts(version).await? {
            match self.image(&host).await {
                Ok(image) => return Ok(image),
                Err(error) => not_had = not_had.or(Some(error)),
            }
        }
        // Of several that could not be had, the best one's error tells what to bring.
        if let Some(error) = not_had {
            return Err(error);
        }
        Err(ResolveError::NoHostImage { path: path.to_owned(), version: version.clone() })
    }

    /// The versions whose images can take a binary of this one, best first.
    pub(super) async fn hosts(&self, version: &KubeletVersion) -> Result<Vec<KubeletVersion>, ResolveError> {
        let mut hosts = self.there().await?;
        hosts.extend(self.lock.nodes.keys().filter(|known| known.minor == version.minor).cloned());
        hosts.retain(|known| known.major == version.major && known.minor >= version.minor);
        hosts.sort_by_key(|known| nearness(known, version));
        Ok(hosts)
    }

    /// The Kubernetes version that a node image says it holds.
    pub(super) async fn version_of(&self, image: &str) -> Result<KubeletVersion, ResolveError> {
        let no_node = || ResolveError::NoNode { image: image.to_owned() };
        // A container that is made and never started shows its files.
        let made = self.docker.make(image).await?;
        let file = self.docker.read_file(&made, "/kind/version").await;
        self.docker.remove(&made).await?;
        let text = file?.ok_or_else(no_node)?;
        String::from_utf8_lossy(&text).trim().parse().map_err(|_| no_node())
    }
}

/// Orders versions by how well their image takes a binary of this one: the own minor first, and of that the nearest patch.
pub(super) fn nearness(known: &KubeletVersion, version: &KubeletVersion) -> (u32, u32, bool) {
    (known.minor, known.patch.abs_diff(version.patch), !known.suffix.is_empty())
}

pub(super) fn newest_release(versions: impl Iterator<Item = KubeletVersion>) -> Option<KubeletSpec> {
    let newest = versions.filter(|version| version.suffix.is_empty()).max()?;
    Some(KubeletSpec { claimed: None, source: KubeletSource::Release(newest) })
}

pub(super) fn agreed(
    name: &str,
    found: KubeletVersion,
    claimed: Option<&KubeletVersion>,
) -> Result<(), ResolveError> {
    match claimed {
        Some(claimed) if *claimed != found => {
            Err(ResolveError::NotAsClaimed { source_name: name.to_owned(), found, claimed: claimed.clone() })
        }
        _ => Ok(()),
    }
}

/// What a binary on this machine answers to `--version`: `Kubernetes v1.32.13`.
pub(super) fn binary_version(path: &Path, answer: Duration) -> Result<KubeletVersion, ResolveError> {
    let no_kubelet = |said: String| ResolveError::NoKubelet { path: path.to_owned(), said };
    let path = path.canonicalize().map_err(|error| no_kubelet(format!("cannot be run: {error}")))?;
    let cannot = |error: std::io::Error| no_kubelet(format!("cannot be run: {error}"));
    let running = duct::cmd(&path, ["--version"])
        .stdin_null()
        .stderr_to_stdout()
        .stdout_capture()
        .unchecked()
        .start()
        .map_err(cannot)?;
    let Some(ran) = running.wait_timeout(answer).map_err(cannot)? else {
        running.kill().map_err(cannot)?;
        return Err(no_kubelet(format!("gives no answer within {} s", answer.as_secs())));
    };
    let said = String::from_utf8_lossy(&ran.stdout);
    let first = said.lines().next().unwrap_or_default();
    first
        .strip_prefix("Kubernetes ")
        .and_then(|version| version.trim().parse().ok())
        .ok_or_else(|| no_kubelet(format!("says {first:?}, and a kubelet says \"Kubernetes v1.32.13\"")))
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
    fn a_binary_tells_its_version_or_is_no_kubelet() {
        let kubelet = program("#!/bin/sh\necho Kubernetes v1.33.0-alpha.1\n");
        assert_eq!(binary_version(&kubelet, ANSWER).unwrap().to_string(), "v1.33.0-alpha.1");
        for (text, says) in [
            ("#!/bin/sh\necho Docker version 28\n", "Docker version 28"),
            ("#!/bin/sh\nexit 1\n", "\"\""),
            ("not a program", "is no kubelet"),
        ] {
            let error = binary_version(&program(text), ANSWER).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let silent = program("#!/bin/sh\nexec sleep 600\n");
        let error = binary_version(&silent, Duration::from_millis(50)).unwrap_err().to_string();
        assert!(error.contains("gives no answer"), "{error}");
    }

    #[test]
    fn a_false_claim_is_told() {
        let found: KubeletVersion = "v1.31.14".parse().unwrap();
        let error = agreed("./kubelet", found, Some(&"v1.32.13".parse().unwrap())).unwrap_err().to_string();
        assert!(error.starts_with("./kubelet is Kubernetes v1.31.14, but v1.32.13 was claimed"), "{error}");
    }
}
