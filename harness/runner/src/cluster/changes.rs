//! What a case does to its node through the API server. Whatever it leaves there is called after [`DOMAIN`], so that it can be found and
//! taken back.

use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};

use super::{Node, NodeError};

/// The domain of everything that the harness adds to a node.
pub const DOMAIN: &str = "evictlab.dev/";
/// How often a change is tried that somebody else's came before.
const TRIES: u32 = 10;

impl Node {
    /// Adds a taint: `{key, value, effect}`.
    pub async fn taint(&self, taint: &Value) -> Result<(), NodeError> {
        self.change_taints(|taints| taints.push(taint.clone())).await
    }

    /// Removes the taints of a key.
    pub async fn untaint(&self, key: &str) -> Result<(), NodeError> {
        self.change_taints(|taints| taints.retain(|taint| taint["key"] != key)).await
    }

    /// What a pod must tolerate to be scheduled to the node as it is now. Taints that tell of its condition are not among it.
    pub async fn tolerations(&self) -> Result<Vec<Value>, NodeError> {
        let object = serde_json::to_value(self.object().await?).unwrap_or_default();
        let taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let own = taints.iter().filter(|taint| {
            taint["key"]
                .as_str()
                .is_some_and(|key| !key.starts_with("node.kubernetes.io/") && !key.starts_with(DOMAIN))
        });
        Ok(own
            .map(|taint| json!({"key": taint["key"], "operator": "Exists", "effect": taint["effect"]}))
            .collect())
    }

    /// Keeps the scheduler from the node, or lets it come back.
    pub async fn cordon(&self, cordoned: bool) -> Result<(), NodeError> {
        let patch = json!({"spec": {"unschedulable": cordoned.then_some(true)}});
        self.patch(&patch, false).await.map_err(|source| self.api("cordon", source))
    }

    /// Gives the node extended resources.
    pub async fn advertise(&self, capacity: &Map<String, Value>) -> Result<(), NodeError> {
        let patch = json!({"status": {"capacity": capacity, "allocatable": capacity}});
        self.patch(&patch, true).await.map_err(|source| self.api("add resources", source))
    }

    /// Takes back what the harness added to the node, and uncordons it if `uncordon`.
    pub async fn clean(&self, uncordon: bool) -> Result<(), NodeError> {
        let object = serde_json::to_value(self.object().await?).unwrap_or_default();
        let of_ours = |value: &Value| value.as_str().is_some_and(|key| key.starts_with(DOMAIN));
        if object["spec"]["taints"].as_array().into_iter().flatten().any(|taint| of_ours(&taint["key"])) {
            self.change_taints(|taints| taints.retain(|taint| !of_ours(&taint["key"]))).await?;
        }
        let capacity = object["status"]["capacity"].as_object().into_iter().flatten();
        let gone: Map<String, Value> = capacity
            .filter(|(name, _)| name.starts_with(DOMAIN))
            .map(|(name, _)| (name.clone(), Value::Null))
            .collect();
        if !gone.is_empty() {
            self.advertise(&gone).await?;
        }
        if uncordon && object["spec"]["unschedulable"] == true {
            self.cordon(false).await?;
        }
        Ok(())
    }

    /// Changes the list of taints; the control plane changes it, too, so that a version that is out of date is read again.
    async fn change_taints(&self, change: impl Fn(&mut Vec<Value>)) -> Result<(), NodeError> {
        let mut tries = 0;
        loop {
            let object = serde_json::to_value(self.object().await?).unwrap_or_default();
            let mut taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
            change(&mut taints);
            let patch = json!({
                "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]},
                "spec": {"taints": taints},
            });
            tries += 1;
            match self.patch(&patch, false).await {
                Err(kube::Error::Api(status)) if status.code == 409 && tries < TRIES => {}
                done => return done.map_err(|source| self.api("change the taints", source)),
            }
        }
    }

    async fn patch(&self, patch: &Value, status: bool) -> Result<(), kube::Error> {
        let nodes: Api<ApiNode> = Api::all(self.client().clone());
        let (how, patch) = (PatchParams::default(), Patch::Merge(patch));
        match status {
            true => nodes.patch_status(&self.name, &how, &patch).await.map(drop),
            false => nodes.patch(&self.name, &how, &patch).await.map(drop),
        }
    }
}
