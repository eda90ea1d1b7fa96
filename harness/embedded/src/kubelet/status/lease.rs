//! Node lease, the heartbeat of the kubelet (`k8s.io/component-helpers/apimachinery/lease`).

use std::time::Duration;

use rand::RngExt;
use serde_json::json;

use crate::context::SimContext;
use crate::kubelet::event::StatusEvent;
use crate::kubelet::state::Kubelet;
use crate::resource::Kind;

const NAMESPACE: &str = "kube-node-lease";
/// `nodeLeaseDurationSeconds` × 0.25
const PERIOD: Duration = Duration::from_secs(10);

impl Kubelet {
    pub(super) fn renew_lease(&mut self, ctx: &mut SimContext) {
        let name = self.identity.node.clone();
        let now = ctx.epoch().micros(ctx.now);
        let renewed = ctx.store.update(Kind::Lease, NAMESPACE, &name, |lease| {
            lease["spec"]["renewTime"] = json!(now);
            lease["spec"]["holderIdentity"] = json!(name);
        });
        if renewed.is_none()
            && let Some(node) = ctx.store.get(Kind::Node, "", &name)
        {
            let lease = json!({
                "metadata": {
                    "name": name,
                    "namespace": NAMESPACE,
                    "ownerReferences": [{
                        "apiVersion": "v1",
                        "kind": "Node",
                        "name": name,
                        "uid": node["metadata"]["uid"],
                    }],
                },
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now},
            });
            // The update has shown that the name is free.
            let _ = ctx.store.create(Kind::Lease, lease, ctx.now);
        }
        let period = PERIOD.mul_f64(1.0 + ctx.rng.random_range(0.0..0.04));
        self.status.lease_due = Some(ctx.now + period);
        self.status_at(ctx.now + period, StatusEvent::Lease, ctx);
    }
}
