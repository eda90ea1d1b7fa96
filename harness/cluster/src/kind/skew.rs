//! Version skew: kubelets that can share a control plane.

use evictlab_rules::KubeletVersion;

use crate::kubelet::Kubelet;

/// Maximum number of minor versions that a kubelet may be older than the API server (Kubernetes
/// version skew policy, since 1.28).
pub const MAX_KUBELET_SKEW: u32 = 3;

/// Returns the version skew policy as part of an error.
pub fn skew_policy() -> String {
    format!(
        "an API server supports kubelets of its own minor version and up to {MAX_KUBELET_SKEW} older ones"
    )
}

/// No available control plane supports a kubelet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "failed to find a control plane for kubelet {kubelet}: it is newer than every available control plane (newest: {newest})\nhelp: name a node image of its minor version with --node-image, or another --kubelet"
)]
pub struct SkewError {
    /// Label of the kubelet.
    pub kubelet: String,
    /// Newest available version of a control plane.
    pub newest: KubeletVersion,
}

/// Kubelets that share a cluster. The control plane has the newest image among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletGroup {
    /// Image of the control plane.
    pub control_plane: String,
    /// Version of the control plane.
    pub version: KubeletVersion,
    /// Kubelets of the workers, newest first.
    pub kubelets: Vec<Kubelet>,
}

/// Returns whether the version skew policy allows a kubelet version with an API server version.
pub fn is_skew_allowed(server: &KubeletVersion, kubelet: &KubeletVersion) -> bool {
    server.major == kubelet.major
        && kubelet.minor <= server.minor
        && server.minor - kubelet.minor <= MAX_KUBELET_SKEW
}

/// Groups kubelets into as few clusters as the version skew policy allows. Each group has the
/// newest remaining kubelet and all others that its API server supports.
pub fn group_by_skew(mut kubelets: Vec<Kubelet>) -> Result<Vec<KubeletGroup>, SkewError> {
    kubelets.sort_by(|a, b| b.image_version.cmp(&a.image_version).then(b.version.cmp(&a.version)));
    let mut groups: Vec<KubeletGroup> = Vec::new();
    while let Some(newest) = kubelets.first() {
        let (control_plane, version) = (newest.image.clone(), newest.image_version.clone());
        let is_supported = |kubelet: &Kubelet| {
            is_skew_allowed(&version, &kubelet.version) && is_skew_allowed(&version, &kubelet.image_version)
        };
        if !is_supported(newest) {
            return Err(SkewError { kubelet: newest.label.clone(), newest: version });
        }
        let (members, rest) = kubelets.into_iter().partition(is_supported);
        groups.push(KubeletGroup { control_plane, version, kubelets: members });
        kubelets = rest;
    }
    Ok(groups)
}

/// Groups the kubelets of a kept cluster, whose skew was checked at its creation.
pub fn single_group(kubelets: Vec<Kubelet>) -> Vec<KubeletGroup> {
    let newest = kubelets.iter().max_by(|a, b| a.image_version.cmp(&b.image_version));
    let Some((control_plane, version)) = newest.map(|k| (k.image.clone(), k.image_version.clone())) else {
        return Vec::new();
    };
    vec![KubeletGroup { control_plane, version, kubelets }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubelet(version: &str, image_version: &str) -> Kubelet {
        Kubelet {
            label: version.to_owned(),
            version: version.parse().unwrap(),
            image: format!("kindest/node:{image_version}"),
            image_version: image_version.parse().unwrap(),
            binary: None,
        }
    }

    #[test]
    fn creates_as_few_clusters_as_the_skew_allows() {
        let rows: [(&[&str], &[&[&str]]); 4] = [
            (&["v1.31.14", "v1.32.13"], &[&["v1.32.13", "v1.31.14"]]),
            (&["v1.31.14", "v1.32.13", "v1.36.2"], &[&["v1.36.2"], &["v1.32.13", "v1.31.14"]]),
            (&["v1.33.1", "v1.36.2"], &[&["v1.36.2", "v1.33.1"]]),
            (&["v1.32.13", "v1.32.2"], &[&["v1.32.13", "v1.32.2"]]),
        ];
        for (kubelets, clusters) in rows {
            let groups = group_by_skew(kubelets.iter().map(|v| kubelet(v, v)).collect()).unwrap();
            let grouped: Vec<Vec<&str>> =
                groups.iter().map(|g| g.kubelets.iter().map(|k| k.label.as_str()).collect()).collect();
            assert_eq!(grouped, clusters, "{kubelets:?}");
            assert!(groups.iter().all(|g| g.version == g.kubelets[0].image_version));
        }
    }

    #[test]
    fn rejects_binaries_newer_than_every_image() {
        let error = group_by_skew(vec![kubelet("v1.37.0", "v1.36.2")]).unwrap_err().to_string();
        assert!(error.contains("v1.37.0") && error.contains("v1.36.2"), "{error}");
    }
}
