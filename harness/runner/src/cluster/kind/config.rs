//! The kind configuration of a cluster: a file of `kind-configs/` with the workers that the kubelets ask for.

use std::path::{Path, PathBuf};

use serde_yaml::{Mapping, Value};

use super::skew::Group;
use crate::tune;

/// The default file, as it lies in `kind-configs/`.
pub const DEFAULT: &str = include_str!("../../../../../kind-configs/default.yaml");

/// The node label that says which kubelet a worker was made for.
pub const KUBELET_LABEL: &str = "evictlab.dev/kubelet";

/// The kind configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No such file, or not readable.
    #[error("the kind configuration {path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not YAML, or not a kind cluster.
    #[error("{file} is no kind configuration: {problem}")]
    Form {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Where a cluster's configuration comes from.
#[derive(Clone, Debug)]
pub struct Base {
    file: String,
    cluster: Mapping,
}

impl Base {
    /// The file at this path, or the default one; refused here where it is no kind cluster, before anything is made.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = path else {
            return Self::read("kind-configs/default.yaml".to_owned(), DEFAULT);
        };
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::read(path.display().to_string(), &text)
    }

    fn read(file: String, text: &str) -> Result<Self, ConfigError> {
        let form = |problem: String| ConfigError::Form { file: file.clone(), problem };
        let config: Value = serde_yaml::from_str(text).map_err(|error| form(error.to_string()))?;
        let cluster = config.as_mapping().cloned().ok_or_else(|| form("it is not a mapping".to_owned()))?;
        if cluster.get("kind").and_then(Value::as_str) != Some("Cluster") {
            return Err(form("`kind: Cluster` is missing".to_owned()));
        }
        Ok(Self { file, cluster })
    }

    /// The configuration for a group of kubelets, `nodes` workers for each. The kubelets of all nodes are given what they need
    /// to start on a host with such control groups ([`tune::at_boot`]).
    pub fn compose(&self, group: &Group, nodes: usize, cgroup_v1: bool) -> Result<String, ConfigError> {
        let form = |problem: String| ConfigError::Form { file: self.file.clone(), problem };
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
        let fields = tune::at_boot(&group.version, cgroup_v1);
        if !fields.is_empty() {
            let patches = cluster
                .entry("kubeadmConfigPatches".into())
                .or_insert_with(|| Value::Sequence(Vec::new()))
                .as_sequence_mut()
                .ok_or_else(|| form("`kubeadmConfigPatches` is no list".to_owned()))?;
            let fields = serde_yaml::to_string(&fields).map_err(|error| form(error.to_string()))?;
            patches.push(format!("kind: KubeletConfiguration\n{fields}").into());
        }
        serde_yaml::to_string(&cluster).map_err(|error| form(error.to_string()))
    }
}

fn with_role(role: &str) -> Mapping {
    Mapping::from_iter([("role".into(), role.into())])
}

/// A kubelet's label as a label's value: what Kubernetes does not allow there becomes `_`.
pub fn label_value(label: &str) -> String {
    let kept: String =
        label.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    kept.trim_matches(|c: char| !c.is_ascii_alphanumeric()).chars().take(63).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Kubelet;

    fn group(versions: &[&str]) -> Group {
        let kubelet = |version: &&str| Kubelet {
            label: version.to_string(),
            version: version.parse().unwrap(),
            image: format!("kindest/node:{version}"),
            image_version: version.parse().unwrap(),
            binary: None,
        };
        crate::cluster::group(versions.iter().map(kubelet).collect()).unwrap().remove(0)
    }

    #[test]
    fn one_worker_for_each_kubelet_and_the_newest_control_plane() {
        let text = Base::load(None).unwrap().compose(&group(&["v1.31.14", "v1.32.13"]), 1, true).unwrap();
        let config: Value = serde_yaml::from_str(&text).unwrap();
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
        assert!(!text.contains("failCgroupV1"), "1.32 takes cgroup v1 as it is");
    }

    #[test]
    fn a_new_kubelet_on_cgroup_v1_is_told_to_put_up_with_it() {
        let base = Base::load(None).unwrap();
        for (cgroup_v1, told) in [(true, true), (false, false)] {
            let text = base.compose(&group(&["v1.36.2"]), 2, cgroup_v1).unwrap();
            assert_eq!(text.contains("failCgroupV1: false"), told);
            assert_eq!(text.matches("role: worker").count(), 2);
        }
    }

    /// The files of `kind-configs/`, by name.
    fn shipped() -> Vec<PathBuf> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kind-configs");
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect()
    }

    #[test]
    fn every_shipped_file_is_taken_and_keeps_its_patches() {
        assert!(shipped().len() > 1);
        for path in shipped() {
            let file = path.display();
            let own: Value = serde_yaml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(own["apiVersion"], "kind.x-k8s.io/v1alpha4", "{file}");
            let composed = Base::load(Some(&path)).unwrap().compose(&group(&["v1.32.13"]), 1, false).unwrap();
            let composed: Value = serde_yaml::from_str(&composed).unwrap();
            assert_eq!(composed["kubeadmConfigPatches"], own["kubeadmConfigPatches"], "{file}");
            assert_eq!(composed["nodes"].as_sequence().unwrap().len(), 2, "{file}");
        }
    }

    #[test]
    fn every_shipped_file_gives_kubelets_what_tuning_gives_them() {
        for path in shipped() {
            let config: Value = serde_yaml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let patches = config["kubeadmConfigPatches"].as_sequence().unwrap().iter();
            let mut kubelet = patches
                .map(|patch| serde_yaml::from_str::<serde_json::Value>(patch.as_str().unwrap()).unwrap())
                .find(|patch| patch["kind"] == "KubeletConfiguration")
                .unwrap();
            let fields = kubelet.as_object_mut().unwrap();
            fields.retain(|name, _| !["kind", "failCgroupV1"].contains(&name.as_str()));
            assert_eq!(*fields, crate::tune::base(false), "{}", path.display());
        }
    }

    #[test]
    fn what_is_no_kind_configuration_is_refused_by_name() {
        for text in ["- a\n", "kind: Pod\n", "kind: Cluster\nkubeadmConfigPatches: 3\n", "a: [", ""] {
            let base = Base::read("mine.yaml".to_owned(), text);
            let composed = base.and_then(|base| base.compose(&group(&["v1.36.2"]), 1, true));
            let error = composed.unwrap_err().to_string();
            assert!(error.starts_with("mine.yaml is no kind configuration"), "{error}");
        }
    }

    #[test]
    fn labels_are_made_fit_for_kubernetes() {
        assert_eq!(label_value("v1.32.13 (./kubelet)"), "v1.32.13__._kubelet");
    }
}
