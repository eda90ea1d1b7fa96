//! Resolves `--kubelet` arguments to kubelets with a node image.

use std::collections::BTreeMap;
use std::path::Path;

use evictlab_api_types::ImageReference;
use evictlab_rules::KubeletVersion;

use super::binary::{VERSION_TIMEOUT, binary_version};
use super::catalog::{ImageCatalog, is_release_of};
use super::pull::{has_image, pull_image};
use super::resolve_error::{ResolveError, check_claim};
use crate::docker::Docker;
use crate::kubelet::{Kubelet, KubeletSource, KubeletSpec};

/// Resolves kubelets to node images.
pub struct KubeletResolver<'a> {
    /// Docker host.
    pub docker: &'a Docker,
    /// Known images.
    pub catalog: &'a ImageCatalog,
    /// Images of `--node-image VERSION=IMAGE`.
    pub overrides: &'a BTreeMap<KubeletVersion, String>,
    /// Receives the progress of pulls.
    pub progress: &'a dyn Fn(&str),
}

/// Node image of a kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletImage {
    /// Name of the node image.
    pub image: String,
    /// True if the Docker host has the image.
    pub is_local: bool,
}

impl KubeletResolver<'_> {
    /// Resolves all kubelets in order, pulls their images, and makes their labels unique.
    pub async fn resolve_all(&self, specs: &[KubeletSpec]) -> Result<Vec<Kubelet>, ResolveError> {
        let mut kubelets: Vec<Kubelet> = Vec::new();
        for spec in specs {
            kubelets.push(self.resolve(spec).await?);
        }
        Ok(Kubelet::with_unique_labels(kubelets))
    }

    /// Newest release with a local node image.
    pub async fn newest_local(&self) -> Result<Option<KubeletSpec>, ResolveError> {
        Ok(newest_release(self.local_versions().await?.into_iter()))
    }

    /// Newest release with a local node image, else the newest release in the catalog.
    pub async fn newest(&self) -> Result<Option<KubeletSpec>, ResolveError> {
        Ok(self.newest_local().await?.or_else(|| newest_release(self.catalog.nodes.keys().cloned())))
    }

    /// Versions with a local node image.
    pub async fn local_versions(&self) -> Result<Vec<KubeletVersion>, ResolveError> {
        let images = self.docker.images("kindest/node").await?;
        Ok(images.iter().filter_map(|image| ImageReference::parse(image).tag?.parse().ok()).collect())
    }

    /// Newest release with a local node image of each minor version, oldest first.
    pub async fn newest_local_of_each_minor(&self) -> Result<Vec<KubeletSpec>, ResolveError> {
        let mut newest = BTreeMap::new();
        for version in self.local_versions().await?.into_iter().filter(|version| version.suffix.is_empty()) {
            let known: &mut KubeletVersion =
                newest.entry((version.major, version.minor)).or_insert_with(|| version.clone());
            *known = version.max(known.clone());
        }
        let spec = |version| KubeletSpec::from(KubeletSource::Release(version));
        Ok(newest.into_values().map(spec).collect())
    }

    /// Newest release of a minor version with a local node image, else in the catalog.
    pub(super) async fn newest_patch(&self, minor: u32) -> Result<KubeletVersion, ResolveError> {
        let local = self.local_versions().await?.into_iter();
        let local = local.filter(|version| is_release_of(version, minor)).max();
        let found = local.or_else(|| self.catalog.releases(minor).max().cloned());
        found.ok_or_else(|| ResolveError::NoImageOfMinor { minor, known: self.catalog.minors() })
    }

    async fn resolve(&self, spec: &KubeletSpec) -> Result<Kubelet, ResolveError> {
        let (version, image, binary) = match &spec.source {
            KubeletSource::Release(version) => {
                let image = self.image(version).await?;
                if self.overrides.contains_key(version) {
                    check_claim(&image, self.version_of(&image).await?, Some(version))?;
                }
                (version.clone(), image, None)
            }
            KubeletSource::Minor(minor) => {
                let version = self.newest_patch(*minor).await?;
                (version.clone(), self.image(&version).await?, None)
            }
            KubeletSource::Image(image) => {
                self.ensure_local(image).await?;
                let found = self.version_of(image).await?;
                check_claim(image, found.clone(), spec.claimed.as_ref())?;
                (found, image.clone(), None)
            }
            KubeletSource::Binary(path) => {
                let found = binary_version(path, VERSION_TIMEOUT)?;
                check_claim(&path.display().to_string(), found.clone(), spec.claimed.as_ref())?;
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

    /// Version of a kubelet: of a release its own, of an image that in its files (the image is
    /// pulled), of a binary its `--version` output.
    pub async fn version(&self, spec: &KubeletSpec) -> Result<KubeletVersion, ResolveError> {
        match &spec.source {
            KubeletSource::Release(version) => Ok(version.clone()),
            KubeletSource::Minor(minor) => self.newest_patch(*minor).await,
            KubeletSource::Image(image) => {
                self.ensure_local(image).await?;
                self.version_of(image).await
            }
            KubeletSource::Binary(path) => binary_version(path, VERSION_TIMEOUT),
        }
    }

    /// Node image of a kubelet, without pulling it.
    pub async fn lookup(&self, spec: &KubeletSpec) -> Result<KubeletImage, ResolveError> {
        let image = match &spec.source {
            KubeletSource::Release(version) => self.image_name(version).await?,
            KubeletSource::Minor(minor) => self.image_name(&self.newest_patch(*minor).await?).await?,
            KubeletSource::Image(image) => image.clone(),
            KubeletSource::Binary(path) => {
                let version = binary_version(path, VERSION_TIMEOUT)?;
                check_claim(&path.display().to_string(), version.clone(), spec.claimed.as_ref())?;
                match self.overrides.get(&version) {
                    Some(image) => image.clone(),
                    None => {
                        let hosts = self.host_images(&version).await?;
                        let Some((_, host)) = hosts.into_iter().next() else {
                            return Err(ResolveError::NoHostImage { path: path.clone(), version });
                        };
                        return Ok(host);
                    }
                }
            }
        };
        Ok(KubeletImage { is_local: has_image(self.docker, &image).await?, image })
    }

    /// Node image of a version; pulled if it is not local.
    async fn image(&self, version: &KubeletVersion) -> Result<String, ResolveError> {
        let image = self.image_name(version).await?;
        self.ensure_local(&image).await?;
        Ok(image)
    }

    /// Name of the node image of a version: the first local one, else the one to pull.
    pub(super) async fn image_name(&self, version: &KubeletVersion) -> Result<String, ResolveError> {
        let locations = self.catalog.locations(version, self.overrides);
        for image in locations.local {
            if has_image(self.docker, &image).await? {
                return Ok(image);
            }
        }
        let nearest = || self.catalog.nearest(version);
        locations.pull.ok_or_else(|| ResolveError::NoImage { version: version.clone(), nearest: nearest() })
    }

    async fn ensure_local(&self, image: &str) -> Result<(), ResolveError> {
        if !has_image(self.docker, image).await? {
            pull_image(self.docker, image, self.progress).await?;
        }
        Ok(())
    }

    /// Node image for a binary. Pulls at most one image: that of the closest patch of its minor
    /// version, if no image of this minor version is local.
    async fn image_for_binary(&self, path: &Path, version: &KubeletVersion) -> Result<String, ResolveError> {
        if let Some(image) = self.overrides.get(version) {
            self.ensure_local(image).await?;
            return Ok(image.clone());
        }
        let mut pull_error = None;
        for (_, KubeletImage { image, is_local }) in self.host_images(version).await? {
            if is_local {
                return Ok(image);
            }
            if pull_error.is_none() {
                match self.ensure_local(&image).await {
                    Ok(()) => return Ok(image),
                    Err(error) => pull_error = Some(error),
                }
            }
        }
        // The error of the best version names the image to provide.
        let none = || ResolveError::NoHostImage { path: path.to_owned(), version: version.clone() };
        Err(pull_error.unwrap_or_else(none))
    }

    /// Node images that can run a binary of this version, with their versions, in order of
    /// preference: local ones of its minor version, those to pull, local ones of newer minor
    /// versions.
    pub(super) async fn host_images(
        &self,
        version: &KubeletVersion,
    ) -> Result<Vec<(KubeletVersion, KubeletImage)>, ResolveError> {
        let mut images = Vec::new();
        for host in self.host_versions(version).await? {
            let image = self.image_name(&host).await?;
            let is_local = has_image(self.docker, &image).await?;
            images.push((host, KubeletImage { image, is_local }));
        }
        // Stable: the closest version comes first.
        images.sort_by_key(|(host, image)| (host.minor, !image.is_local));
        Ok(images)
    }

    /// Versions whose node image can run a binary of this version, the closest first.
    async fn host_versions(&self, version: &KubeletVersion) -> Result<Vec<KubeletVersion>, ResolveError> {
        let mut versions = self.local_versions().await?;
        versions.extend(self.catalog.nodes.keys().filter(|known| known.minor == version.minor).cloned());
        versions.retain(|known| known.major == version.major && known.minor >= version.minor);
        versions.sort_by_key(|known| distance(known, version));
        versions.dedup();
        Ok(versions)
    }

    /// Kubernetes version in the file `/kind/version` of a node image.
    pub(super) async fn version_of(&self, image: &str) -> Result<KubeletVersion, ResolveError> {
        let not_a_node_image = || ResolveError::NotANodeImage { image: image.to_owned() };
        // Files can be read from a container that was never started.
        let container = self.docker.create_scratch(image).await?;
        let file = self.docker.read_file(&container, "/kind/version").await;
        self.docker.remove(&container).await?;
        let text = file?.ok_or_else(not_a_node_image)?;
        String::from_utf8_lossy(&text).trim().parse().map_err(|_| not_a_node_image())
    }
}

/// Sort key for versions that can run a binary of `version`: the lowest minor version first, then
/// the closest patch.
pub(super) fn distance(known: &KubeletVersion, version: &KubeletVersion) -> (u32, u32, bool) {
    (known.minor, known.patch.abs_diff(version.patch), !known.suffix.is_empty())
}

/// Newest version without a suffix such as `-rc.1`.
pub(super) fn newest_release(versions: impl Iterator<Item = KubeletVersion>) -> Option<KubeletSpec> {
    let newest = versions.filter(|version| version.suffix.is_empty()).max()?;
    Some(KubeletSource::Release(newest).into())
}
