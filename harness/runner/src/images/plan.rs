//! What kubelets would run from, where nobody runs them here: nothing is pulled, and Docker need not be there.

use std::collections::BTreeMap;
use std::path::Path;

use evictlab_rules::KubeletVersion;

use super::resolve::{ANSWER, agreed, binary_version, nearness, newest_release};
use super::{Resolve, ResolveError, have};
use crate::cluster::{Kubelet, KubeletSource, KubeletSpec};
use crate::images::Lock;

/// The kubelets asked for, the newest if none is, by the names of images that Docker has, else by those of the list. Without Docker
/// (`resolve` is none) the list alone counts.
///
/// # Errors
/// No image is known for one, or a binary is no kubelet.
pub async fn planned(
    resolve: Option<&Resolve<'_>>,
    lock: &Lock,
    overrides: &BTreeMap<KubeletVersion, String>,
    specs: &[KubeletSpec],
) -> Result<Vec<Kubelet>, ResolveError> {
    let newest = match (specs, resolve) {
        ([_, ..], _) => None,
        ([], Some(resolve)) => resolve.newest().await?,
        ([], None) => newest_release(lock.nodes.keys().cloned()),
    };
    let plan = Plan { resolve, lock, overrides };
    let mut kubelets = vec![];
    for spec in specs.iter().chain(&newest) {
        kubelets.push(plan.one(spec).await?);
    }
    Ok(Kubelet::told_apart(kubelets))
}

struct Plan<'a> {
    resolve: Option<&'a Resolve<'a>>,
    lock: &'a Lock,
    overrides: &'a BTreeMap<KubeletVersion, String>,
}

impl Plan<'_> {
    async fn one(&self, spec: &KubeletSpec) -> Result<Kubelet, ResolveError> {
        let of_image = |version: KubeletVersion, image: String| Kubelet {
            label: version.to_string(),
            image_version: version.clone(),
            version,
            image,
            binary: None,
        };
        match &spec.source {
            KubeletSource::Release(version) => Ok(of_image(version.clone(), self.name(version).await?)),
            KubeletSource::Minor(minor) => {
                let version = self.newest_patch(*minor).await?;
                let image = self.name(&version).await?;
                Ok(of_image(version, image))
            }
            KubeletSource::Image(image) => {
                let version = self.version_of(image, spec.claimed.as_ref()).await?;
                Ok(of_image(version, image.clone()))
            }
            KubeletSource::Binary(path) => {
                let version = binary_version(path, ANSWER)?;
                agreed(&path.display().to_string(), version.clone(), spec.claimed.as_ref())?;
                let (host, image) = match self.overrides.get(&version) {
                    Some(image) => (self.version_of(image, None).await?, image.clone()),
                    None => {
                        let host = self.host(path, &version).await?;
                        let image = self.name(&host).await?;
                        (host, image)
                    }
                };
                Ok(Kubelet { image_version: host, binary: Some(path.clone()), ..of_image(version, image) })
            }
        }
    }

    async fn name(&self, version: &KubeletVersion) -> Result<String, ResolveError> {
        match self.resolve {
            Some(resolve) => resolve.name(version).await,
            None => {
                let places = self.lock.places(version, self.overrides);
                places.pull.ok_or_else(|| self.no_image(version))
            }
        }
    }

    async fn newest_patch(&self, minor: u32) -> Result<KubeletVersion, ResolveError> {
        let Some(resolve) = self.resolve else {
            let listed =
                self.lock.nodes.keys().filter(|known| known.minor == minor && known.suffix.is_empty());
            return listed.max().cloned().ok_or_else(|| self.no_image(&KubeletVersion::minor(minor)));
        };
        resolve.newest_patch(minor).await
    }

    /// What an image holds: as it says itself, where Docker has it, else as it is claimed to, or as its tag says.
    async fn version_of(
        &self,
        image: &str,
        claimed: Option<&KubeletVersion>,
    ) -> Result<KubeletVersion, ResolveError> {
        if let Some(resolve) = self.resolve
            && have(resolve.docker, image).await?
        {
            let found = resolve.version_of(image).await?;
            agreed(image, found.clone(), claimed)?;
            return Ok(found);
        }
        let name = image.split('@').next().unwrap_or_default();
        let tag = || name.rsplit_once(':')?.1.parse().ok();
        claimed.cloned().or_else(tag).ok_or_else(|| ResolveError::Untold { image: image.to_owned() })
    }

    /// The version whose image takes a binary of this one.
    async fn host(&self, path: &Path, version: &KubeletVersion) -> Result<KubeletVersion, ResolveError> {
        let hosts = match self.resolve {
            Some(resolve) => resolve.hosts(version).await?,
            None => {
                let newer = |known: &&KubeletVersion| known.minor >= version.minor;
                let mut listed: Vec<_> = self.lock.nodes.keys().filter(newer).cloned().collect();
                listed.sort_by_key(|known| nearness(known, version));
                listed
            }
        };
        let none = || ResolveError::NoHostImage { path: path.to_owned(), version: version.clone() };
        hosts.into_iter().next().ok_or_else(none)
    }

    fn no_image(&self, version: &KubeletVersion) -> ResolveError {
        ResolveError::NoImage { version: version.clone(), nearest: self.lock.nearest(version) }
    }
}
