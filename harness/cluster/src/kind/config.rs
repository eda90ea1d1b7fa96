//! The kind configuration of a cluster: a base file with the workers of the kubelets.

use std::path::Path;

use evictlab_rules::CgroupVersion;
use serde_yaml::{Mapping, Value};

use super::skew::KubeletGroup;
use crate::bounded_name::bounded_name;
use crate::error::ConfigError;
use crate::kubelet_config;

/// Default base file.
const DEFAULT: &str = include_str!("../../files/kind-default.yaml");

/// Label of worker nodes; its value is the label of the kubelet.
pub(super) const KUBELET_LABEL: &str = "evictlab.dev/kubelet";

/// Base of a kind configuration.
#[derive(Clone, Debug)]
pub struct KindConfig {
    file: String,
    cluster: Mapping,
}

impl KindConfig {
    /// Loads the file at this path, or the default file.
    ///
    /// # Errors
    /// The file cannot be read or is not a kind configuration.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = path else {
            return Self::parse("kind-configs/default.yaml".to_owned(), DEFAULT);
        };
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(path.display().to_string(), &text)
    }

    fn parse(file: String, text: &str) -> Result<Self, ConfigError> {
        let invalid = |problem: String| ConfigError::Parse { file: file.clone(), problem };
        let config: Value =
            serde_saphyr::from_str(text).map_err(|error| invalid(error.without_snippet().to_string()))?;
        let cluster = config.as_mapping().cloned().ok_or_else(|| invalid("not a mapping".to_owned()))?;
        if cluster.get("kind").and_then(Value::as_str) != Some("Cluster") {
            return Err(invalid("`kind: Cluster` is missing".to_owned()));
        }
        Ok(Self { file, cluster })
    }

    /// Composes the configuration for a group of kubelets with `nodes` workers per kubelet. Adds
    /// the fields that the kubelets need to start on this cgroup version
    /// ([`kubelet_config::at_boot`]).
    pub fn compose(
        &self,
        group: &KubeletGroup,
        nodes: usize,
        cgroup: CgroupVersion,
    ) -> Result<String, ConfigError> {
        let invalid = |problem: String| ConfigError::Parse { file: self.file.clone(), problem };
        let mut cluster = self.cluster.clone();
        let listed = cluster.get("nodes").and_then(Value::as_sequence).cloned().unwrap_or_default();
        let role = |wanted: &str| {
            listed
                .iter()
                .find(|node| node.get("role").and_then(Value::as_str) == Some(wanted))
                .and_then(Value::as_mapping)
                .cloned()
        };
        let mut control_plane = role("control-plane").unwrap_or_else(|| with_role("control-plane"));
        control_plane.insert("image".into(), group.control_plane.clone().into());
        let worker = role("worker").unwrap_or_else(|| with_role("worker"));
        let mut all = vec![Value::Mapping(control_plane)];
        for kubelet in &group.kubelets {
            let mut node = worker.clone();
            node.insert("image".into(), kubelet.image.clone().into());
            let mut labels = node.get("labels").and_then(Value::as_mapping).cloned().unwrap_or_default();
            labels.insert(KUBELET_LABEL.into(), label_value(&kubelet.label).into());
            node.insert("labels".into(), labels.into());
            all.extend(std::iter::repeat_n(Value::Mapping(node), nodes));
        }
        cluster.insert("nodes".into(), all.into());
        let fields = kubelet_config::at_boot(&group.version, cgroup);
        if !fields.is_empty() {
            let patches = cluster
                .entry("kubeadmConfigPatches".into())
                .or_insert_with(|| Value::Sequence(Vec::new()))
                .as_sequence_mut()
                .ok_or_else(|| invalid("`kubeadmConfigPatches` is not a list".to_owned()))?;
            let fields = serde_yaml::to_string(&fields).map_err(|error| invalid(error.to_string()))?;
            patches.push(format!("kind: KubeletConfiguration\n{fields}").into());
        }
        serde_yaml::to_string(&cluster).map_err(|error| invalid(error.to_string()))
    }
}

fn with_role(role: &str) -> Mapping {
    Mapping::from_iter([("role".into(), role.into())])
}

/// Maximum length of a label value.
const MAX_LABEL_VALUE: usize = 63;

/// Converts the label of a kubelet to a Kubernetes label value; other characters become `_`.
pub fn label_value(label: &str) -> String {
    let kept: String =
        label.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    bounded_name(kept.trim_matches(|c: char| !c.is_ascii_alphanumeric()), MAX_LABEL_VALUE)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::kind::skew::group_by_skew;
    use crate::kubelet::Kubelet;

    fn group(versions: &[&str]) -> KubeletGroup {
        let kubelet = |version: &&str| Kubelet {
            label: version.to_string(),
            version: version.parse().unwrap(),
            image: format!("kindest/node:{version}"),
            image_version: version.parse().unwrap(),
            binary: None,
        };
        group_by_skew(versions.iter().map(kubelet).collect()).unwrap().remove(0)
    }

    #[test]
    fn composes_one_worker_per_kubelet_and_the_newest_control_plane() {
        let text = KindConfig::load(None)
            .unwrap()
            .compose(&group(&["v1.31.14", "v1.32.13"]), 1, CgroupVersion::V1)
            .unwrap();
        let config: Value = serde_saphyr::from_str(&text).unwrap();
        let nodes: Vec<(String, String)> = config["nodes"]
            .as_sequence()
            .unwrap()
            .iter()
            .map(|n| (n["role"].as_str().unwrap().to_owned(), n["image"].as_str().unwrap().to_owned()))
            .collect();
        let node = |role: &str, image: &str| (role.to_owned(), format!("kindest/node:{image}"));
        assert_eq!(
            nodes,
            [node("control-plane", "v1.32.13"), node("worker", "v1.32.13"), node("worker", "v1.31.14")]
        );
        assert!(!text.contains("failCgroupV1"), "kubelet 1.32 does not refuse cgroup v1");
    }

    #[test]
    fn new_kubelets_are_configured_for_cgroup_v1() {
        let base = KindConfig::load(None).unwrap();
        for (cgroup, is_set) in [(CgroupVersion::V1, true), (CgroupVersion::V2, false)] {
            let text = base.compose(&group(&["v1.36.2"]), 2, cgroup).unwrap();
            assert_eq!(text.contains("failCgroupV1: false"), is_set);
            assert_eq!(text.matches("role: worker").count(), 2);
        }
    }

    /// Files of `kind-configs/`.
    fn shipped() -> Vec<PathBuf> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kind-configs");
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect()
    }

    #[test]
    fn shipped_files_keep_their_patches() {
        assert!(shipped().len() > 1);
        for path in shipped() {
            let file = path.display();
            let own: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(own["apiVersion"], "kind.x-k8s.io/v1alpha4", "{file}");
            let composed = KindConfig::load(Some(&path))
                .unwrap()
                .compose(&group(&["v1.32.13"]), 1, CgroupVersion::V2)
                .unwrap();
            let composed: Value = serde_saphyr::from_str(&composed).unwrap();
            assert_eq!(composed["kubeadmConfigPatches"], own["kubeadmConfigPatches"], "{file}");
            assert_eq!(composed["nodes"].as_sequence().unwrap().len(), 2, "{file}");
        }
    }

    #[test]
    fn shipped_files_have_the_fields_of_every_run() {
        for path in shipped() {
            let config: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let patches = config["kubeadmConfigPatches"].as_sequence().unwrap().iter();
            let mut kubelet = patches
                .map(|patch| serde_saphyr::from_str::<serde_json::Value>(patch.as_str().unwrap()).unwrap())
                .find(|patch| patch["kind"] == "KubeletConfiguration")
                .unwrap();
            let fields = kubelet.as_object_mut().unwrap();
            fields.retain(|name, _| !["kind", "failCgroupV1"].contains(&name.as_str()));
            assert_eq!(*fields, kubelet_config::base(CgroupVersion::V2), "{}", path.display());
        }
    }

    #[test]
    fn rejects_invalid_files_by_name() {
        for text in ["- a\n", "kind: Pod\n", "kind: Cluster\nkubeadmConfigPatches: 3\n", "a: [", ""] {
            let base = KindConfig::parse("mine.yaml".to_owned(), text);
            let composed = base.and_then(|base| base.compose(&group(&["v1.36.2"]), 1, CgroupVersion::V1));
            let error = composed.unwrap_err().to_string();
            assert!(error.starts_with("failed to parse kind configuration mine.yaml: "), "{error}");
        }
    }

    #[test]
    fn converts_labels_to_label_values() {
        assert_eq!(label_value("v1.32.13 (./kubelet)"), "v1.32.13__._kubelet");
        // The character at the limit must not be the last one, and the second of two kubelets of a
        // version has a label of its own.
        let version = format!("v1.37.0-alpha.0.{}-dirty", "1".repeat(46));
        let values = [version.clone(), format!("{version}-2")].map(|label| label_value(&label));
        assert_ne!(values[0], values[1]);
        for value in values {
            assert!(value.len() <= 63 && value.ends_with(|c: char| c.is_ascii_alphanumeric()), "{value}");
        }
    }
}
