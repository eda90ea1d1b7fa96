//! One test of one process, as nextest runs them: the processes of one nextest run share a cluster.

use std::sync::{Arc, Mutex};

use evictlab_runner::clock::Clock;
use evictlab_runner::cluster::{
    self, Base, Cluster, Clusters, DEADLINE, Group, Keep, KindBackend, Made, Owner, Record, StateDir,
};
use evictlab_runner::images::Lock;
use evictlab_runner::judge::Judgement;
use evictlab_runner::report::{Report, ReportError, RunDir, RunEvent, What};
use evictlab_runner::schedule::{Class, Repeat, Request, class, new_id};
use tokio_util::sync::CancellationToken;

use super::asked::{Asked, Test, kubelets};
use super::outcome::Outcome;
use super::reaper;
use super::whole::{ready, resolved, results, start};

/// Runs a test on the cluster of its nextest run; the first process makes the cluster, and one that outlives nextest deletes it.
pub fn run(asked: &Asked, test: &Test) -> Outcome {
    match judged(asked, test) {
        Ok(Some(judgement)) => Outcome::Judged(Box::new(judgement)),
        Ok(None) => Outcome::Nothing,
        Err(why) => Outcome::NoCluster { why, required: asked.require_cluster },
    }
}

fn judged(asked: &Asked, test: &Test) -> Result<Option<Judgement>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let runtime = tokio::runtime::Runtime::new().map_err(|error| text(&error))?;
    let docker = runtime.block_on(ready())?;
    let lock = Lock::load(None).map_err(|error| text(&error))?;
    let state = StateDir::open().map_err(|error| text(&error))?;
    // Every process works the same groups out, so that all agree on the clusters' names.
    let specs = kubelets(&asked.tests);
    let resolved = runtime.block_on(resolved(&docker, &lock, &specs))?;
    let mine = specs.iter().position(|spec| *spec == test.kubelet).map(|at| resolved[at].clone());
    let mine = mine.ok_or("the test has no kubelet")?;
    let groups = cluster::group(resolved).map_err(|error| text(&error))?;
    let group = groups.iter().position(|group| group.kubelets.contains(&mine)).unwrap_or(0);
    let invocation = invocation();
    let name = format!("evictlab-{invocation}-{}", group + 1);
    let owner = nextest();
    {
        let _making = state.lock(&name).map_err(|error| text(&error))?;
        if state.read(&name).is_none() {
            make(&runtime, &docker, &state, &name, &groups[group], owner.clone())?;
        }
    }
    // A case has what it disturbs for itself: the host, its turn at the disk, its node.
    let class = class(&test.case.case, true);
    let disk = (class == Class::Disk).then(|| state.lock(&format!("{name}-disk"))).transpose();
    let _disk = disk.map_err(|error| text(&error))?;
    let host = match class {
        Class::Host => state.lock(&format!("{name}-host")),
        _ => state.lock_shared(&format!("{name}-host")),
    };
    let _host = host.map_err(|error| text(&error))?;
    let _node = state.lock(&format!("{name}-{}", mine.label)).map_err(|error| text(&error))?;
    let group = Group { kubelets: vec![mine], ..groups[group].clone() };
    let made =
        Made { run: new_id(), groups: vec![group], clusters: Clusters::Kept(name), keep: Keep::Never, owner };
    let request = Request {
        run: made.run.clone(),
        cases: vec![test.case.clone()],
        backend: Box::new(KindBackend::new(made, docker, state.clone())),
        repeat: Repeat::Times(1),
        timeout: None,
        lock: Arc::new(lock),
        baseline: None,
    };
    let place = results().join(format!("nextest-{invocation}")).join(test.name.replace(['/', ':'], "-"));
    let run_dir = RunDir::at(&place).map_err(|error| text(&error))?;
    let verdict = Arc::new(Mutex::new(None));
    start(&runtime, request, run_dir, Clock::wall(), Some(Box::new(Note(verdict.clone()))))?;
    let noted = verdict.lock().map_err(|error| text(&error))?.take();
    Ok(noted)
}

fn make(
    runtime: &tokio::runtime::Runtime,
    docker: &cluster::Docker,
    state: &StateDir,
    name: &str,
    group: &Group,
    owner: Owner,
) -> Result<(), String> {
    let labels = group.kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
    let record = Record::new(name, name, owner, labels, DEADLINE);
    state.write(&record).map_err(|error| error.to_string())?;
    reaper::spawn(name)
        .map_err(|error| format!("the process that deletes the cluster cannot be started: {error}"))?;
    let base = Base::load(None).map_err(|error| error.to_string())?;
    let never = CancellationToken::new();
    let made = runtime.block_on(Cluster::create(docker, state, record, (group, &base, 1), &never, |_| {}));
    if let Err(error) = made {
        let deleted = runtime.block_on(cluster::delete(docker, state, name));
        return Err(deleted.err().map_or(error.to_string(), |more| format!("{error}\n{more}")));
    }
    Ok(())
}

/// A short name for this nextest run, the same in all its processes.
fn invocation() -> String {
    let id = std::env::var("NEXTEST_RUN_ID").unwrap_or_default();
    let short: String = id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    format!("nextest-{}", short.to_lowercase())
}

/// The nextest process, our parent: the cluster lives as long as it does.
fn nextest() -> Owner {
    let parent = std::os::unix::process::parent_id();
    Owner::of(parent).unwrap_or_else(Owner::this)
}

/// A report that notes the one verdict.
struct Note(Arc<Mutex<Option<Judgement>>>);

impl Report for Note {
    fn name(&self) -> &'static str {
        "test"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        if let (What::CaseEnded { judgement, .. }, Ok(mut noted)) = (&event.what, self.0.lock()) {
            *noted = Some((**judgement).clone());
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        Ok(())
    }
}
