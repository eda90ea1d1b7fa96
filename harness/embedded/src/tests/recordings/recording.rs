//! Recordings, in a folder per kubelet version.

use crate::{CgroupVersion, Housekeeping, NodeOptions};
use evictlab_rules::KubeletVersion;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::files::{RULES, read_recordings};

/// Recording of an eviction.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Recording {
    pub kubelet_version: KubeletVersion,
    pub node: String,
    pub kubelet_config_overrides: Map<String, Value>,
    pub pods_created: Vec<Value>,
    pub pods_final: Vec<Value>,
    pub events: Vec<Value>,
    pub samples: Vec<Value>,
    pub summary_before: Value,
    #[serde(default)]
    pub cgroup: Option<String>,
    #[serde(skip)]
    pub name: String,
}

/// Returns the recordings for the rules and those of the model.
pub(super) fn all() -> Vec<Recording> {
    let recordings = read_recordings(&[RULES, "recordings"]);
    recordings.into_iter().map(|(name, recording)| Recording { name, ..recording }).collect()
}

impl Recording {
    /// Returns the options of the recorded node before its pods.
    pub(super) fn node(&self) -> NodeOptions {
        let number =
            |path: &str| self.summary_before.pointer(path).and_then(Value::as_u64).unwrap_or_default();
        let available = number("/node/memory/availableBytes");
        let working_set = number("/node/memory/workingSetBytes");
        // System pods are simulated, so their usage is subtracted.
        let pods = self.summary_before["node"]["systemContainers"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|container| container["name"] == "pods")
            .and_then(|container| container["memory"]["workingSetBytes"].as_u64())
            .unwrap_or_default();
        let mut node = NodeOptions::new(self.node.clone(), self.kubelet_version.clone());
        node.memory = available + working_set;
        node.memory_used = working_set.saturating_sub(pods);
        node.disk = number("/node/fs/capacityBytes");
        node.disk_used = node.disk - number("/node/fs/availableBytes");
        node.inodes = number("/node/fs/inodes");
        node.inodes_used = node.inodes - number("/node/fs/inodesFree");
        node.max_pid = number("/node/rlimit/maxpid");
        node.processes = number("/node/rlimit/curproc");
        node.cgroup = self.cgroup();
        node
    }

    /// Returns the recorded cgroup version; the first recordings, all on v1, omit it.
    fn cgroup(&self) -> CgroupVersion {
        self.cgroup.as_deref().map_or(CgroupVersion::V1, |text| text.parse().unwrap())
    }

    /// Returns the interval at which cAdvisor measured, according to the times of pod statistics:
    /// every 1 to 2 s with `--housekeeping-interval=1s`. The first recordings claim the flag but
    /// were made without it.
    pub(super) fn housekeeping(&self) -> Housekeeping {
        let stamps = |uid: &Value| -> Vec<Timestamp> {
            let pods = self.samples.iter().flat_map(|sample| sample["pods"].as_array().into_iter().flatten());
            let mut stamps: Vec<Timestamp> = pods
                .filter(|pod| pod["podRef"]["uid"] == *uid)
                .filter_map(|pod| pod["memory"]["time"].as_str()?.parse().ok())
                .collect();
            stamps.dedup();
            stamps
        };
        let is_fast = self
            .pods_final
            .iter()
            .map(|pod| stamps(&pod["metadata"]["uid"]))
            .any(|stamps| stamps.windows(2).any(|pair| pair[1].duration_since(pair[0]).as_secs() < 8));
        if is_fast { Housekeeping::Fast } else { Housekeeping::Default }
    }

    /// Returns the duration of the recording in seconds since the first pod was created.
    pub(super) fn length(&self) -> f64 {
        self.samples.last().and_then(|sample| sample["t"].as_f64()).unwrap_or_default()
    }

    /// Returns the ephemeral containers with their pods' names.
    pub(super) fn ephemeral(&self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        for pod in &self.pods_final {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            for container in pod["spec"]["ephemeralContainers"].as_array().into_iter().flatten() {
                all.push((name.to_owned(), container.clone()));
            }
        }
        all
    }
}
