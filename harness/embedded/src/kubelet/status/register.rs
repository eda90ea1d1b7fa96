//! Registration of the node (`registerWithAPIServer`).

use serde_json::{Map, Value, json};

use super::update::extended;
use crate::context::SimContext;
use crate::kubelet::state::Kubelet;
use crate::resource::Kind;

impl Kubelet {
    /// Creates the node object, or updates labels and version of an existing one. Registration
    /// resets extended resources to 0: without a device plugin checkpoint the kubelet treats the
    /// node as new (`reconcileExtendedResource`).
    pub(super) fn register(&mut self, ctx: &mut SimContext) {
        let name = self.identity.node.clone();
        let labels = self.labels();
        let known = ctx.store.update(Kind::Node, "", &name, |node| {
            for (label, value) in &labels {
                node["metadata"]["labels"][label] = value.clone();
            }
            node["status"]["nodeInfo"]["kubeletVersion"] = json!(self.identity.version.to_string());
            let names: Vec<String> =
                extended(&node["status"]["capacity"]).map(|(name, _)| name.to_owned()).collect();
            for (list, name) in
                ["capacity", "allocatable"].iter().flat_map(|list| names.iter().map(move |name| (list, name)))
            {
                node["status"][list][name] = json!("0");
            }
        });
        if known.is_some() {
            return;
        }
        let place = ctx.store.list(Kind::Node, None).count();
        let cidr = format!("10.{}.{}.0/24", 244 + place / 256, place % 256);
        let address = format!("172.18.{}.{}", (place + 2) / 256, (place + 2) % 256);
        let (capacity, allocatable) = self.node_resources(&Value::Null);
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
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
                "nodeInfo": self.node_info(ctx),
            },
        });
        // The update has shown that the name is free.
        let _ = ctx.store.create(Kind::Node, node, ctx.now);
    }

    fn labels(&self) -> Map<String, Value> {
        let name = &self.identity.node;
        let own = [
            ("beta.kubernetes.io/arch", "amd64"),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/hostname", name),
            ("kubernetes.io/os", "linux"),
        ];
        let own = own.into_iter().map(|(label, value)| (label.to_owned(), json!(value)));
        let stated = self.identity.options.labels.iter();
        own.chain(stated.map(|(label, value)| (label.clone(), json!(value)))).collect()
    }

    fn node_info(&self, ctx: &mut SimContext) -> Value {
        let version = self.identity.version.to_string();
        let mut info = json!({
            "machineID": ctx.store.uid().replace('-', ""),
            "systemUUID": ctx.store.uid(),
            "bootID": ctx.store.uid(),
            "kernelVersion": "6.8.0-evictlab",
            "osImage": "evictlab embedded",
            "containerRuntimeVersion": "containerd://2.1.1",
            "kubeletVersion": version,
            "operatingSystem": "linux",
            "architecture": "amd64",
        });
        // Deprecated; empty since 1.33 (KEP-4004).
        info["kubeProxyVersion"] = json!(if self.identity.version.at_least(33) { "" } else { &version });
        info
    }
}
