//! The Lease of a run in an existing cluster. It shows that the run is active, and holds its nodes.
//!
//! Each run has one Lease, in its own namespace, with the names of its nodes in an annotation. A
//! run first claims its nodes and reads the Leases of the other runs: nodes that another run holds
//! are given up, and of two runs that claim a node, the one with the smaller id waits until the
//! other has given it up. Because a run writes its claim before it reads the others, two runs never
//! hold one node. The pods of a run that died keep others from their nodes, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::dead_runs::nodes_with_pods_of_dead_runs;
use super::moment::Moment;
use super::record::{
    HOLDING, LEASE_DURATION, LEASE_NAME, LeaseRecord, NODES_ANNOTATION, RENEW_INTERVAL, STATE_ANNOTATION,
    list_leases,
};
use super::server_clock::ServerClock;
use crate::api_error::api_error_message;
use crate::owner::Owner;
use crate::typed::Typed;
use crate::wait::{OUTAGE_TIMEOUT, retry_while_unavailable};
use crate::workload::{Namespace, OWNER_ANNOTATION, RUN_LABEL};

/// Time without renewal after which a run does not use its nodes any longer: before other runs may
/// hold them, and longer than a one-minute outage of the API server.
const HOLD_LIMIT: Duration = LEASE_DURATION.saturating_sub(RENEW_INTERVAL).saturating_sub(RENEW_INTERVAL);
/// Interval of checks while another run decides about its claim.
const CLAIM_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of checks while other runs hold all nodes.
const WAIT_INTERVAL: Duration = Duration::from_secs(5);
/// State of a Lease whose nodes may be given up.
const CLAIMING: &str = "claiming";

/// Change of a claim, given the Leases of the other active runs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Decision {
    /// Nodes to give up, with the runs that have them.
    give_up: BTreeMap<String, String>,
    /// True if another run is about to give up a node.
    wait: bool,
}

/// Decides which nodes of a claim a run gives up.
fn resolve_conflicts(run: &str, claimed: &BTreeSet<String>, others: &[LeaseRecord]) -> Decision {
    let mut decision = Decision::default();
    for other in others {
        for node in claimed.intersection(&other.nodes) {
            if other.is_holding || other.run.as_str() < run {
                decision.give_up.insert(node.clone(), other.run.clone());
            } else {
                decision.wait = true;
            }
        }
    }
    decision
}

/// Use of a node by another run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeUse {
    /// The run with this id claims or holds the node.
    Claimed(String),
    /// The run with this id is dead, and its pods on the node have not ended.
    DeadRun(String),
}

/// A clause about the node, without its subject.
impl std::fmt::Display for NodeUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Claimed(run) => write!(f, "which run {run} uses"),
            Self::DeadRun(run) => write!(
                f,
                "which has pods of run {run}, which is dead: `evictlab gc --backend existing --run {run}` removes them"
            ),
        }
    }
}

/// Returns the wanted nodes that other runs claim or hold, with the runs.
fn nodes_of_others(wanted: &BTreeSet<String>, others: &[LeaseRecord]) -> BTreeMap<String, NodeUse> {
    let claimed_by = |other: &LeaseRecord| {
        let nodes: Vec<String> = wanted.intersection(&other.nodes).cloned().collect();
        nodes.into_iter().map(|node| (node, NodeUse::Claimed(other.run.clone()))).collect::<Vec<_>>()
    };
    others.iter().flat_map(claimed_by).collect()
}

/// The nodes that a run holds, and the wanted ones that other runs use.
pub(crate) struct HeldNodes {
    pub(crate) held: BTreeSet<String>,
    pub(crate) used_by_others: BTreeMap<String, NodeUse>,
}

/// Result of a claim of nodes.
enum Claim {
    /// The run holds enough nodes.
    Held(HeldNodes),
    /// Other runs have these nodes, by node, and the rest is not enough.
    Taken(BTreeMap<String, NodeUse>),
}

/// The Lease of this run, renewed until it is dropped.
pub struct RunLease {
    run: String,
    client: Client,
    api: Api<Typed<Lease>>,
    clock: ServerClock,
    renewals: Arc<Renewals>,
    renewal: AbortHandle,
    lost: watch::Receiver<Option<LeaseLost>>,
}

/// Causes for which a run does not hold its nodes any longer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseLost {
    /// Another process deleted the namespaces of the run, and with them its Lease.
    #[error(
        "the run's Lease is gone: the run's namespaces were deleted, for example with `evictlab gc --force`"
    )]
    Deleted,
    /// The Lease was not renewed for so long that another run may soon hold the nodes.
    #[error("the run's Lease could not be renewed for {} s: {cause}", age.as_secs())]
    Expired {
        /// Time since the last renewal.
        age: Duration,
        /// Cause of the failure of the last attempt; a paused process makes none.
        cause: String,
    },
}

impl Drop for RunLease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

impl RunLease {
    /// Creates the Lease of a run in its namespace, without nodes, and begins to renew it.
    ///
    /// # Errors
    /// The API server refuses, or does not answer for [`OUTAGE_TIMEOUT`].
    pub(crate) async fn create(namespace: &Namespace, run: &str) -> Result<Self, kube::Error> {
        let client = namespace.client().clone();
        let read = async || ServerClock::read(&client).await;
        let clock = retry_while_unavailable(OUTAGE_TIMEOUT, read).await?;
        let api: Api<Typed<Lease>> = Api::namespaced(client.clone(), &namespace.name);
        // The first request, which may have created the Lease although it failed.
        let sent = Moment::now();
        let create = async || api.create(&PostParams::default(), &Typed(new_lease(run, clock))).await;
        match retry_while_unavailable(OUTAGE_TIMEOUT, create).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            created => created.map(drop)?,
        }
        let (sender, lost) = watch::channel(None);
        let renewals = Arc::new(Renewals::new(api.clone(), clock, sent));
        let renewing = renewals.clone();
        let renewal = tokio::spawn(async move { renewing.repeat_until_lost(sender).await }).abort_handle();
        Ok(Self { run: run.to_owned(), client, api, clock, renewals, renewal, lost })
    }

    /// Holds nodes among `wanted` that no other run uses: neither by its Lease nor, after its
    /// death, by its pods. `choose` picks from the free nodes; while it returns `None`, waits for
    /// the other runs.
    ///
    /// # Errors
    /// The API server refuses, or does not answer for [`OUTAGE_TIMEOUT`]; the Lease is lost.
    pub(crate) async fn hold(
        &self,
        wanted: &BTreeSet<String>,
        choose: impl Fn(&BTreeSet<String>) -> Option<BTreeSet<String>>,
        step: &dyn Fn(&str),
    ) -> Result<HeldNodes, kube::Error> {
        tokio::select! {
            biased;
            // Another run may have the nodes that this one has claimed.
            lost = self.lost() => Err(kube::Error::Service(lost.into())),
            held = self.claim_until_held(wanted, choose, step) => held,
        }
    }

    async fn claim_until_held(
        &self,
        wanted: &BTreeSet<String>,
        choose: impl Fn(&BTreeSet<String>) -> Option<BTreeSet<String>>,
        step: &dyn Fn(&str),
    ) -> Result<HeldNodes, kube::Error> {
        let mut reported = BTreeMap::new();
        loop {
            match self.claim(wanted, &choose).await? {
                Claim::Held(held) => return Ok(held),
                Claim::Taken(taken) => {
                    if taken != reported {
                        let nodes: Vec<String> =
                            taken.iter().map(|(node, used)| format!("{node}, {used}")).collect();
                        step(&format!("waiting for {}", nodes.join("; ")));
                        reported = taken;
                    }
                }
            }
            tokio::time::sleep(WAIT_INTERVAL).await;
        }
    }

    /// Claims free nodes, until no other run claims them.
    async fn claim(
        &self,
        wanted: &BTreeSet<String>,
        choose: &impl Fn(&BTreeSet<String>) -> Option<BTreeSet<String>>,
    ) -> Result<Claim, kube::Error> {
        loop {
            let mut taken = self.used_by_others(wanted).await?;
            let free = wanted.iter().filter(|node| !taken.contains_key(*node)).cloned().collect();
            let Some(chosen) = choose(&free) else { return Ok(Claim::Taken(taken)) };
            if let Some(HeldNodes { held, used_by_others }) = self.settle(chosen, choose).await? {
                taken.extend(used_by_others);
                return Ok(Claim::Held(HeldNodes { held, used_by_others: taken }));
            }
        }
    }

    /// Returns the wanted nodes that other runs use.
    async fn used_by_others(
        &self,
        wanted: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, NodeUse>, kube::Error> {
        let others = self.other_active_runs().await?;
        let active = others.iter().map(|other| &other.run).chain([&self.run]).cloned().collect();
        let read = async || nodes_with_pods_of_dead_runs(&self.client, &active).await;
        let left = retry_while_unavailable(OUTAGE_TIMEOUT, read).await?;
        let left = left.into_iter().filter(|(node, _)| wanted.contains(node));
        let mut used: BTreeMap<String, NodeUse> =
            left.map(|(node, run)| (node, NodeUse::DeadRun(run))).collect();
        used.extend(nodes_of_others(wanted, &others));
        Ok(used)
    }

    /// Claims these nodes, and gives up those that another run has claimed before; `None` if the
    /// rest is not enough.
    async fn settle(
        &self,
        mut claimed: BTreeSet<String>,
        choose: &impl Fn(&BTreeSet<String>) -> Option<BTreeSet<String>>,
    ) -> Result<Option<HeldNodes>, kube::Error> {
        let mut used_by_others = BTreeMap::new();
        self.write(CLAIMING, &claimed).await?;
        loop {
            let decision = resolve_conflicts(&self.run, &claimed, &self.other_active_runs().await?);
            if !decision.give_up.is_empty() {
                claimed.retain(|node| !decision.give_up.contains_key(node));
                if choose(&claimed).is_none() {
                    self.write(CLAIMING, &BTreeSet::new()).await?;
                    return Ok(None);
                }
                self.write(CLAIMING, &claimed).await?;
                let taken = decision.give_up.into_iter();
                used_by_others.extend(taken.map(|(node, run)| (node, NodeUse::Claimed(run))));
            } else if decision.wait {
                tokio::time::sleep(CLAIM_INTERVAL).await;
            } else {
                self.write(HOLDING, &claimed).await?;
                return Ok(Some(HeldNodes { held: claimed, used_by_others }));
            }
        }
    }

    async fn other_active_runs(&self) -> Result<Vec<LeaseRecord>, kube::Error> {
        let mut leases =
            retry_while_unavailable(OUTAGE_TIMEOUT, async || list_leases(&self.client).await).await?;
        let now = self.clock.now();
        leases.retain(|lease| lease.run != self.run && lease.is_live(now));
        Ok(leases)
    }

    async fn write(&self, state: &str, nodes: &BTreeSet<String>) -> Result<(), kube::Error> {
        let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
        let annotations = json!({STATE_ANNOTATION: state, NODES_ANNOTATION: nodes.join(",")});
        let change = json!({"metadata": {"annotations": annotations}});
        retry_while_unavailable(OUTAGE_TIMEOUT, async || patch(&self.api, &change).await).await
    }

    /// Renews the Lease now.
    ///
    /// # Errors
    /// The run must not go on.
    pub async fn confirm(&self) -> Result<(), LeaseLost> {
        if let Some(reason) = self.lost.borrow().clone() {
            return Err(reason);
        }
        self.renewals.renew().await
    }

    /// Waits until the Lease is lost; returns the reason.
    pub async fn lost(&self) -> LeaseLost {
        let mut lost = self.lost.clone();
        let reason = lost.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn new_lease(run: &str, clock: ServerClock) -> Lease {
    let annotations = [
        (OWNER_ANNOTATION.to_owned(), Owner::current().to_json()),
        (STATE_ANNOTATION.to_owned(), CLAIMING.to_owned()),
    ];
    Lease {
        metadata: ObjectMeta {
            name: Some(LEASE_NAME.to_owned()),
            labels: Some([(RUN_LABEL.to_owned(), run.to_owned())].into()),
            annotations: Some(annotations.into()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(run.to_owned()),
            lease_duration_seconds: Some(LEASE_DURATION.as_secs() as i32),
            acquire_time: Some(MicroTime(clock.now())),
            renew_time: Some(MicroTime(clock.now())),
            ..LeaseSpec::default()
        }),
    }
}

async fn patch(api: &Api<Typed<Lease>>, patch: &Value) -> Result<(), kube::Error> {
    api.patch(LEASE_NAME, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
}

/// The renewals of a Lease.
struct Renewals {
    api: Api<Typed<Lease>>,
    clock: ServerClock,
    last: Mutex<LastRenewal>,
}

/// The time at which the last renewal was requested, and the cause of the failure of the last
/// attempt after it.
struct LastRenewal {
    at: Moment,
    failure: Option<String>,
}

impl Renewals {
    /// Creates the renewals of a Lease whose creation was requested at a moment.
    fn new(api: Api<Typed<Lease>>, clock: ServerClock, at: Moment) -> Self {
        Self { api, clock, last: Mutex::new(LastRenewal { at, failure: None }) }
    }

    /// Renews the Lease. A failed request is not an error until [`HOLD_LIMIT`] has passed.
    ///
    /// # Errors
    /// The run does not hold its nodes any longer.
    async fn renew(&self) -> Result<(), LeaseLost> {
        let remaining = self.check()?;
        // Other runs count from the time in the request, not from the answer.
        let sent = Moment::now();
        let renewed = json!({"spec": {"renewTime": MicroTime(self.clock.now())}});
        let timeout = RENEW_INTERVAL.min(remaining);
        let failure = match tokio::time::timeout(timeout, patch(&self.api, &renewed)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) if is_gone(&error) => return Err(LeaseLost::Deleted),
            Ok(Err(error)) => Some(api_error_message(&error)),
            Err(_) => Some("no answer".to_owned()),
        };
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            match failure {
                None => *last = LastRenewal { at: sent, failure: None },
                failure => last.failure = failure,
            }
        }
        self.check().map(drop)
    }

    /// Returns the time for which the run still holds its nodes without a renewal.
    fn check(&self) -> Result<Duration, LeaseLost> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let age = last.at.elapsed();
        let remaining = HOLD_LIMIT.saturating_sub(age);
        if !remaining.is_zero() {
            return Ok(remaining);
        }
        let cause = last.failure.as_deref().unwrap_or("the process was paused").to_owned();
        Err(LeaseLost::Expired { age, cause })
    }

    /// Renews the Lease until it is lost.
    async fn repeat_until_lost(&self, lost: watch::Sender<Option<LeaseLost>>) {
        let reason = loop {
            let remaining = match self.check() {
                Ok(remaining) => remaining,
                Err(reason) => break reason,
            };
            tokio::time::sleep(RENEW_INTERVAL.min(remaining)).await;
            if let Err(reason) = self.renew().await {
                break reason;
            }
        };
        lost.send_replace(Some(reason));
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tokio::time::Instant;

    use super::*;
    use crate::workload::NamespacePurpose;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn other(run: &str, nodes: &[&str], is_holding: bool) -> LeaseRecord {
        LeaseRecord { run: run.to_owned(), nodes: names(nodes), is_holding, ..LeaseRecord::default() }
    }

    #[test]
    fn of_two_runs_that_claim_a_node_one_gives_it_up() {
        let give_up = |nodes: &[(&str, &str)], wait| Decision {
            give_up: nodes.iter().map(|(node, run)| ((*node).to_owned(), (*run).to_owned())).collect(),
            wait,
        };
        let claimed = names(&["a", "b"]);
        let rows = [
            (vec![], give_up(&[], false)),
            (vec![other("z", &["c"], true)], give_up(&[], false)),
            (vec![other("z", &["b"], true)], give_up(&[("b", "z")], false)),
            (vec![other("z", &["b"], false)], give_up(&[], true)),
            (vec![other("a", &["b"], false)], give_up(&[("b", "a")], false)),
            (vec![other("z", &["a"], false), other("y", &["b"], true)], give_up(&[("b", "y")], true)),
        ];
        for (others, expected) in rows {
            assert_eq!(resolve_conflicts("m", &claimed, &others), expected, "{others:?}");
        }
        // The other side of the fourth row.
        assert_eq!(
            resolve_conflicts("z", &claimed, &[other("m", &["b"], false)]),
            give_up(&[("b", "m")], false)
        );
    }

    /// An API server that accepts a Lease, and from its third request on answers with an error for
    /// some time.
    fn client(code: u16, outage: Duration) -> Client {
        let requests = std::sync::atomic::AtomicU32::new(0);
        let began = std::sync::Mutex::new(None);
        let answer = move || {
            let nth = requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let began = *began.lock().unwrap().get_or_insert(Instant::now());
            let status = if nth >= 2 && began.elapsed() < outage { code } else { 200 };
            let body = match status {
                200 => json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {}}),
                code => {
                    json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "", "code": code})
                }
            };
            http::Response::builder()
                .status(status)
                .body(kube::client::Body::from(body.to_string().into_bytes()))
        };
        let answer = std::sync::Arc::new(answer);
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            let answer = answer.clone();
            async move { answer() }
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_of_a_minute_does_not_end_a_run_and_one_of_minutes_does() {
        // Status of the answers, duration of the outage, and reason of the end of the run.
        let rows = [
            (503, 60, None),
            (401, 60, None),
            (503, 600, Some("the run's Lease could not be renewed for 100 s: no")),
            // An expired token.
            (401, 100_000, Some("the run's Lease could not be renewed for 100 s: no")),
            // Another process deleted the Lease.
            (404, 100_000, Some("the run's Lease is gone: ")),
        ];
        for (code, seconds, expected) in rows {
            let namespace =
                Namespace::with_client("evictlab-nodes-a", client(code, Duration::from_secs(seconds)));
            let lease = RunLease::create(&namespace, "a").await.unwrap();
            let lost = tokio::time::timeout(Duration::from_secs(1000), lease.lost()).await.ok();
            let lost = lost.map(|lost| lost.to_string());
            match expected {
                None => assert_eq!(lost, None, "{code} for {seconds} s"),
                Some(reason) => {
                    assert!(lost.as_ref().is_some_and(|lost| lost.starts_with(reason)), "{lost:?}")
                }
            }
        }
    }

    /// Renewal times follow the server's clock: a run whose host's clock is set back would
    /// otherwise appear expired to other runs. The test advances the clock of the runtime; that of
    /// the host moves by milliseconds.
    #[tokio::test(start_paused = true)]
    async fn renewals_do_not_depend_on_the_clock_of_the_host() {
        let (sender, mut renewals) = tokio::sync::mpsc::unbounded_channel();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let sender = sender.clone();
            async move {
                let is_renewal = request.method() == http::Method::PATCH;
                let body = request.into_body().collect_bytes().await?;
                if is_renewal {
                    let _ = sender.send(serde_json::from_slice::<Value>(&body)?);
                }
                let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {}});
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(http::Response::new(
                    kube::client::Body::from(lease.to_string().into_bytes()),
                ))
            }
        });
        let namespace = Namespace::with_client("evictlab-nodes-a", Client::new(service, "default"));
        let _lease = RunLease::create(&namespace, "a").await.unwrap();
        let mut times = Vec::new();
        while times.len() < 6 {
            let renewal = renewals.recv().await.unwrap();
            times.push(renewal["spec"]["renewTime"].as_str().unwrap().parse::<Timestamp>().unwrap());
        }
        let seconds = times[5].duration_since(times[0]).as_secs();
        assert!((50..60).contains(&seconds), "{times:?}");
    }

    /// Others may hold the nodes of a run that was paused, as by SIGSTOP or a sleeping machine.
    #[tokio::test(start_paused = true)]
    async fn a_lease_that_expired_while_the_run_was_paused_is_lost() {
        for (seconds, is_lost) in [(99, false), (101, true)] {
            let namespace = Namespace::with_client("evictlab-nodes-a", client(200, Duration::ZERO));
            let lease = RunLease::create(&namespace, "a").await.unwrap();
            // No task runs meanwhile.
            tokio::time::advance(Duration::from_secs(seconds)).await;
            let confirmed = lease.confirm().await;
            let expected =
                format!("the run's Lease could not be renewed for {seconds} s: the process was paused");
            assert_eq!(confirmed.err().map(|lost| lost.to_string()), is_lost.then_some(expected));
            assert_eq!(tokio::time::timeout(LEASE_DURATION, lease.lost()).await.is_ok(), is_lost);
        }
    }

    /// An API server may write a renewal long before its answer arrives.
    #[tokio::test(start_paused = true)]
    async fn the_age_of_a_lease_counts_from_the_request() {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            tokio::time::sleep(Duration::from_secs(8)).await;
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {}});
            Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::from(
                lease.to_string().into_bytes(),
            )))
        });
        let namespace = Namespace::with_client("evictlab-nodes-a", Client::new(service, "default"));
        let lease = RunLease::create(&namespace, "a").await.unwrap();
        let age = |lease: &RunLease| lease.renewals.last.lock().unwrap().at.elapsed().as_secs();
        assert_eq!(age(&lease), 8);
        lease.confirm().await.unwrap();
        assert_eq!(age(&lease), 8);
    }

    /// Attempts to renew take time, too.
    #[tokio::test(start_paused = true)]
    async fn a_lease_is_lost_at_its_limit_also_while_no_request_is_answered() {
        let requests = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            let nth = requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            async move {
                // The clock, the creation of the Lease, and its renewals.
                let delay = [Duration::ZERO, Duration::from_millis(9900)].get(nth as usize).copied();
                tokio::time::sleep(delay.unwrap_or(Duration::MAX)).await;
                let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {}});
                Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::from(
                    lease.to_string().into_bytes(),
                )))
            }
        });
        let namespace = Namespace::with_client("evictlab-nodes-a", Client::new(service, "default"));
        let began = Instant::now();
        let lease = RunLease::create(&namespace, "a").await.unwrap();
        let lost = lease.lost().await.to_string();
        assert!(lost.ends_with("could not be renewed for 100 s: no answer"), "{lost}");
        assert_eq!(began.elapsed().as_secs(), 100);
    }

    /// Two runs that claim the same nodes at the same time hold different ones, and each knows
    /// which ones the other has.
    #[tokio::test]
    async fn runs_that_claim_nodes_at_the_same_time_hold_different_ones() {
        let options = evictlab_embedded::ClusterOptions::new(0, Timestamp::UNIX_EPOCH, Vec::new());
        let cluster = evictlab_embedded::Cluster::new(options).unwrap();
        let client = Client::new(cluster.router(), "default");
        let wanted = names(&["a", "b", "c", "d"]);
        for _ in 0..20 {
            let run = async |run: &str| {
                let namespace = Namespace::create(&client, run, NamespacePurpose::Lease, Default::default());
                let lease = RunLease::create(&namespace.await.unwrap(), run).await.unwrap();
                // Any node is enough, and a run takes three at most.
                let choose = |free: &BTreeSet<String>| {
                    (!free.is_empty()).then(|| free.iter().take(3).cloned().collect())
                };
                let held = lease.hold(&wanted, choose, &|_| {}).await.unwrap();
                (lease, held)
            };
            let ((_one, first), (_two, second)) = tokio::join!(run("one"), run("two"));
            let both: Vec<&String> = first.held.intersection(&second.held).collect();
            assert!(both.is_empty() && !first.held.is_empty() && !second.held.is_empty(), "{both:?}");
            for (held, others) in [(&first, &second), (&second, &first)] {
                let lost = held.used_by_others.keys().all(|node| others.held.contains(node));
                assert!(lost, "{:?} {:?}", held.used_by_others, others.held);
            }
        }
    }
}
