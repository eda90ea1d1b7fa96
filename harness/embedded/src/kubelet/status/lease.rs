//! Node lease, the heartbeat of the kubelet (`k8s.io/component-helpers/apimachinery/lease`).

use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use rand::RngExt;
use serde_json::json;

use crate::context::SimContext;
use crate::kubelet::event::StatusEvent;
use crate::kubelet::state::Kubelet;
use crate::resource::{Kind, ObjectExt};

const NAMESPACE: &str = "kube-node-lease";
/// Interval between renewals, as a fraction of the duration (`nodeLeaseRenewIntervalFraction`,
/// pkg/kubelet/kubelet.go).
const RENEW_INTERVAL: f64 = 0.25;

impl Kubelet {
    pub(super) fn renew_lease(&mut self, ctx: &mut SimContext) {
        let name = self.options.name.clone();
        let now = Some(ctx.epoch().micro_time(ctx.now));
        let seconds = self.config.settings.lease_seconds;
        let renewed = ctx.store.update(Kind::Lease, NAMESPACE, &name, |lease| {
            lease.change("spec", |spec: &mut LeaseSpec| {
                spec.renew_time = now.clone();
                spec.lease_duration_seconds = Some(seconds);
                spec.holder_identity = Some(name.clone());
            });
        });
        if renewed.is_none()
            && let Some(node) = ctx.store.get(Kind::Node, "", &name)
        {
            let spec = LeaseSpec {
                holder_identity: Some(name.clone()),
                lease_duration_seconds: Some(seconds),
                renew_time: now,
                ..LeaseSpec::default()
            };
            let owners = [self.as_owner(node)];
            let metadata = json!({"name": name, "namespace": NAMESPACE, "ownerReferences": owners});
            let lease = json!({"metadata": metadata, "spec": spec});
            // The update has shown that the name is free.
            let _ = ctx.store.create(Kind::Lease, lease, ctx.now);
        }
        let jitter = 1.0 + ctx.rng.random_range(0.0..0.04);
        let period = Duration::from_secs_f64(f64::from(seconds) * RENEW_INTERVAL * jitter);
        self.status.lease_due = Some(ctx.now + period);
        self.status_at(ctx.now + period, StatusEvent::Lease, ctx);
    }
}
