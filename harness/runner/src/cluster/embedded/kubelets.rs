//! The kubelets that are modelled.

use std::ops::RangeInclusive;

use evictlab_rules::KubeletVersion;

use crate::cluster::{Kubelet, KubeletSource, KubeletSpec};
use crate::images::Lock;

/// The minors of the kubelets that are modelled.
pub const MINORS: RangeInclusive<u32> = 27..=36;

/// The last patches of minors whose last node image has an earlier one.
const LAST: [(u32, u32); 4] = [(29, 15), (30, 14), (31, 14), (32, 13)];

/// A kubelet that is not modelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotModelled {
    /// A version out of the range.
    #[error(
        "the embedded cluster models kubelets v1.{oldest} to v1.{newest}, and {0} is none of them\nFor a real kubelet add --backend kind.",
        oldest = MINORS.start(),
        newest = MINORS.end()
    )]
    Version(String),
    /// An image or a binary.
    #[error(
        "{0} is to be run, and the embedded cluster models kubelets by their version\nAdd --backend kind."
    )]
    Real(String),
}

/// The kubelets asked for; the newest if none is. A minor means its newest patch that is known.
///
/// # Errors
/// One that is not modelled.
pub fn modelled(specs: &[KubeletSpec], lock: &Lock) -> Result<Vec<Kubelet>, NotModelled> {
    let newest = [KubeletSpec { claimed: None, source: KubeletSource::Minor(*MINORS.end()) }];
    let specs = if specs.is_empty() { &newest } else { specs };
    let versions = specs.iter().map(|spec| version(spec, lock)).collect::<Result<Vec<_>, _>>()?;
    let kubelet = |version: KubeletVersion| Kubelet {
        label: version.to_string(),
        image: String::new(),
        image_version: version.clone(),
        version,
        binary: None,
    };
    Ok(Kubelet::told_apart(versions.into_iter().map(kubelet).collect()))
}

/// One kubelet of every minor that is modelled.
pub fn every_minor() -> Vec<KubeletSpec> {
    MINORS.map(|minor| KubeletSpec { claimed: None, source: KubeletSource::Minor(minor) }).collect()
}

fn version(spec: &KubeletSpec, lock: &Lock) -> Result<KubeletVersion, NotModelled> {
    let version = match &spec.source {
        KubeletSource::Release(version) => version.clone(),
        KubeletSource::Minor(minor) => newest_patch(*minor, lock),
        KubeletSource::Image(image) => return Err(NotModelled::Real(format!("the node image {image}"))),
        KubeletSource::Binary(path) => {
            return Err(NotModelled::Real(format!("the kubelet {}", path.display())));
        }
    };
    match version.major == 1 && MINORS.contains(&version.minor) {
        true => Ok(version),
        false => Err(NotModelled::Version(match spec.source {
            KubeletSource::Minor(minor) => format!("v1.{minor}"),
            _ => version.to_string(),
        })),
    }
}

/// The newest patch of a minor that is listed or was the last.
fn newest_patch(minor: u32, lock: &Lock) -> KubeletVersion {
    let listed = lock.nodes.keys().filter(|version| version.minor == minor && version.suffix.is_empty());
    let last = LAST.iter().filter(|(of, _)| *of == minor).map(|(_, patch)| *patch);
    let patch = listed.map(|version| version.patch).chain(last).max().unwrap_or(0);
    KubeletVersion { patch, ..KubeletVersion::minor(minor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(texts: &[&str]) -> Result<Vec<String>, NotModelled> {
        let specs: Vec<KubeletSpec> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let kubelets = modelled(&specs, &Lock::load(None).unwrap())?;
        Ok(kubelets.into_iter().map(|kubelet| kubelet.label).collect())
    }

    #[test]
    fn a_minor_is_its_newest_patch_and_a_version_is_taken_as_it_is() {
        let rows: [(&[&str], &[&str]); 4] = [
            (&["v1.31", "v1.32"], &["v1.31.14", "v1.32.13"]),
            (&["v1.28", "1.36"], &["v1.28.15", "v1.36.4"]),
            (&["v1.31.3", "v1.31.3"], &["v1.31.3", "v1.31.3-2"]),
            (&[], &["v1.36.4"]),
        ];
        for (asked, got) in rows {
            assert_eq!(labels(asked).unwrap(), got, "{asked:?}");
        }
        let all = modelled(&every_minor(), &Lock::load(None).unwrap()).unwrap();
        assert!(all.len() == 10 && all.iter().all(|kubelet| kubelet.version.patch > 0), "{all:?}");
    }

    #[test]
    fn what_is_not_modelled_is_told_with_the_way_to_it() {
        for (asked, says) in [
            ("v1.37", "models kubelets v1.27 to v1.36, and v1.37 is none"),
            ("v1.26.15", "and v1.26.15 is none of them\nFor a real kubelet add --backend kind."),
            ("v2.30.0", "v2.30.0 is none"),
            ("kindest/node:v1.31.14", "the node image kindest/node:v1.31.14 is to be run"),
        ] {
            let error = labels(&[asked]).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
