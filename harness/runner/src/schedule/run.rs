//! A whole run: its clusters one after the other, on each every case that its kubelets are asked for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::task::{JoinSet, LocalSet, spawn_local};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::case::Run;
use super::host::Host;
use super::lease::{Images, Leased};
use super::{Class, Interrupt, Repeat, class};
use crate::case::LoadedCase;
use crate::cluster::{
    self, Base, Cluster, ClusterError, Docker, Group, Kubelet, Owner, Record, StateDir, label_value,
};
use crate::images::{self, Lock};
use crate::judge::{Judgement, Phase, Verdict};
use crate::report::{CaseId, Events, Planned, What};
use crate::reset::CANARY;

/// How long a cluster may be there before another host may take it for left behind.
pub const DEADLINE: Duration = Duration::from_secs(12 * 3600);
/// How often a cluster is tried whose nodes are too slow for kind.
const ATTEMPTS: u32 = 3;
/// How many cases share a node at a time.
const SHARED: usize = 8;

/// Where the nodes come from.
#[derive(Clone, Debug)]
pub enum Clusters {
    /// New clusters.
    New {
        /// The name, or the beginning of the names where the skew asks for several.
        name: String,
        /// The kind configuration.
        base: Base,
        /// Workers for each kubelet.
        nodes: usize,
    },
    /// The cluster of this name, which was kept.
    Kept(String),
}

/// When a new cluster outlives the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Never.
    Never,
    /// When a verdict is `failed`, `inconclusive` or `error`.
    OnFailure,
    /// Always.
    Always,
}

/// All that a run is asked for.
#[derive(Clone)]
pub struct Request {
    /// The run's id.
    pub run: String,
    /// The cases.
    pub cases: Vec<Arc<LoadedCase>>,
    /// Groups of kubelets that share a cluster.
    pub groups: Vec<Group>,
    /// Where the nodes come from.
    pub clusters: Clusters,
    /// When they stay.
    pub keep: Keep,
    /// How often.
    pub repeat: Repeat,
    /// The longest that the whole run may take.
    pub timeout: Option<Duration>,
    /// Image names.
    pub lock: Arc<Lock>,
    /// Who answers for the clusters: this process, or one that outlives it.
    pub owner: Owner,
}

/// What the tasks of a run share.
struct Shared {
    request: Request,
    docker: Docker,
    state: StateDir,
    events: Events,
    /// Ends the cases: an interrupt, or the run's time.
    cancel: CancellationToken,
    /// Whether it was the run's time.
    over: AtomicBool,
    failed: AtomicBool,
    host: Host,
}

/// Runs it all and tells everything to `events`. Returns when everything is cleaned up; after the second interrupt, at once.
pub async fn run(request: Request, docker: Docker, state: StateDir, events: Events, interrupt: Interrupt) {
    // One thread is plenty: all that a run does is wait.
    LocalSet::new().run_until(on_one_thread(request, docker, state, events, interrupt)).await;
}

async fn on_one_thread(
    request: Request,
    docker: Docker,
    state: StateDir,
    events: Events,
    interrupt: Interrupt,
) {
    events.send(What::RunStarted {
        run: request.run.clone(),
        evictlab: env!("CARGO_PKG_VERSION").to_owned(),
        backend: "kind".to_owned(),
        kubelets: labels(&request.groups),
        cases: request.cases.iter().map(|case| planned(case)).collect(),
    });
    let timeout = request.timeout;
    let shared = Arc::new(Shared {
        request,
        docker,
        state,
        events,
        cancel: interrupt.stop.child_token(),
        over: AtomicBool::new(false),
        failed: AtomicBool::new(false),
        host: Host::new(),
    });
    let work = {
        let shared = shared.clone();
        async move {
            for group in 0..shared.request.groups.len() {
                if shared.cancel.is_cancelled() {
                    break;
                }
                shared.clone().on_cluster(group).await;
            }
        }
    };
    // In a task of its own: a panic in it is no reason to leave without cleaning up.
    let mut work = spawn_local(work);
    let mut told = 0;
    let late = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(late);
    loop {
        tokio::select! {
            // Told from here, so that no interrupted run ends without its reports knowing it.
            () = interrupt.stop.cancelled(), if told == 0 => {
                told = 1;
                shared.events.send(What::Interrupted { stage: told });
            }
            ended = &mut work => {
                if let Err(panic) = ended {
                    shared.sweep(&format!("a bug in evictlab: {panic}")).await;
                }
                if told == 0 && interrupt.stop.is_cancelled() {
                    shared.events.send(What::Interrupted { stage: 1 });
                }
                return;
            }
            () = &mut late, if !shared.over.load(Ordering::Relaxed) => {
                shared.over.store(true, Ordering::Relaxed);
                shared.cancel.cancel();
            }
            () = interrupt.reports_only.cancelled() => {
                shared.events.send(What::Interrupted { stage: 2 });
                work.abort();
                return;
            }
        }
    }
}

/// A new run's id: eight letters and digits, good for a name.
pub fn new_id() -> String {
    use std::hash::{BuildHasher, Hasher};
    const LETTERS: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";
    // The standard library's source of randomness.
    let mut random = std::hash::RandomState::new().build_hasher().finish();
    let letter = |_| {
        let letter = LETTERS[(random % LETTERS.len() as u64) as usize];
        random /= LETTERS.len() as u64;
        char::from(letter)
    };
    (0..8).map(letter).collect()
}

/// Refuses names of new clusters that are taken, before anything is made.
pub async fn free(docker: &Docker, clusters: &Clusters, groups: usize) -> Result<(), ClusterError> {
    let Clusters::New { .. } = clusters else { return Ok(()) };
    for group in 0..groups {
        let name = name_of(clusters, group, groups);
        if !cluster::containers(docker, &name).await?.is_empty() {
            return Err(ClusterError::Exists(name));
        }
    }
    Ok(())
}

fn name_of(clusters: &Clusters, group: usize, groups: usize) -> String {
    match clusters {
        Clusters::Kept(name) => name.clone(),
        Clusters::New { name, .. } if groups == 1 => name.clone(),
        Clusters::New { name, .. } => format!("{name}-{}", group + 1),
    }
}

/// From old to new, as a matrix is read.
fn labels(groups: &[Group]) -> Vec<String> {
    let mut kubelets: Vec<&Kubelet> = groups.iter().flat_map(|group| &group.kubelets).collect();
    kubelets.sort_by(|a, b| a.version.cmp(&b.version));
    kubelets.into_iter().map(|kubelet| kubelet.label.clone()).collect()
}

fn planned(case: &LoadedCase) -> Planned {
    Planned {
        suite: case.suite.clone(),
        case: case.case.name.to_string(),
        about: case.case.about.clone(),
        when_it_fails: case.case.when_it_fails.clone(),
        labels: case.case.labels.clone(),
        upstream: case.case.upstream.iter().map(|upstream| upstream.link()).collect(),
        file: case.file.clone(),
    }
}

impl Shared {
    fn name(&self, group: usize) -> String {
        name_of(&self.request.clusters, group, self.request.groups.len())
    }

    /// One cluster from its beginning to its end.
    async fn on_cluster(self: Arc<Self>, group: usize) {
        let name = self.name(group);
        let began = Instant::now();
        let kubelets = &self.request.groups[group].kubelets;
        let reused = matches!(self.request.clusters, Clusters::Kept(_));
        self.events.send(What::ClusterStarted {
            cluster: name.clone(),
            kubelets: kubelets.iter().map(|kubelet| kubelet.label.clone()).collect(),
            reused,
        });
        let mut cluster = None;
        let prepared = match self.cluster(group, &name).await {
            Ok(made) => self.prepared(cluster.insert(made), kubelets).await,
            Err(error) => Err(error.to_string()),
        };
        match prepared {
            Ok(leased) => {
                self.events.send(What::ClusterReady {
                    cluster: name.clone(),
                    seconds: began.elapsed().as_secs_f64(),
                    nodes: leased
                        .iter()
                        .map(|leased| (leased.node.name.clone(), leased.node.version.to_string()))
                        .collect(),
                });
                self.cases(group, &leased).await;
            }
            Err(error) => {
                self.failed.store(true, Ordering::Relaxed);
                if !self.cancel.is_cancelled() {
                    self.events.send(What::ClusterFailed {
                        cluster: name.clone(),
                        seconds: began.elapsed().as_secs_f64(),
                        error,
                    });
                }
                // One of before is put in order all the same; a new one without use is not kept.
                cluster = cluster.filter(|_| reused);
            }
        }
        self.end(&name, cluster).await;
    }

    async fn cluster(&self, group: usize, name: &str) -> Result<Cluster, ClusterError> {
        let group = &self.request.groups[group];
        let (docker, state) = (&self.docker, &self.state);
        match &self.request.clusters {
            Clusters::Kept(_) => {
                let mut cluster = Cluster::open(docker, state, name, &group.kubelets).await?;
                cluster.take(self.request.owner.clone()).await?;
                Ok(cluster)
            }
            Clusters::New { base, nodes, .. } => {
                let kubelets = group.kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
                let owner = self.request.owner.clone();
                let record = Record::new(name, &self.request.run, owner, kubelets, DEADLINE);
                cluster::claim(docker, state, &record).await?;
                let step = |text: &str| self.cluster_step(name, text);
                for _ in 1..ATTEMPTS {
                    let plan = (group, base, *nodes);
                    match Cluster::create(docker, state, record.clone(), plan, &self.cancel, step).await {
                        Err(ClusterError::Exists(name)) => {
                            state.forget(&name)?;
                            return Err(ClusterError::Exists(name));
                        }
                        Err(ClusterError::Kind(error)) if error.too_slow() => {
                            step("the nodes did not start within kind's 30 s; trying again");
                            cluster::delete(docker, state, name).await?;
                            state.write(&record)?;
                        }
                        made => return made,
                    }
                }
                Cluster::create(docker, state, record, (group, base, *nodes), &self.cancel, step).await
            }
        }
    }

    fn cluster_step(&self, cluster: &str, text: &str) {
        self.events.send(What::ClusterStep { cluster: cluster.to_owned(), text: text.to_owned() });
    }

    /// Images in every node, and every node tuned and proved.
    async fn prepared(&self, cluster: &Cluster, kubelets: &[Kubelet]) -> Result<Vec<Arc<Leased>>, String> {
        let work = async {
            let nodes: Vec<&str> = cluster.nodes.iter().map(|node| node.name.as_str()).collect();
            let step = |text: &str| self.cluster_step(&cluster.name, text);
            step("bringing the images");
            images::bring(&self.docker, &nodes, &self.images_of_cases(), &step)
                .await
                .map_err(|error| error.to_string())?;
            step("preparing the nodes");
            let lock = self.request.lock.clone();
            let images: Images = Arc::new(move |name: &str| lock.case_image(name));
            try_join_all(cluster.nodes.iter().map(|node| {
                let mut node = node.clone();
                // Reports speak of kubelets as they were asked for.
                if let Some(asked) =
                    kubelets.iter().find(|kubelet| label_value(&kubelet.label) == node.kubelet)
                {
                    node.kubelet = asked.label.clone();
                }
                Leased::prepare(node, &self.request.run, images.clone())
            }))
            .await
            .map(|leased| leased.into_iter().map(Arc::new).collect())
            .map_err(|error| error.to_string())
        };
        tokio::select! {
            prepared = work => prepared,
            () = self.cancel.cancelled() => Err("interrupted".to_owned()),
        }
    }

    fn images_of_cases(&self) -> Vec<String> {
        let containers = |case: &LoadedCase| -> Vec<String> {
            let in_pods = case.case.pods.iter().flat_map(|pod| {
                ["initContainers", "containers"]
                    .into_iter()
                    .filter_map(|list| pod.get("spec")?.get(list)?.as_array())
            });
            let in_pods = in_pods.flatten().filter_map(Value::as_object);
            let late = case.case.ephemeral_containers.iter().map(|late| &late.container);
            in_pods
                .chain(late)
                // A case that says where its image comes from is taken at its word.
                .filter(|container| !container.contains_key("imagePullPolicy"))
                .filter_map(|container| Some(container.get("image")?.as_str()?.to_owned()))
                .collect()
        };
        let mut all: Vec<String> = self.request.cases.iter().flat_map(|case| containers(case)).collect();
        all.push(CANARY.to_owned());
        all.iter_mut().for_each(|image| *image = self.request.lock.case_image(image));
        all.sort();
        all.dedup();
        all
    }

    /// Every case on every kubelet of the cluster, as often as asked for: first those that share a node, then those that have one for
    /// themselves, node beside node, then those that have the host for themselves.
    async fn cases(self: &Arc<Self>, group: usize, leased: &[Arc<Leased>]) {
        let mut attempt = 1;
        while self.request.repeat.goes_on(attempt, self.failed.load(Ordering::Relaxed)) {
            for wanted in [Class::Shared, Class::Node, Class::Host] {
                let mut work = JoinSet::new();
                for kubelet in &self.request.groups[group].kubelets {
                    let nodes: Vec<&Arc<Leased>> =
                        leased.iter().filter(|leased| leased.node.kubelet == kubelet.label).collect();
                    let queue: VecDeque<Job> = self
                        .request
                        .cases
                        .iter()
                        .filter(|case| class(&case.case) == wanted)
                        .filter_map(|case| self.planned_on(case, kubelet, attempt))
                        .collect();
                    let queue = Arc::new(Mutex::new(queue));
                    let workers = if wanted == Class::Shared { SHARED } else { 1 };
                    for node in nodes {
                        for _ in 0..workers {
                            work.spawn_local(self.clone().worker(node.clone(), queue.clone(), wanted));
                        }
                    }
                    if wanted == Class::Host {
                        while work.join_next().await.is_some() {}
                    }
                }
                while work.join_next().await.is_some() {}
            }
            if self.cancel.is_cancelled() {
                break;
            }
            attempt += 1;
        }
        if self.over.load(Ordering::Relaxed) {
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    /// A case for a kubelet; one that does not hold for it is skipped here, once.
    fn planned_on(&self, case: &Arc<LoadedCase>, kubelet: &Kubelet, attempt: u32) -> Option<Job> {
        let id = id(case, kubelet, attempt);
        if case.case.kubelet.matches(&kubelet.version) {
            return Some(Job { case: case.clone(), id });
        }
        if attempt == 1 {
            let why = format!("it holds for kubelets {}", case.case.kubelet);
            self.ended(id, None, 0.0, Judgement::without_evidence(Verdict::Skipped, why), None);
        }
        None
    }

    /// Takes one case after the other from the queue, until it is empty or the run is over.
    async fn worker(self: Arc<Self>, leased: Arc<Leased>, queue: Arc<Mutex<VecDeque<Job>>>, class: Class) {
        while !self.cancel.is_cancelled() {
            let Some(job) = queue.lock().await.pop_front() else { return };
            let Job { case, id } = job;
            let began = Instant::now();
            let node = leased.node.name.clone();
            self.events.send(What::CaseStarted { id: id.clone(), node: node.clone() });
            let (shared, leased, named) = (self.clone(), leased.clone(), id.clone());
            // In a task of its own: a panic in one case is that case's error.
            let outcome = AbortOnDropHandle::new(spawn_local(async move {
                if let Some(why) = leased.unfit().await.filter(|_| class != Class::Shared) {
                    let mut judgement = Judgement::without_evidence(Verdict::Error, why);
                    judgement.phase = Some(Phase::Lease);
                    return (judgement, None);
                }
                let _turn = match class {
                    Class::Shared => (Some(leased.turn.read().await), None),
                    _ => (None, Some(leased.turn.write().await)),
                };
                let run = Run {
                    run: &shared.request.run,
                    case: &case,
                    id: named,
                    leased: &leased,
                    host: &shared.host,
                    events: &shared.events,
                    cancel: &shared.cancel,
                };
                let outcome = run.go().await;
                (outcome.judgement, outcome.evidence)
            }))
            .await;
            let (judgement, evidence) = outcome.unwrap_or_else(|panic| {
                (Judgement::without_evidence(Verdict::Error, format!("a bug in evictlab: {panic}")), None)
            });
            self.ended(id, Some(node), began.elapsed().as_secs_f64(), judgement, evidence);
        }
    }

    fn ended(
        &self,
        id: CaseId,
        node: Option<String>,
        seconds: f64,
        mut judgement: Judgement,
        evidence: Option<Arc<crate::observe::Observations>>,
    ) {
        if let (true, Verdict::Skipped, Some(timeout)) =
            (self.over.load(Ordering::Relaxed) && node.is_some(), judgement.verdict, self.request.timeout)
        {
            judgement.verdict = Verdict::Error;
            judgement.why = format!("the run's time of {} is over", humantime::format_duration(timeout));
        }
        if !matches!(judgement.verdict, Verdict::Passed | Verdict::Reproduced | Verdict::Skipped) {
            self.failed.store(true, Ordering::Relaxed);
        }
        self.events.send(What::CaseEnded { id, node, seconds, judgement: Box::new(judgement), evidence });
    }

    /// Deletes the cluster, or puts its nodes back and leaves it.
    async fn end(&self, name: &str, cluster: Option<Cluster>) {
        let reused = matches!(self.request.clusters, Clusters::Kept(_));
        // Another has taken the name in the meantime, or nothing was begun.
        if !reused && self.state.read(name).is_none_or(|record| record.run != self.request.run) {
            return;
        }
        let began = Instant::now();
        let failed = self.failed.load(Ordering::Relaxed);
        let kept = match self.request.keep {
            _ if reused => Some("it was there before"),
            Keep::Always => Some("--keep"),
            Keep::OnFailure if failed => Some("--keep-on-failure"),
            _ => None,
        };
        // An interrupted run leaves nothing of its own.
        let kept = kept.filter(|_| reused || cluster.is_some() && !self.cancel.is_cancelled());
        let error = match (kept, cluster) {
            (Some(_), Some(mut cluster)) => {
                let back = cluster.sweep(Some(&self.request.run)).await;
                // One that was lent for a test run stays the test run's.
                let signed = if reused { Ok(()) } else { cluster.keep().await };
                let errors =
                    [back.err().map(|error| error.to_string()), signed.err().map(|error| error.to_string())];
                errors.into_iter().flatten().next()
            }
            // What cannot be used any more but was there before is its owner's to judge.
            (Some(_), None) if reused => None,
            _ => cluster::delete(&self.docker, &self.state, name).await.err().map(|error| error.to_string()),
        };
        self.events.send(What::ClusterDeleted {
            cluster: name.to_owned(),
            seconds: began.elapsed().as_secs_f64(),
            kept: kept.map(str::to_owned),
            error,
        });
    }

    /// After a panic: everything of this run goes, however far it came.
    async fn sweep(&self, error: &str) {
        self.cancel.cancel();
        for (group, of) in self.request.groups.iter().enumerate() {
            let name = self.name(group);
            let failed = |error: String| What::ClusterFailed { cluster: name.clone(), seconds: 0.0, error };
            self.events.send(failed(error.to_owned()));
            let cluster = match &self.request.clusters {
                Clusters::New { .. } => None,
                Clusters::Kept(name) => {
                    match Cluster::open(&self.docker, &self.state, name, &of.kubelets).await {
                        Ok(cluster) => Some(cluster),
                        Err(error) => {
                            self.events.send(failed(error.to_string()));
                            None
                        }
                    }
                }
            };
            self.end(&name, cluster).await;
        }
    }
}

/// A case to be run.
struct Job {
    case: Arc<LoadedCase>,
    id: CaseId,
}

fn id(case: &LoadedCase, kubelet: &Kubelet, attempt: u32) -> CaseId {
    CaseId {
        suite: case.suite.clone(),
        case: case.case.name.to_string(),
        kubelet: kubelet.label.clone(),
        attempt,
    }
}
