//! The workers of an exported case, one for each kubelet.

use crate::case::{Case, KnownBug, LoadedCase, Name};
use crate::cluster::{Group, Kubelet, group};
use crate::judge::known_bug;

use super::refusal::NotExportable;
use super::signal::of_each_node;

/// Node names are host names of at most 63 characters, and kind adds `-control-plane`.
const LONGEST: usize = 48;

/// The cluster of an exported case.
pub struct Cluster<'a> {
    /// What `kind` calls it.
    pub name: String,
    /// Who shares it.
    pub group: Group,
    /// Its workers, in the order that they were asked for.
    pub workers: Vec<Worker<'a>>,
}

/// A worker with the namespace of its pods.
pub struct Worker<'a> {
    /// What kind calls it.
    pub node: String,
    /// Where its pods are.
    pub namespace: String,
    /// What runs on it.
    pub kubelet: &'a Kubelet,
    /// The known bug that this kubelet has.
    pub bug: Option<&'a KnownBug>,
}

impl<'a> Cluster<'a> {
    /// The cluster for a case on these kubelets.
    pub fn of(loaded: &'a LoadedCase, kubelets: &'a [Kubelet]) -> Result<Self, NotExportable> {
        let case = &loaded.case;
        if let Some(other) = kubelets.iter().find(|kubelet| !case.kubelet.matches(&kubelet.version)) {
            let (id, range) = (loaded.id(), case.kubelet.to_string());
            return Err(NotExportable::OtherKubelets { case: id, range, kubelet: other.label.clone() });
        }
        let mut groups = group(kubelets.to_vec())?;
        let labels = || kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
        let group = match groups.len() {
            1 => groups.remove(0),
            clusters => return Err(NotExportable::Apart { clusters, kubelets: labels() }),
        };
        let shared = case.pressure.as_ref().filter(|pressure| !of_each_node(pressure.signal));
        if let (Some(pressure), [_, _, ..]) = (shared, kubelets) {
            let signal = pressure.signal.as_str();
            return Err(NotExportable::SharedHost { case: loaded.id(), signal, kubelets: labels() });
        }
        let name = case.name.as_str().chars().take(LONGEST).collect::<String>();
        let name = name.trim_end_matches('-').to_owned();
        let workers = kubelets.iter().enumerate();
        let workers = workers.map(|(place, kubelet)| Worker::new(case, &name, place, kubelet)).collect();
        Ok(Self { name, group, workers })
    }
}

impl<'a> Worker<'a> {
    fn new(case: &'a Case, cluster: &str, place: usize, kubelet: &'a Kubelet) -> Self {
        // kind's own names: the first has no number.
        let number = if place == 0 { String::new() } else { (place + 1).to_string() };
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        Self {
            node: format!("{cluster}-worker{number}"),
            namespace: kubelet.label.chars().map(plain).collect(),
            kubelet,
            bug: known_bug(case, &kubelet.version),
        }
    }

    /// The pods that this kubelet evicts: with a known bug they may be others.
    pub fn evicted(&self, case: &'a Case) -> &'a [Name] {
        self.bug.and_then(|bug| bug.evicted.as_ref()).unwrap_or(&case.expect.evicted)
    }

    /// Its kubelet's file in the folder, where that is a binary of its own.
    pub fn binary(&self) -> Option<String> {
        self.kubelet.binary.as_ref().map(|_| format!("kubelet-{}", self.namespace))
    }
}
