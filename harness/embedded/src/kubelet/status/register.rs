//! Registration of the node (`registerWithAPIServer`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NodeSystemInfo;
use serde_json::json;

use super::update::{ResourceList, extended};
use crate::context::SimContext;
use crate::kubelet::http::KUBELET_PORT;
use crate::kubelet::state::Kubelet;
use crate::resource::{Kind, ObjectExt};

impl Kubelet {
    /// Creates the node object, or updates labels and version of an existing one. Registration
    /// resets extended resources to 0: without a device plugin checkpoint the kubelet treats the
    /// node as new (`reconcileExtendedResource`).
    pub(super) fn register(&mut self, ctx: &mut SimContext) {
        let name = self.options.name.clone();
        let labels = self.labels();
        let known = ctx.store.update(Kind::Node, "", &name, |node| {
            node.metadata_mut().change("labels", |known: &mut BTreeMap<String, String>| {
                known.extend(labels.clone());
            });
            let status = node.status_mut();
            status["nodeInfo"].write("kubeletVersion", self.options.version.to_string());
            let capacity: ResourceList = status.read("capacity");
            let reset = extended(&capacity).map(|(name, _)| (name.to_owned(), "0".to_owned()));
            let reset: ResourceList = reset.collect();
            for list in ["capacity", "allocatable"] {
                status.change(list, |amounts: &mut ResourceList| amounts.extend(reset.clone()));
            }
        });
        if known.is_some() {
            return;
        }
        let place = ctx.store.list(Kind::Node, None).count();
        let cidr = format!("10.{}.{}.0/24", 244 + place / 256, place % 256);
        let address = format!("172.18.{}.{}", (place + 2) / 256, (place + 2) % 256);
        let (capacity, allocatable) = self.node_resources(&ResourceList::new());
        let node = json!({
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": {
                    "node.alpha.kubernetes.io/ttl": "0",
                    "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                },
            },
            "spec": {
                "podCIDR": cidr,
                "podCIDRs": [cidr],
                "providerID": format!("kind://embedded/evictlab/{name}"),
            },
            "status": {
                "capacity": capacity,
                "allocatable": allocatable,
                "addresses": [
                    {"type": "InternalIP", "address": address},
                    {"type": "Hostname", "address": name},
                ],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
                "nodeInfo": self.node_info(ctx),
            },
        });
        // The update has shown that the name is free.
        let _ = ctx.store.create(Kind::Node, node, ctx.now);
    }

    fn labels(&self) -> BTreeMap<String, String> {
        let own = [
            ("beta.kubernetes.io/arch", "amd64"),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/hostname", &self.options.name),
            ("kubernetes.io/os", "linux"),
        ];
        own.into_iter().map(|(label, value)| (label.to_owned(), value.to_owned())).collect()
    }

    fn node_info(&self, ctx: &mut SimContext) -> NodeSystemInfo {
        let version = self.options.version.to_string();
        NodeSystemInfo {
            machine_id: ctx.store.uid().replace('-', ""),
            system_uuid: ctx.store.uid(),
            boot_id: ctx.store.uid(),
            kernel_version: "6.8.0-evictlab".to_owned(),
            os_image: "evictlab embedded".to_owned(),
            container_runtime_version: "containerd://2.1.1".to_owned(),
            // Deprecated; empty since 1.33 (KEP-4004).
            kube_proxy_version: if self.options.version.at_least(33) {
                String::new()
            } else {
                version.clone()
            },
            kubelet_version: version,
            operating_system: "linux".to_owned(),
            architecture: "amd64".to_owned(),
            ..NodeSystemInfo::default()
        }
    }
}
