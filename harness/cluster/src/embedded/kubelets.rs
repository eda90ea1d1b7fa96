//! Kubelet versions that the model supports.

use std::ops::RangeInclusive;

use evictlab_rules::KubeletVersion;

use crate::images::ImageCatalog;
use crate::kubelet::{Kubelet, KubeletSource, KubeletSpec};

/// Minor versions that the model supports.
pub const MODELLED_MINORS: RangeInclusive<u32> = 27..=KubeletVersion::NEWEST_MINOR;

/// Last patches (minor, patch) of minor versions whose last node image has an earlier patch.
const LAST_PATCHES: [(u32, u32); 4] = [(29, 15), (30, 14), (31, 14), (32, 13)];

/// The model does not support a kubelet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotModelledError {
    /// The version is not in the supported range.
    #[error(
        "failed to model kubelet {0}: the embedded cluster supports v1.{oldest} to v1.{newest}\nhelp: run a real kubelet with --backend kind",
        oldest = MODELLED_MINORS.start(),
        newest = MODELLED_MINORS.end()
    )]
    Version(String),
    /// An image or a binary cannot be modelled.
    #[error(
        "failed to model {0}: the embedded cluster supports kubelets only by version\nhelp: run it with --backend kind"
    )]
    Real(String),
}

/// Resolves kubelets for the embedded cluster, by default the newest one. A minor version resolves
/// to its newest known patch.
///
/// # Errors
/// The model does not support a kubelet.
pub fn modelled_kubelets(
    specs: &[KubeletSpec],
    catalog: &ImageCatalog,
) -> Result<Vec<Kubelet>, NotModelledError> {
    let newest = [KubeletSource::Minor(*MODELLED_MINORS.end()).into()];
    let specs = if specs.is_empty() { &newest } else { specs };
    let versions = specs.iter().map(|spec| version(spec, catalog)).collect::<Result<Vec<_>, _>>()?;
    let kubelet = |version: KubeletVersion| Kubelet {
        label: version.to_string(),
        image: String::new(),
        image_version: version.clone(),
        version,
        binary: None,
    };
    Ok(Kubelet::with_unique_labels(versions.into_iter().map(kubelet).collect()))
}

/// The newest kubelet of every minor version that the model supports.
pub fn every_minor() -> Vec<KubeletSpec> {
    MODELLED_MINORS.map(|minor| KubeletSource::Minor(minor).into()).collect()
}

fn version(spec: &KubeletSpec, catalog: &ImageCatalog) -> Result<KubeletVersion, NotModelledError> {
    let version = match &spec.source {
        KubeletSource::Release(version) => version.clone(),
        KubeletSource::Minor(minor) => newest_patch(*minor, catalog),
        KubeletSource::Image(image) => return Err(NotModelledError::Real(format!("the node image {image}"))),
        KubeletSource::Binary(path) => {
            return Err(NotModelledError::Real(format!("the kubelet {}", path.display())));
        }
    };
    if version.major == 1 && MODELLED_MINORS.contains(&version.minor) {
        Ok(version)
    } else {
        Err(NotModelledError::Version(match spec.source {
            KubeletSource::Minor(minor) => format!("v1.{minor}"),
            _ => version.to_string(),
        }))
    }
}

/// Newest known patch of a minor version.
pub fn newest_patch(minor: u32, catalog: &ImageCatalog) -> KubeletVersion {
    let listed = catalog.releases(minor);
    let last = LAST_PATCHES.iter().filter(|(of_minor, _)| *of_minor == minor).map(|(_, patch)| *patch);
    let patch = listed.map(|version| version.patch).chain(last).max().unwrap_or(0);
    KubeletVersion { patch, ..KubeletVersion::from_minor(minor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(texts: &[&str]) -> Result<Vec<String>, NotModelledError> {
        let specs: Vec<KubeletSpec> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let kubelets = modelled_kubelets(&specs, &ImageCatalog::load(None).unwrap())?;
        Ok(kubelets.into_iter().map(|kubelet| kubelet.label).collect())
    }

    #[test]
    fn resolves_minor_versions_to_their_newest_patch() {
        let rows: [(&[&str], &[&str]); 4] = [
            (&["v1.31", "v1.32"], &["v1.31.14", "v1.32.13"]),
            (&["v1.28", "1.36"], &["v1.28.15", "v1.36.4"]),
            (&["v1.31.3", "v1.31.3"], &["v1.31.3", "v1.31.3-2"]),
            (&[], &["v1.37.0"]),
        ];
        for (specs, expected) in rows {
            assert_eq!(labels(specs).unwrap(), expected, "{specs:?}");
        }
        let all = modelled_kubelets(&every_minor(), &ImageCatalog::load(None).unwrap()).unwrap();
        assert!(
            all.len() == 11
                && all.iter().all(|kubelet| kubelet.version.patch > 0 || kubelet.version.minor == 37),
            "{all:?}"
        );
    }

    #[test]
    fn rejects_unsupported_kubelets() {
        for (spec, message) in [
            ("v1.38", "kubelet v1.38: the embedded cluster supports v1.27 to v1.37"),
            (
                "v1.26.15",
                "kubelet v1.26.15: the embedded cluster supports v1.27 to v1.37\nhelp: run a real kubelet with --backend kind",
            ),
            ("v2.30.0", "failed to model kubelet v2.30.0"),
            ("kindest/node:v1.31.14", "failed to model the node image kindest/node:v1.31.14"),
        ] {
            let error = labels(&[spec]).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
