//! Active faults and their effects on requests, watches, events and statistics.

use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_fault::{EventSelector, Fault, WatchSelector};

use crate::sim::SimTime;
use crate::storage::WatchEnd;

/// Objects and nodes that a fault applies to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultScope {
    /// Namespace; all namespaces if `None`.
    pub namespace: Option<String>,
    /// Node; all nodes if `None`.
    pub node: Option<String>,
}

/// Fault with its scope and time range.
#[derive(Clone, Debug)]
struct ActiveFault {
    fault: Fault,
    scope: FaultScope,
    from: SimTime,
    until: Option<SimTime>,
    /// Number of times that the fault took effect.
    hits: u32,
}

/// Delivery of an event to the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventDelivery {
    /// Delivered at once.
    Delivered,
    /// Lost.
    Lost,
    /// Delivered twice, as two objects.
    Duplicated,
    /// Delivered after a delay.
    Delayed(Duration),
}

/// Outcome of an API request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    /// Answered at once.
    Answered,
    /// Answered after a delay.
    Delayed(Duration),
    /// Rejected with an HTTP status.
    Rejected(u16),
}

/// Effect of a fault on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeFault {
    /// The kernel kills a process, as if memory had run out.
    OomKill,
    /// The kubelet stops.
    StopKubelet,
    /// The kubelet starts.
    StartKubelet,
    /// The kubelet stops if it runs, and systemd starts it again.
    RestartKubelet,
}

/// Effect of a fault at the times of its script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FaultEffect {
    /// Open watches of a resource, by its plural name, or of all end.
    EndWatches { end: WatchEnd, resource: Option<String>, scope: FaultScope },
    /// A fault on a node; on all nodes if the name is missing.
    OnNode(NodeFault, Option<String>),
}

/// Number of an injected fault.
pub(crate) type FaultNumber = u64;

/// Faults that were injected.
#[derive(Debug, Default)]
pub(crate) struct ActiveFaults {
    active: BTreeMap<FaultNumber, ActiveFault>,
    next: FaultNumber,
}

impl ActiveFaults {
    /// Activates the faults of a script; their times count from `now`. Returns the times at which
    /// [`trigger`](Self::trigger) is due, with its argument.
    pub(crate) fn activate(
        &mut self,
        script: &[Fault],
        scope: &FaultScope,
        now: SimTime,
    ) -> Vec<(SimTime, FaultNumber)> {
        let mut due = Vec::new();
        for fault in script {
            let (at, length) = fault.times();
            let from = now + at;
            let until = length.map(|length| from + length);
            let number = self.next;
            self.next += 1;
            let (fault, scope) = (fault.clone(), scope.clone());
            let active = ActiveFault { fault, scope, from, until, hits: 0 };
            if active.effect().is_some() {
                due.extend(std::iter::once(from).chain(until).map(|time| (time, number)));
            }
            self.active.insert(number, active);
        }
        due
    }

    /// Ends the faults whose scope names a node, also those that have not begun. A node that is
    /// gone for a time still returns after it.
    pub(crate) fn end_on_node(&mut self, node: &str) {
        self.active.retain(|_, active| {
            let returns = matches!(active.fault, Fault::NodeGone(_)) && active.hits == 1;
            active.scope.node.as_deref() != Some(node) || returns && active.until.is_some()
        });
    }

    /// Returns the effect of a fault that is due, unless the fault was ended. The second effect of
    /// a fault with a duration ends the fault.
    pub(crate) fn trigger(&mut self, number: FaultNumber) -> Option<FaultEffect> {
        let active = self.active.get_mut(&number)?;
        let effect = active.effect();
        active.hits += 1;
        effect
    }

    /// Delivers an event about an object of a namespace, which is empty for nodes: applies the
    /// first fault that affects the event, and returns the delivery.
    pub(crate) fn deliver_event(&mut self, namespace: &str, reason: &str) -> EventDelivery {
        for active in self.active.values_mut() {
            if !active.scope.covers_namespace(namespace) {
                continue;
            }
            let delivery = match &active.fault {
                Fault::EventLost(event) if matches_event(event, reason, active.hits) => EventDelivery::Lost,
                Fault::EventDoubled(event) if matches_event(event, reason, active.hits) => {
                    EventDelivery::Duplicated
                }
                Fault::EventLate(late) if late.reason == reason => EventDelivery::Delayed(late.by.get()),
                _ => continue,
            };
            active.hits += 1;
            return delivery;
        }
        EventDelivery::Delivered
    }

    /// Returns the outcome of a request for a resource. `namespace` and `node` are those that the
    /// request names.
    pub(crate) fn request_outcome(
        &self,
        now: SimTime,
        resource: &str,
        namespace: Option<&str>,
        node: Option<&str>,
    ) -> RequestOutcome {
        let affects =
            |active: &&ActiveFault| active.is_active_at(now) && active.scope.covers_request(namespace, node);
        for active in self.active.values().filter(affects) {
            let affects_resource =
                |stated: &Option<String>| stated.as_deref().is_none_or(|stated| stated == resource);
            match &active.fault {
                Fault::ApiError(error) if affects_resource(&error.resource) => {
                    return RequestOutcome::Rejected(error.code);
                }
                Fault::ApiSlow(slow) if affects_resource(&slow.resource) => {
                    return RequestOutcome::Delayed(slow.by.get());
                }
                _ => {}
            }
        }
        RequestOutcome::Answered
    }

    /// Returns whether a kubelet has statistics of a pod.
    pub(crate) fn has_stats(&self, now: SimTime, namespace: &str, pod: &str) -> bool {
        !self.active.values().any(|active| {
            let Fault::StatsMissing(missing) = &active.fault else { return false };
            active.is_active_at(now)
                && active.scope.covers_namespace(namespace)
                && missing.pod.as_deref().is_none_or(|wanted| wanted == pod)
        })
    }
}

impl ActiveFault {
    fn is_active_at(&self, now: SimTime) -> bool {
        self.from <= now && self.until.is_none_or(|until| now < until)
    }

    /// Returns the next effect at a time of the script; `None` if the fault only affects requests,
    /// events or statistics during its time range.
    fn effect(&self) -> Option<FaultEffect> {
        let end_watches = |end, watch: &WatchSelector| FaultEffect::EndWatches {
            end,
            resource: watch.resource.clone(),
            scope: self.scope.clone(),
        };
        let on_node = |fault| FaultEffect::OnNode(fault, self.scope.node.clone());
        match &self.fault {
            Fault::WatchClosed(watch) => Some(end_watches(WatchEnd::Closed, watch)),
            Fault::WatchExpired(watch) => Some(end_watches(WatchEnd::Expired, watch)),
            Fault::OomKill(_) => Some(on_node(NodeFault::OomKill)),
            // It has returned after its second effect.
            Fault::NodeGone(_) if self.hits > 0 => Some(on_node(NodeFault::StartKubelet)),
            Fault::NodeGone(_) => Some(on_node(NodeFault::StopKubelet)),
            Fault::KubeletRestart(_) => Some(on_node(NodeFault::RestartKubelet)),
            Fault::EventLost(_)
            | Fault::EventDoubled(_)
            | Fault::EventLate(_)
            | Fault::ApiError(_)
            | Fault::ApiSlow(_)
            | Fault::StatsMissing(_) => None,
        }
    }
}

impl FaultScope {
    /// Returns whether objects of a namespace are in the scope.
    fn covers_namespace(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
    }

    /// Returns whether a request that names a namespace or a node is in the scope.
    pub(crate) fn covers_request(&self, namespace: Option<&str>, node: Option<&str>) -> bool {
        match (&self.namespace, &self.node) {
            (None, None) => true,
            (own_namespace, own_node) => {
                own_namespace.as_deref().is_some_and(|own| namespace == Some(own))
                    || own_node.as_deref().is_some_and(|own| node == Some(own))
            }
        }
    }
}

fn matches_event(event: &EventSelector, reason: &str, hits: u32) -> bool {
    event.reason == reason && event.times.is_none_or(|times| hits < times)
}
