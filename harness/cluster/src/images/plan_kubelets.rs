//! Resolves kubelets without pulling images, and without Docker if it is not available.

use std::collections::BTreeMap;
use std::path::Path;

use evictlab_api_types::ImageReference;
use evictlab_rules::KubeletVersion;

use super::binary::{VERSION_TIMEOUT, binary_version};
use super::catalog::ImageCatalog;
use super::pull::has_image;
use super::resolve::{KubeletResolver, distance, newest_release};
use super::resolve_error::{ResolveError, check_claim};
use crate::kubelet::{Kubelet, KubeletSource, KubeletSpec};

/// Resolves kubelets, by default the newest release, to local images or to images of the catalog.
/// Without Docker (`resolver` is `None`) only the catalog is used.
///
/// # Errors
/// No image is known for a kubelet, or a binary is not a kubelet.
pub async fn plan_kubelets(
    resolver: Option<&KubeletResolver<'_>>,
    catalog: &ImageCatalog,
    overrides: &BTreeMap<KubeletVersion, String>,
    specs: &[KubeletSpec],
) -> Result<Vec<Kubelet>, ResolveError> {
    let newest = match (specs, resolver) {
        ([_, ..], _) => None,
        ([], Some(resolver)) => resolver.newest().await?,
        ([], None) => newest_release(catalog.nodes.keys().cloned()),
    };
    let plan = Plan { resolver, catalog, overrides };
    let mut kubelets = vec![];
    for spec in specs.iter().chain(&newest) {
        kubelets.push(plan.resolve(spec).await?);
    }
    Ok(Kubelet::with_unique_labels(kubelets))
}

struct Plan<'a> {
    resolver: Option<&'a KubeletResolver<'a>>,
    catalog: &'a ImageCatalog,
    overrides: &'a BTreeMap<KubeletVersion, String>,
}

impl Plan<'_> {
    async fn resolve(&self, spec: &KubeletSpec) -> Result<Kubelet, ResolveError> {
        let of_image = |version: KubeletVersion, image: String| Kubelet {
            label: version.to_string(),
            image_version: version.clone(),
            version,
            image,
            binary: None,
        };
        match &spec.source {
            KubeletSource::Release(version) => Ok(of_image(version.clone(), self.image_name(version).await?)),
            KubeletSource::Minor(minor) => {
                let version = self.newest_patch(*minor).await?;
                let image = self.image_name(&version).await?;
                Ok(of_image(version, image))
            }
            KubeletSource::Image(image) => {
                let version = self.version_of(image, spec.claimed.as_ref()).await?;
                Ok(of_image(version, image.clone()))
            }
            KubeletSource::Binary(path) => {
                let version = binary_version(path, VERSION_TIMEOUT)?;
                check_claim(&path.display().to_string(), version.clone(), spec.claimed.as_ref())?;
                let (host, image) = match self.overrides.get(&version) {
                    Some(image) => (self.version_of(image, None).await?, image.clone()),
                    None => self.host_image(path, &version).await?,
                };
                Ok(Kubelet { image_version: host, binary: Some(path.clone()), ..of_image(version, image) })
            }
        }
    }

    async fn image_name(&self, version: &KubeletVersion) -> Result<String, ResolveError> {
        match self.resolver {
            Some(resolver) => resolver.image_name(version).await,
            None => {
                let locations = self.catalog.locations(version, self.overrides);
                locations.pull.ok_or_else(|| self.no_image(version))
            }
        }
    }

    async fn newest_patch(&self, minor: u32) -> Result<KubeletVersion, ResolveError> {
        let Some(resolver) = self.resolver else {
            return self
                .catalog
                .releases(minor)
                .max()
                .cloned()
                .ok_or_else(|| ResolveError::NoImageOfMinor { minor, known: self.catalog.minors() });
        };
        resolver.newest_patch(minor).await
    }

    /// Version of an image: from its files if it is local, else the expected version or its tag.
    async fn version_of(
        &self,
        image: &str,
        claimed: Option<&KubeletVersion>,
    ) -> Result<KubeletVersion, ResolveError> {
        if let Some(resolver) = self.resolver
            && has_image(resolver.docker, image).await?
        {
            let found = resolver.version_of(image).await?;
            check_claim(image, found.clone(), claimed)?;
            return Ok(found);
        }
        let tag = || ImageReference::parse(image).tag?.parse().ok();
        claimed.cloned().or_else(tag).ok_or_else(|| ResolveError::UnknownVersion { image: image.to_owned() })
    }

    /// Node image that runs a binary of this version, and its version.
    async fn host_image(
        &self,
        path: &Path,
        version: &KubeletVersion,
    ) -> Result<(KubeletVersion, String), ResolveError> {
        let none = || ResolveError::NoHostImage { path: path.to_owned(), version: version.clone() };
        let Some(resolver) = self.resolver else {
            let newer = self.catalog.nodes.keys().filter(|known| known.minor >= version.minor);
            let host = newer.min_by_key(|known| distance(known, version)).ok_or_else(none)?;
            return Ok((host.clone(), self.image_name(host).await?));
        };
        let images = resolver.host_images(version).await?;
        images.into_iter().next().map(|(host, lookup)| (host, lookup.image)).ok_or_else(none)
    }

    fn no_image(&self, version: &KubeletVersion) -> ResolveError {
        ResolveError::NoImage { version: version.clone(), nearest: self.catalog.nearest(version) }
    }
}
