//! Node lease, the heartbeat of the kubelet (`k8s.io/component-helpers/apimachinery/lease`).

use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use rand::RngExt;
use serde_json::{Value, json};

use crate::context::SimContext;
use crate::kubelet::event::StatusEvent;
use crate::kubelet::state::Kubelet;
use crate::resource::{Kind, ObjectExt};

const NAMESPACE: &str = "kube-node-lease";
/// `nodeLeaseDurationSeconds` × 0.25
const PERIOD: Duration = Duration::from_secs(10);

impl Kubelet {
    pub(super) fn renew_lease(&mut self, ctx: &mut SimContext) {
        let name = self.identity.node.clone();
        let now = Some(ctx.epoch().micro_time(ctx.now));
        let renewed = ctx.store.update(Kind::Lease, NAMESPACE, &name, |lease| {
            lease.change("spec", |spec: &mut LeaseSpec| {
                spec.renew_time = now.clone();
                spec.holder_identity = Some(name.clone());
            });
        });
        if renewed.is_none()
            && let Some(node) = ctx.store.get(Kind::Node, "", &name)
        {
            let spec = LeaseSpec {
                holder_identity: Some(name.clone()),
                lease_duration_seconds: Some(40),
                renew_time: now,
                ..LeaseSpec::default()
            };
            let owners = [self.as_owner(node)];
            let metadata = json!({"name": name, "namespace": NAMESPACE, "ownerReferences": owners});
            let lease = json!({"metadata": metadata, "spec": spec});
            // The update has shown that the name is free.
            let _ = ctx.store.create(Kind::Lease, lease, ctx.now);
        }
        let period = PERIOD.mul_f64(1.0 + ctx.rng.random_range(0.0..0.04));
        self.status.lease_due = Some(ctx.now + period);
        self.status_at(ctx.now + period, StatusEvent::Lease, ctx);
    }

    /// Returns a reference to the kubelet's node.
    pub(in crate::kubelet) fn as_owner(&self, node: &Value) -> OwnerReference {
        OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: self.identity.node.clone(),
            uid: node.uid().to_owned(),
            ..OwnerReference::default()
        }
    }
}
