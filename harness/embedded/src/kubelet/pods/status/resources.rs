//! Pod-level resources in the status (`InPlacePodLevelResourcesVerticalScaling`, on by default
//! since 1.36).

use std::collections::{BTreeMap, BTreeSet};

use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::builder::StatusBuilder;

impl StatusBuilder<'_> {
    /// Sets `resources` to the pod's own or to the sum of its containers', and `allocatedResources`
    /// to the requests.
    pub(super) fn pod_resources(&self, status: &mut Value) {
        let pod = &self.manifest().pod;
        let stated = &self.worker.object["spec"]["resources"];
        let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
        let mut names: BTreeSet<&str> = containers
            .flat_map(|container| {
                container.resources.requests.keys().chain(container.resources.limits.keys())
            })
            .map(String::as_str)
            .collect();
        if let Some(own) = &pod.spec.resources {
            names.extend(own.requests.keys().map(String::as_str));
        }
        // Sidecars count as they do since 1.34.
        let version = KubeletVersion::from_minor(34);
        let requests: Map<String, Value> = names
            .into_iter()
            .map(|name| (name.to_owned(), pod.request(&version, name)))
            .filter(|(_, request)| !request.is_zero())
            .map(|(name, request)| (name, json!(request.to_string())))
            .collect();
        if !requests.is_empty() {
            status["allocatedResources"] = json!(requests);
        }
        status["resources"] = if stated.is_null() {
            let limits = self.limits();
            let mut resources = json!({});
            if !limits.is_empty() {
                resources["limits"] = json!(limits);
            }
            if !requests.is_empty() {
                resources["requests"] = json!(requests);
            }
            resources
        } else {
            stated.clone()
        };
    }

    /// Returns the sum of the limits of the regular containers.
    fn limits(&self) -> Map<String, Value> {
        let mut sums: BTreeMap<&str, Quantity> = BTreeMap::new();
        for container in &self.manifest().pod.spec.containers {
            for (name, limit) in &container.resources.limits {
                let sum = sums.remove(name.as_str()).map_or_else(|| limit.clone(), |sum| sum + limit);
                sums.insert(name, sum);
            }
        }
        sums.into_iter().map(|(name, sum)| (name.to_owned(), json!(sum.to_string()))).collect()
    }
}
