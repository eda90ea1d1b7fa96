//! The faults that are armed, and what becomes of what they meet.

use std::time::Duration;

use super::Fault;
use crate::agenda::{Agenda, Due};
use crate::news::{Listener, News};
use crate::registry::Status;
use crate::time::Time;

/// Where faults strike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only what belongs to this namespace; everything, if there is none.
    pub namespace: Option<String>,
    /// Only this node; every node, if there is none.
    pub node: Option<String>,
}

/// A fault with its place and time.
#[derive(Clone, Debug)]
pub(super) struct Armed {
    pub fault: Fault,
    pub scope: Scope,
    pub from: Time,
    pub until: Option<Time>,
    /// How often it has struck.
    pub struck: u32,
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFate {
    /// It arrives.
    Sent,
    /// It does not.
    Lost,
    /// It arrives twice, as two objects.
    Doubled,
    /// It arrives so much later.
    Late(Duration),
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestFate {
    /// It is answered.
    Answered,
    /// It is answered so much later.
    Late(Duration),
    /// It is refused.
    Refused(Status),
}

/// The faults that are armed.
#[derive(Debug, Default)]
pub struct Faults {
    pub(super) armed: Vec<Armed>,
    /// Grows with each cut of watches.
    pub(super) cuts: News,
}

impl Faults {
    /// Arms a script: its times count from now.
    pub fn arm(&mut self, script: &[Fault], scope: &Scope, now: Time, agenda: &mut Agenda) {
        for fault in script {
            let (at, length) = fault.times();
            let from = now + at;
            let until = length.map(|length| from + length);
            let place = self.armed.len();
            let strikes = matches!(
                fault,
                Fault::WatchClosed(_)
                    | Fault::WatchExpired(_)
                    | Fault::KubeletRestart(_)
                    | Fault::OomKill(_)
                    | Fault::NodeGone(_)
            );
            if strikes {
                for time in std::iter::once(from).chain(until) {
                    agenda.at(time, Due::Fault(place));
                }
            }
            self.armed.push(Armed { fault: fault.clone(), scope: scope.clone(), from, until, struck: 0 });
        }
    }

    /// What becomes of an event about an object of a namespace, or about a node in none.
    pub fn event(&mut self, namespace: &str, reason: &str) -> EventFate {
        for armed in &mut self.armed {
            if !armed.scope.has(namespace) {
                continue;
            }
            let fate = match &armed.fault {
                Fault::EventLost(event) if event.is(reason, armed.struck) => EventFate::Lost,
                Fault::EventDoubled(event) if event.is(reason, armed.struck) => EventFate::Doubled,
                Fault::EventLate(late) if late.reason == reason => EventFate::Late(late.by.get()),
                _ => continue,
            };
            armed.struck += 1;
            return fate;
        }
        EventFate::Sent
    }

    /// What becomes of a request for a resource. `namespace` and `node` are those that it names.
    pub fn request(
        &self,
        now: Time,
        resource: &str,
        namespace: Option<&str>,
        node: Option<&str>,
    ) -> RequestFate {
        for armed in self.armed.iter().filter(|armed| armed.lasts(now) && armed.scope.meets(namespace, node))
        {
            let of = |wanted: &Option<String>| wanted.as_deref().is_none_or(|wanted| wanted == resource);
            match &armed.fault {
                Fault::ApiError(error) if of(&error.resource) => {
                    return RequestFate::Refused(refusal(error.code));
                }
                Fault::ApiSlow(slow) if of(&slow.resource) => return RequestFate::Late(slow.by.get()),
                _ => {}
            }
        }
        RequestFate::Answered
    }

    /// Whether the kubelet of a node has statistics of a pod.
    pub fn has_stats(&self, now: Time, namespace: &str, pod: &str) -> bool {
        !self.armed.iter().any(|armed| {
            let Fault::StatsMissing(missing) = &armed.fault else { return false };
            armed.lasts(now)
                && armed.scope.has(namespace)
                && missing.pod.as_deref().is_none_or(|wanted| wanted == pod)
        })
    }

    /// Tells each cut of watches. Whoever serves one asks [`cut`](Self::cut) then.
    pub fn cuts(&self) -> Listener {
        self.cuts.listen()
    }

    /// Whether a watch that was opened when so many cuts had been made is to be closed, and whether with 410.
    pub fn cut(&self, opened: u64, resource: &str, namespace: Option<&str>) -> Option<Expired> {
        let mut cut = None;
        for armed in self.armed.iter().filter(|armed| u64::from(armed.struck) > opened) {
            let (watch, expired) = match &armed.fault {
                Fault::WatchClosed(watch) => (watch, Expired(false)),
                Fault::WatchExpired(watch) => (watch, Expired(true)),
                _ => continue,
            };
            let meets = armed.scope.meets(namespace, None);
            if meets && watch.resource.as_deref().is_none_or(|wanted| wanted == resource) {
                cut = cut.max(Some(expired));
            }
        }
        cut
    }
}

/// Whether a watch ends with 410.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expired(pub bool);

impl Armed {
    fn lasts(&self, now: Time) -> bool {
        self.from <= now && self.until.is_none_or(|until| now < until)
    }
}

impl Scope {
    /// Whether something of a namespace is in it.
    fn has(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
    }

    /// Whether a request that names a namespace or a node is in it.
    fn meets(&self, namespace: Option<&str>, node: Option<&str>) -> bool {
        match (&self.namespace, &self.node) {
            (None, None) => true,
            (own, of) => {
                own.as_deref().is_some_and(|own| namespace == Some(own))
                    || of.as_deref().is_some_and(|of| node == Some(of))
            }
        }
    }
}

impl super::Event {
    fn is(&self, reason: &str, struck: u32) -> bool {
        self.reason == reason && self.times.is_none_or(|times| struck < times)
    }
}

fn refusal(code: u16) -> Status {
    let (reason, message) = match code {
        401 => ("Unauthorized", "Unauthorized"),
        403 => ("Forbidden", "forbidden: a fault of the script"),
        404 => ("NotFound", "the server could not find the requested resource"),
        409 => ("Conflict", "the object has been modified; please apply your changes to the latest version"),
        429 => ("TooManyRequests", "Too many requests, please try again later."),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => ("Timeout", "the server was unable to return a response in the time allotted"),
        _ => ("InternalError", "an error on the server: a fault of the script"),
    };
    Status { code, reason, message: message.to_owned(), details: None }
}
