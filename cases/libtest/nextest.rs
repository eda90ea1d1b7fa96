//! Runs one test per process, as nextest does: the processes of a nextest run share a cluster.

use std::sync::Arc;

use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::{
    Backend, Cluster, ClusterProgress, ClusterRecord, ClusterSource, KeepPolicy, KindBackend, KindConfig,
    KindOptions, KubeletGroup, NewCluster, Owner, StateDir,
};
use evictlab_judge::CaseResult;
use evictlab_report::clock::Clock;
use evictlab_report::{RunDir, VerdictCollector};
use evictlab_runner::{Exclusivity, RunRequest, SharedResources, exclusivity, new_run_id};
use tokio_util::sync::CancellationToken;

use super::context::{connect_docker, execute, resolve_kubelets, results_dir};
use super::options::{Test, TestOptions, kubelets};
use super::outcome::TestOutcome;
use super::reaper;

/// Runs a test on the cluster of its nextest run. The first process creates the cluster; its reaper
/// deletes it after the end of nextest.
pub(crate) fn run(options: &TestOptions, test: &Test) -> TestOutcome {
    match run_case(options, test) {
        Ok(Some(result)) => TestOutcome::Judged(result),
        Ok(None) => TestOutcome::NoVerdict,
        Err(why) => TestOutcome::NoCluster { why, required: options.require_cluster },
    }
}

fn run_case(options: &TestOptions, test: &Test) -> Result<Option<Arc<CaseResult>>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let runtime = tokio::runtime::Runtime::new().map_err(|error| text(&error))?;
    let docker = runtime.block_on(connect_docker())?;
    let catalog = ImageCatalog::load(None).map_err(|error| text(&error))?;
    let state = StateDir::open().map_err(|error| text(&error))?;
    // All processes compute the same groups and therefore the same cluster names.
    let specs = kubelets(&options.tests);
    let resolved = runtime.block_on(resolve_kubelets(&docker, &catalog, &specs))?;
    let own = specs.iter().position(|spec| *spec == test.kubelet).map(|at| resolved[at].clone());
    let own = own.ok_or("the test has no kubelet")?;
    let groups = evictlab_cluster::group_by_skew(resolved).map_err(|error| text(&error))?;
    let group = groups.iter().position(|group| group.kubelets.contains(&own)).unwrap_or(0);
    let invocation = invocation();
    let name = format!("evictlab-{invocation}-{}", group + 1);
    let owner = nextest();
    {
        let _creation = state.lock(&name).map_err(|error| text(&error))?;
        if state.read(&name).is_none() {
            let labels = groups[group].kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
            let record = ClusterRecord::new(docker.id(), &name, &name, owner.clone(), labels);
            create_cluster(&runtime, &docker, &state, record, &groups[group])?;
        }
    }
    // A case holds the locks of the resources that it disturbs: the host, the disk, its node.
    let class = exclusivity(&test.case.case, SharedResources::HostAndDisk);
    let disk = (class == Exclusivity::Disk).then(|| state.lock(&format!("{name}-disk"))).transpose();
    let _disk = disk.map_err(|error| text(&error))?;
    let host = match class {
        Exclusivity::Host => state.lock(&format!("{name}-host")),
        _ => state.lock_shared(&format!("{name}-host")),
    };
    let _host = host.map_err(|error| text(&error))?;
    let _node = state.lock(&format!("{name}-{}", own.label)).map_err(|error| text(&error))?;
    let group = KubeletGroup { kubelets: vec![own], ..groups[group].clone() };
    let kind_options = KindOptions {
        run: new_run_id(),
        groups: vec![group],
        clusters: ClusterSource::Kept(name),
        keep: KeepPolicy::Never,
        owner,
    };
    let (run, cases) = (kind_options.run.clone(), vec![test.case.clone()]);
    let backend = Backend::Kind(KindBackend::new(kind_options, docker, state.clone()));
    let request = RunRequest::new(run, cases, backend, Arc::new(catalog));
    let dir = results_dir().join(format!("nextest-{invocation}")).join(test.name.replace(['/', ':'], "-"));
    let run_dir = RunDir::at(&dir).map_err(|error| text(&error))?;
    let verdicts = VerdictCollector::default();
    execute(&runtime, request, run_dir, Clock::wall(), &verdicts)?;
    Ok(verdicts.last_result(|_| true))
}

/// Creates the cluster and starts its reaper; deletes the cluster if the creation fails.
fn create_cluster(
    runtime: &tokio::runtime::Runtime,
    docker: &evictlab_cluster::Docker,
    state: &StateDir,
    record: ClusterRecord,
    group: &KubeletGroup,
) -> Result<(), String> {
    let name = record.cluster.clone();
    state.write(&record).map_err(|error| error.to_string())?;
    reaper::spawn(&name)
        .map_err(|error| format!("failed to start the process that deletes the cluster: {error}"))?;
    let base = KindConfig::load(None).map_err(|error| error.to_string())?;
    let never = CancellationToken::new();
    let created = runtime.block_on(Cluster::create(
        docker,
        state,
        NewCluster { record, group, base: &base, nodes: 1 },
        &never,
        ClusterProgress::SILENT,
    ));
    if let Err(error) = created {
        let deleted = runtime.block_on(evictlab_cluster::delete(docker, state, &name));
        return Err(deleted.err().map_or(error.to_string(), |more| format!("{error}\n{more}")));
    }
    Ok(())
}

/// Returns a short name of this nextest run, the same in all its processes.
fn invocation() -> String {
    let id = std::env::var("NEXTEST_RUN_ID").unwrap_or_default();
    let short: String = id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    format!("nextest-{}", short.to_lowercase())
}

/// Returns the nextest process, the parent of this one: the cluster exists as long as it does.
fn nextest() -> Owner {
    let parent = std::os::unix::process::parent_id();
    Owner::from_pid(parent).unwrap_or_else(Owner::current)
}
