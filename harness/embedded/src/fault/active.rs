//! Active faults.

use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_fault::{EventSelector, Fault};

use crate::sim::{Broadcast, SimTime, Subscription};

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
    /// Number of the last interruption of watches by the fault; 0 before the first.
    interruption: u64,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    /// Watches end.
    InterruptWatches,
    /// The kernel kills a process.
    OomKill,
    /// The kubelet stops, and starts again at the end of the fault.
    NodeGone,
    /// The kubelet restarts.
    RestartKubelet,
}

impl Trigger {
    /// Returns the trigger of a fault; `None` if the fault only affects requests, events or
    /// statistics during its time range.
    fn of(fault: &Fault) -> Option<Self> {
        match fault {
            Fault::WatchClosed(_) | Fault::WatchExpired(_) => Some(Self::InterruptWatches),
            Fault::OomKill(_) => Some(Self::OomKill),
            Fault::NodeGone(_) => Some(Self::NodeGone),
            Fault::KubeletRestart(_) => Some(Self::RestartKubelet),
            Fault::EventLost(_)
            | Fault::EventDoubled(_)
            | Fault::EventLate(_)
            | Fault::ApiError(_)
            | Fault::ApiSlow(_)
            | Fault::StatsMissing(_) => None,
        }
    }
}

/// End of an open watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WatchEnd {
    /// The connection is closed.
    Closed,
    /// The watch ends with 410 Gone.
    Expired,
}

/// Number of an injected fault.
pub(crate) type FaultNumber = u64;

/// Faults that were injected.
#[derive(Debug, Default)]
pub(crate) struct ActiveFaults {
    active: BTreeMap<FaultNumber, ActiveFault>,
    next: FaultNumber,
    /// Counts the interruptions of watches.
    interruptions: Broadcast,
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
            if Trigger::of(fault).is_some() {
                due.extend(std::iter::once(from).chain(until).map(|time| (time, number)));
            }
            let (fault, scope) = (fault.clone(), scope.clone());
            let active = ActiveFault { fault, scope, from, until, hits: 0, interruption: 0 };
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

    /// Triggers a fault, unless it was ended: interrupts watches, or returns the effect on a node
    /// (`None` for all nodes). The second trigger of a fault with a duration ends the fault.
    pub(crate) fn trigger(&mut self, number: FaultNumber) -> Option<(NodeFault, Option<String>)> {
        let active = self.active.get_mut(&number)?;
        active.hits += 1;
        let ends = active.hits > 1;
        let effect = match Trigger::of(&active.fault)? {
            Trigger::InterruptWatches => {
                active.interruption = self.interruptions.version() + 1;
                self.interruptions.notify();
                return None;
            }
            Trigger::OomKill => NodeFault::OomKill,
            Trigger::NodeGone if ends => NodeFault::StartKubelet,
            Trigger::NodeGone => NodeFault::StopKubelet,
            Trigger::RestartKubelet => NodeFault::RestartKubelet,
        };
        Some((effect, active.scope.node.clone()))
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

    /// Subscribes to the interruptions of watches. After a notification,
    /// [`watch_end`](Self::watch_end) returns whether a watch ends.
    pub(crate) fn interruptions(&self) -> Subscription {
        self.interruptions.subscribe()
    }

    /// Returns how a watch ends that was opened after `opened` interruptions, if it does.
    pub(crate) fn watch_end(&self, opened: u64, resource: &str, namespace: Option<&str>) -> Option<WatchEnd> {
        let mut end = None;
        for active in self.active.values().filter(|active| active.interruption > opened) {
            let (watch, this) = match &active.fault {
                Fault::WatchClosed(watch) => (watch, WatchEnd::Closed),
                Fault::WatchExpired(watch) => (watch, WatchEnd::Expired),
                _ => continue,
            };
            let covers = active.scope.covers_request(namespace, None);
            if covers && watch.resource.as_deref().is_none_or(|wanted| wanted == resource) {
                end = end.max(Some(this));
            }
        }
        end
    }
}

impl ActiveFault {
    fn is_active_at(&self, now: SimTime) -> bool {
        self.from <= now && self.until.is_none_or(|until| now < until)
    }
}

impl FaultScope {
    /// Returns whether objects of a namespace are in the scope.
    fn covers_namespace(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
    }

    /// Returns whether a request that names a namespace or a node is in the scope.
    fn covers_request(&self, namespace: Option<&str>, node: Option<&str>) -> bool {
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
