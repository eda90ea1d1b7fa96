//! The cluster of an exported case, with one worker for each kubelet.

use evictlab_case::{Case, KnownBug, LoadedCase, Name};
use evictlab_cluster::{Kubelet, KubeletGroup, group_by_skew};
use evictlab_judge::known_bug;

use super::check::ExportError;
use super::signal::is_per_node;

/// Maximum length of a cluster name: node names have at most 63 characters, and kind appends
/// `-control-plane`.
const MAX_CLUSTER_NAME: usize = 48;

/// The cluster of an exported case.
pub(crate) struct ExportCluster<'a> {
    /// Name of the kind cluster.
    pub name: String,
    /// The kubelets and the control plane image.
    pub group: KubeletGroup,
    /// The workers in the order of the kubelets.
    pub workers: Vec<Worker<'a>>,
}

/// A worker with the namespace of its pods.
pub(crate) struct Worker<'a> {
    /// Name of the node.
    pub node: String,
    /// Namespace of the pods.
    pub namespace: String,
    /// The kubelet.
    pub kubelet: &'a Kubelet,
    /// The known bug of this kubelet.
    pub bug: Option<&'a KnownBug>,
}

impl<'a> ExportCluster<'a> {
    /// Returns the cluster for a case on these kubelets.
    pub(crate) fn new(loaded: &'a LoadedCase, kubelets: &'a [Kubelet]) -> Result<Self, ExportError> {
        let case = &loaded.case;
        if let Some(other) = kubelets.iter().find(|kubelet| !case.kubelet.matches(&kubelet.version)) {
            let (id, range) = (loaded.id(), case.kubelet.to_string());
            return Err(ExportError::UnsupportedKubelet { case: id, range, kubelet: other.label.clone() });
        }
        let mut groups = group_by_skew(kubelets.to_vec())?;
        let labels = || kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
        let group = match groups.len() {
            1 => groups.remove(0),
            clusters => return Err(ExportError::SeveralClusters { clusters, kubelets: labels() }),
        };
        let shared = case.pressure.as_ref().filter(|pressure| !is_per_node(pressure.signal));
        if let (Some(pressure), [_, _, ..]) = (shared, kubelets) {
            let signal = pressure.signal.as_str();
            return Err(ExportError::SharedHost { case: loaded.id(), signal, kubelets: labels() });
        }
        let name = case.name.as_str().chars().take(MAX_CLUSTER_NAME).collect::<String>();
        let name = name.trim_end_matches('-').to_owned();
        let workers = kubelets.iter().enumerate();
        let workers = workers.map(|(place, kubelet)| Worker::new(case, &name, place, kubelet)).collect();
        Ok(Self { name, group, workers })
    }
}

impl<'a> Worker<'a> {
    fn new(case: &'a Case, cluster: &str, place: usize, kubelet: &'a Kubelet) -> Self {
        // kind does not number the first worker.
        let number = if place == 0 { String::new() } else { (place + 1).to_string() };
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        Self {
            node: format!("{cluster}-worker{number}"),
            namespace: kubelet.label.chars().map(plain).collect(),
            kubelet,
            bug: known_bug(case, &kubelet.version, None),
        }
    }

    /// Returns the pods that this kubelet evicts, which a known bug may change.
    pub(crate) fn evicted(&self, case: &'a Case) -> &'a [Name] {
        self.bug.and_then(|bug| bug.evicted.as_ref()).unwrap_or(&case.expect.evicted)
    }

    /// Returns the file name of the kubelet in the directory, if it is a local binary.
    pub(crate) fn binary(&self) -> Option<String> {
        self.kubelet.binary.as_ref().map(|_| format!("kubelet-{}", self.namespace))
    }
}
