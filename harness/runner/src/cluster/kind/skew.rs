//! Which kubelets can share a cluster.

use evictlab_rules::KubeletVersion;

use crate::cluster::Kubelet;

/// How many minors older than the API server a kubelet may be (the Kubernetes version skew policy, since 1.28).
pub const OLDEST_KUBELET: u32 = 3;

/// A kubelet that no control plane at hand may serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the kubelet {kubelet} is newer than every control plane at hand (the newest is {newest}), and an API server takes no newer kubelet\nName a node image of that minor with --node-image, or another --kubelet."
)]
pub struct SkewError {
    /// The kubelet.
    pub kubelet: String,
    /// The newest version that a control plane could be of.
    pub newest: KubeletVersion,
}

/// The kubelets of one cluster, whose control plane is of the newest image among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The image of the control plane.
    pub control_plane: String,
    /// Its version.
    pub version: KubeletVersion,
    /// The kubelets of its workers, newest first.
    pub kubelets: Vec<Kubelet>,
}

/// Whether an API server of one version serves a kubelet of the other.
pub fn allowed(server: &KubeletVersion, kubelet: &KubeletVersion) -> bool {
    server.major == kubelet.major
        && kubelet.minor <= server.minor
        && server.minor - kubelet.minor <= OLDEST_KUBELET
}

/// As few clusters as the skew allows: each takes the newest version left and all that its API server serves.
pub fn group(mut kubelets: Vec<Kubelet>) -> Result<Vec<Group>, SkewError> {
    kubelets.sort_by(|a, b| b.image_version.cmp(&a.image_version).then(b.version.cmp(&a.version)));
    let mut groups: Vec<Group> = Vec::new();
    while let Some(newest) = kubelets.first() {
        let (control_plane, version) = (newest.image.clone(), newest.image_version.clone());
        let fits = |kubelet: &Kubelet| {
            allowed(&version, &kubelet.version) && allowed(&version, &kubelet.image_version)
        };
        if !fits(newest) {
            return Err(SkewError { kubelet: newest.label.clone(), newest: version });
        }
        let (mine, rest) = kubelets.into_iter().partition(fits);
        groups.push(Group { control_plane, version, kubelets: mine });
        kubelets = rest;
    }
    Ok(groups)
}

/// All kubelets of a cluster that is there already: what may share it was decided when it was made.
pub fn one_group(kubelets: Vec<Kubelet>) -> Vec<Group> {
    let newest = kubelets.iter().max_by(|a, b| a.image_version.cmp(&b.image_version));
    let Some((control_plane, version)) = newest.map(|k| (k.image.clone(), k.image_version.clone())) else {
        return Vec::new();
    };
    vec![Group { control_plane, version, kubelets }]
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
    fn as_few_clusters_as_the_skew_allows() {
        let rows: [(&[&str], &[&[&str]]); 4] = [
            (&["v1.31.14", "v1.32.13"], &[&["v1.32.13", "v1.31.14"]]),
            (&["v1.31.14", "v1.32.13", "v1.36.2"], &[&["v1.36.2"], &["v1.32.13", "v1.31.14"]]),
            (&["v1.33.1", "v1.36.2"], &[&["v1.36.2", "v1.33.1"]]),
            (&["v1.32.13", "v1.32.2"], &[&["v1.32.13", "v1.32.2"]]),
        ];
        for (asked, clusters) in rows {
            let groups = group(asked.iter().map(|v| kubelet(v, v)).collect()).unwrap();
            let got: Vec<Vec<&str>> =
                groups.iter().map(|g| g.kubelets.iter().map(|k| k.label.as_str()).collect()).collect();
            assert_eq!(got, clusters, "{asked:?}");
            assert!(groups.iter().all(|g| g.version == g.kubelets[0].image_version));
        }
    }

    #[test]
    fn a_binary_newer_than_every_image_is_refused() {
        let error = group(vec![kubelet("v1.37.0", "v1.36.2")]).unwrap_err().to_string();
        assert!(error.contains("v1.37.0") && error.contains("v1.36.2"), "{error}");
    }
}
