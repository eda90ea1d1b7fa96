//! Pod-level resources in the status (`InPlacePodLevelResourcesVerticalScaling`, on by default
//! since 1.36).

use std::collections::{BTreeMap, BTreeSet};

use evictlab_rules::quantity::Quantity;
use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource as meta;

use super::builder::StatusBuilder;
use crate::resource::PodStatus;

impl StatusBuilder<'_> {
    /// Sets `resources` to the pod's own or to the sum of its containers', and `allocatedResources`
    /// to the requests.
    pub(super) fn set_pod_resources(&self, status: &mut PodStatus) {
        let pod = &self.manifest().pod;
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
        names.extend(pod.spec.overhead.keys().map(String::as_str));
        let requests: BTreeMap<_, _> = names
            .into_iter()
            .map(|name| (name.to_owned(), pod.scheduling_request(name)))
            .filter(|(_, request)| !request.is_zero())
            .map(|(name, request)| (name, meta::Quantity(request.to_string())))
            .collect();
        let requests = Some(requests).filter(|requests| !requests.is_empty());
        status.allocated_resources = requests.clone();
        let stated = self.manifest().spec.resources.clone();
        status.resources = Some(stated.unwrap_or_else(|| ResourceRequirements {
            limits: Some(self.limits()).filter(|limits| !limits.is_empty()),
            requests,
            claims: None,
        }));
    }

    /// Returns the sum of the limits of the regular containers.
    fn limits(&self) -> BTreeMap<String, meta::Quantity> {
        let mut sums: BTreeMap<&str, Quantity> = BTreeMap::new();
        for container in &self.manifest().pod.spec.containers {
            for (name, limit) in &container.resources.limits {
                let sum = sums.remove(name.as_str()).map_or_else(|| limit.clone(), |sum| sum + limit);
                sums.insert(name, sum);
            }
        }
        sums.into_iter().map(|(name, sum)| (name.to_owned(), meta::Quantity(sum.to_string()))).collect()
    }
}
