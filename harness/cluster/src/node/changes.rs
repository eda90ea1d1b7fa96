//! Changes to a node through the API server: taints, capacity, cordon. Everything that evictlab
//! adds has the prefix [`DOMAIN_PREFIX`], so that [`Node::clean`] can find and remove it.

use evictlab_case::DOMAIN_PREFIX;
use k8s_openapi::api::core::v1::{Node as ApiNode, Taint};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};

use super::error::NodeError;
use super::worker::Node;
use crate::typed::Typed;

/// Start of the keys of the taints by which Kubernetes shows the state of a node.
pub(crate) const SYSTEM_TAINT_PREFIX: &str = "node.kubernetes.io/";
/// Key of the taint of a cordoned node.
pub const CORDONED: &str = "node.kubernetes.io/unschedulable";
/// Maximum number of attempts of an update that conflicts with other writers.
const CONFLICT_ATTEMPTS: u32 = 10;

/// Returns the taints of a node.
pub fn taints(node: &ApiNode) -> impl Iterator<Item = &Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten())
}

/// Returns the keys of the taints by which Kubernetes shows the state of a node.
pub fn system_taints(node: &ApiNode) -> Vec<String> {
    taints(node).map(|taint| taint.key.clone()).filter(|key| key.starts_with(SYSTEM_TAINT_PREFIX)).collect()
}

impl Node {
    /// Adds a taint.
    pub async fn taint(&self, taint: &Taint) -> Result<(), NodeError> {
        self.change_taints(|taints| taints.push(taint.clone())).await
    }

    /// Removes all taints with a key.
    pub async fn untaint(&self, key: &str) -> Result<(), NodeError> {
        self.change_taints(|taints| taints.retain(|taint| taint.key != key)).await
    }

    /// Tolerations that a pod needs to be scheduled to the node in its current state. Taints of
    /// node conditions and taints that evictlab added are not tolerated.
    pub async fn tolerations(&self) -> Result<Vec<Value>, NodeError> {
        let node = self.object().await?;
        let permanent =
            taints(&node).filter(|taint| !taint.key.starts_with(SYSTEM_TAINT_PREFIX) && !is_own(taint));
        Ok(permanent
            .map(|taint| json!({"key": taint.key, "operator": "Exists", "effect": taint.effect}))
            .collect())
    }

    /// Cordons or uncordons the node.
    pub async fn cordon(&self, cordoned: bool) -> Result<(), NodeError> {
        let patch = json!({"spec": {"unschedulable": cordoned.then_some(true)}});
        self.patch(&patch, false).await.map_err(|source| self.api_error("change the cordon", source))
    }

    /// Sets extended resources in the capacity of the node; `null` removes one.
    pub async fn advertise(&self, capacity: &Map<String, Value>) -> Result<(), NodeError> {
        let patch = json!({"status": {"capacity": capacity, "allocatable": capacity}});
        self.patch(&patch, true).await.map_err(|source| self.api_error("change the resources", source))
    }

    /// Removes the taints and extended resources that evictlab added, and uncordons the node if
    /// `uncordon` is set.
    pub async fn clean(&self, uncordon: bool) -> Result<(), NodeError> {
        let node = self.object().await?;
        if taints(&node).any(is_own) {
            self.change_taints(|taints| taints.retain(|taint| !is_own(taint))).await?;
        }
        let capacity = node.status.iter().flat_map(|status| status.capacity.iter().flatten());
        let added: Map<String, Value> = capacity
            .filter(|(name, _)| name.starts_with(DOMAIN_PREFIX))
            .map(|(name, _)| (name.clone(), Value::Null))
            .collect();
        if !added.is_empty() {
            self.advertise(&added).await?;
        }
        if uncordon && node.spec.and_then(|spec| spec.unschedulable) == Some(true) {
            self.cordon(false).await?;
        }
        Ok(())
    }

    /// Replaces the list of taints. The control plane changes the list, too: an update that
    /// conflicts is retried with the current list.
    async fn change_taints(&self, change: impl Fn(&mut Vec<Taint>)) -> Result<(), NodeError> {
        let mut attempts = 0;
        loop {
            let node = self.object().await?;
            let mut changed: Vec<Taint> = taints(&node).cloned().collect();
            change(&mut changed);
            let patch = json!({
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": changed},
            });
            attempts += 1;
            match self.patch(&patch, false).await {
                Err(kube::Error::Api(status)) if status.code == 409 && attempts < CONFLICT_ATTEMPTS => {}
                done => return done.map_err(|source| self.api_error("change the taints", source)),
            }
        }
    }

    async fn patch(&self, patch: &Value, status: bool) -> Result<(), kube::Error> {
        let nodes: Api<Typed<ApiNode>> = Api::all(self.client().clone());
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        if status {
            nodes.patch_status(&self.name, &params, &patch).await.map(drop)
        } else {
            nodes.patch(&self.name, &params, &patch).await.map(drop)
        }
    }
}

/// Returns whether evictlab added a taint.
fn is_own(taint: &Taint) -> bool {
    taint.key.starts_with(DOMAIN_PREFIX)
}
