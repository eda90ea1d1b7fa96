//! `evictlab job`: manifests; and workers, which are processes here, on an embedded cluster that
//! another process serves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;

use evictlab_case::LoadedCase;
use evictlab_case::Source;
use evictlab_case::select::{Selection, Shard, select};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::embedded::ALL_CASES;
use crate::existing::{DELETION, QUICK, ServedCluster, events, evictlab};

use crate::documents;

/// The files for kustomize, and the command that prints them.
const BASE: [&str; 11] = [
    "job",
    "manifest",
    "--node-selector",
    "evictlab.dev/under-test=true",
    "--allow-disruption",
    "--indexes",
    "12",
    "--parallelism",
    "3",
    "--nodes-per-version",
    "1",
];

fn project(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

/// Exit status, standard output, standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = evictlab(folder).args(arguments).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), out, err)
}

#[test]
fn the_kustomize_base_is_what_the_command_prints() {
    let folder = tempfile::tempdir().unwrap();
    let (status, printed, error) = run(folder.path(), &BASE);
    assert_eq!(status, 0, "{error}");
    let path = project("images/evictlab/kustomize/base/job.yaml");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        fs::write(&path, &printed).unwrap();
    }
    let file = fs::read_to_string(path).unwrap();
    assert_eq!(file, printed, "update it: `evictlab {}`", BASE.join(" "));
    let read = |file: &str| -> serde_yaml::Value {
        serde_yaml::from_str(&fs::read_to_string(project("images/evictlab/kustomize").join(file)).unwrap())
            .unwrap()
    };
    assert_eq!(read("base/kustomization.yaml")["resources"][0].as_str(), Some("job.yaml"));
    // The patches of the example apply to fields of the base.
    let documents: Vec<serde_yaml::Value> = serde_yaml::Deserializer::from_str(&file)
        .map(|document| serde::Deserialize::deserialize(document).unwrap())
        .collect();
    let job = documents.iter().find(|object| object["kind"].as_str() == Some("Job")).unwrap();
    let job = serde_json::to_value(job).unwrap();
    let example = read("example/kustomization.yaml");
    let operations: serde_yaml::Value =
        serde_yaml::from_str(example["patches"][0]["patch"].as_str().unwrap()).unwrap();
    let operations = operations.as_sequence().unwrap();
    assert!(!operations.is_empty());
    for operation in operations {
        let path = operation["path"].as_str().unwrap();
        assert!(job.pointer(path).is_some(), "the base has no {path}");
    }
}

#[test]
fn rejects_what_a_job_cannot_run() {
    let folder = tempfile::tempdir().unwrap();
    let selected = ["--node-selector", "a=b"];
    let rows: [(&[&str], &str); 10] = [
        (&["message"], "failed to select the nodes under test: --node-selector is missing\nhelp: label them"),
        (
            &["./mine.yaml", "--node-selector", "a=b"],
            "failed to use case file ./mine.yaml: it is not in the image",
        ),
        (
            &["message", "--shard", "1/2", "--node-selector", "a=b"],
            "failed to apply --shard: each index of the job is a shard",
        ),
        (
            &["sidecars-are-named", "--indexes", "2", "--node-selector", "a=b"],
            "failed to split the cases: 2 indexes are more than the 1 selected",
        ),
        (
            &["message", "--node-selector", "a b"],
            "failed to parse --node-selector: \"a b\" is not a requirement",
        ),
        (&["message", "--node-selector", "a=b", "--name", "A"], "a name has at most 50 characters"),
        (
            &["message", "--node-selector", "a=b", "--", "--repeat", "no"],
            "failed to parse the options of the runs: invalid value 'no'",
        ),
        (
            &["message", "--node-selector", "a=b", "--", "--backend", "kind"],
            "failed to parse the options of the runs: the argument '--backend",
        ),
        (
            &["message", "--node-selector", "a=b", "--", "--repeet", "2"],
            "unexpected argument '--repeet' found\n  tip: a similar argument exists: '--repeat'\nhelp: see `evictlab run --help`",
        ),
        (
            &["message", "--node-selector", "a=b", "--", "--evidence", "some"],
            "invalid value 'some' for '--evidence <WHICH>'\n  [possible values: all, failures]\nhelp: see",
        ),
    ];
    for (arguments, expected) in rows {
        let (status, _, error) = run(folder.path(), &[&["job", "manifest"], arguments].concat());
        assert!(status == 2 && error.contains(expected), "{arguments:?}: {error}");
    }
    let (status, help, error) =
        run(folder.path(), &["job", "manifest", "message", "--node-selector", "a=b", "--", "--help"]);
    assert!(status == 0 && help.contains("Run cases on one or more kubelets"), "{help}{error}");
    let (status, _, error) = run(folder.path(), &["job", "worker", "--indexes", "2"]);
    assert!(status == 2 && error.contains("EVICTLAB_JOB is not set"), "{error}");
    let (_, printed, _) = run(
        folder.path(),
        &[&["job", "manifest", "message", "--focus", "sidecars(x$(b)?)?"], &selected[..]].concat(),
    );
    assert!(printed.contains("- sidecars(x$$(b)?)?\n"), "Kubernetes would expand it: {printed}");
}

/// A worker of the Job `evictlab/test`.
struct Worker {
    process: Child,
    results: PathBuf,
    log: PathBuf,
}

impl Worker {
    fn start(cluster: &ServedCluster, (index, indexes): (usize, usize), cases: &[&str]) -> Self {
        let place = format!("index-{index}-{}", fs::read_dir(cluster.folder.path()).unwrap().count());
        let results = cluster.folder.path().join(&place);
        let log = cluster.folder.path().join(format!("{place}.log"));
        let output = fs::File::create(&log).unwrap();
        let mut command = evictlab(cluster.folder.path());
        command.env("EVICTLAB_JOB", "evictlab/test").env("JOB_COMPLETION_INDEX", index.to_string());
        command.args(["job", "worker", "--indexes", &indexes.to_string(), "--output-dir", &place, "--"]);
        command.args(cases).args(["--kubeconfig", &cluster.kubeconfig, "--nodes-per-version", "1"]);
        command.stdout(output.try_clone().unwrap()).stderr(output);
        Self { process: command.spawn().unwrap(), results, log }
    }

    fn wait_for(&mut self, step: &str) {
        while !events(&self.results).iter().any(|event| event.to_string().contains(step)) {
            assert!(
                self.process.try_wait().unwrap().is_none(),
                "it ended before {step:?}: {}",
                self.messages()
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// The log without the lines of the results.
    fn messages(&self) -> String {
        let log = self.log();
        let lines = log.lines().filter(|line| !line.starts_with("evictlab-results"));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Waits for a success.
    fn end(&mut self) {
        let status = self.process.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.messages());
        assert!(self.log().lines().last().unwrap().contains(" end "), "{}", self.messages());
    }

    /// The nodes of the run, and the time in which it held them.
    fn held(&self) -> (BTreeSet<String>, Timestamp, Timestamp) {
        let events = events(&self.results);
        let event = |what: &str| events.iter().find(|event| event["type"] == what).unwrap();
        let time = |event: &Value| event["at"].as_str().unwrap().parse().unwrap();
        let ready = event("cluster-ready");
        let nodes =
            ready["nodes"].as_array().unwrap().iter().map(|node| node[0].as_str().unwrap().to_owned());
        // The nodes are free from the beginning of the clean-up on at the earliest.
        let last = events.iter().rfind(|event| event["type"] == "case-ended").unwrap();
        (nodes.collect(), time(ready), time(last))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

fn verdicts(results: &Path) -> BTreeSet<String> {
    let ended = events(results).into_iter().filter(|event| event["type"] == "case-ended");
    let verdict =
        |event: Value| format!("{} {} {}", event["case"], event["kubelet"], event["result"]["verdict"]);
    ended.map(verdict).collect()
}

/// Three indexes at a time, one more than nodes of each version, on shards of different sizes.
#[test]
fn indexes_share_the_nodes_and_give_the_verdicts_of_one_run() {
    let cluster = ServedCluster::new();
    let cases = [
        QUICK,
        DELETION,
        "relatives/api-eviction",
        "relatives/api-eviction-blocked-by-pdb",
        "limits/emptydir-size",
    ];
    const INDEXES: usize = 4;
    let start = |index| Worker::start(&cluster, (index, INDEXES), &cases);
    let mut running: Vec<Worker> = (0..3).map(start).collect();
    let mut ended = Vec::new();
    for next in 3..=INDEXES + 2 {
        let mut first = running.remove(0);
        first.end();
        ended.push(first);
        if next < INDEXES {
            running.push(start(next));
        }
    }
    assert_eq!(ended.len(), INDEXES);
    let held: Vec<_> = ended.iter().map(Worker::held).collect();
    let mut in_parallel = 0;
    for (position, (nodes, from, to)) in held.iter().enumerate() {
        assert_eq!(nodes.len(), 2, "one of each version: {nodes:?}");
        for (others, begin, end) in &held[position + 1..] {
            if from < end && begin < to {
                in_parallel += 1;
                assert!(nodes.is_disjoint(others), "two runs used {nodes:?} and {others:?}");
            }
        }
    }
    assert!(in_parallel > 0, "indexes run in parallel: {held:?}");

    let dirs: Vec<&str> = ended.iter().map(|worker| worker.results.to_str().unwrap()).collect();
    let (status, out, err) =
        run(cluster.folder.path(), &[&["report", "merge", "--output-dir", "merged"], &dirs[..]].concat());
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    let whole =
        ["run", "--backend", "existing", "--kubeconfig", &cluster.kubeconfig, "--output-dir", "whole"];
    let (status, out, err) = run(cluster.folder.path(), &[&whole[..], &cases].concat());
    assert_eq!(status, 0, "{out}{err}");
    let [merged, whole] = ["merged", "whole"].map(|name| verdicts(&cluster.folder.path().join(name)));
    assert_eq!(merged.len(), 2 * cases.len());
    assert_eq!(merged, whole);
    assert!(cluster.gc().starts_with("0 namespaces removed from "));
}

#[test]
fn a_killed_index_is_retried_and_leaves_nothing() {
    let cluster = ServedCluster::new();
    let cases = ["limits/emptydir-size"];
    let mut killed = Worker::start(&cluster, (0, 1), &cases);
    killed.wait_for("\"observe\"");
    killed.process.kill().unwrap();
    killed.process.wait().unwrap();
    assert!(!killed.log().contains("evictlab-results"));
    let mut retried = Worker::start(&cluster, (0, 1), &cases);
    retried.end();
    assert!(retried.log().contains("namespaces of an earlier attempt"), "{}", retried.messages());
    assert!(cluster.gc().starts_with("0 namespaces removed from "), "the retry removed them");
}

/// The model does not run Indexed Jobs: a Job with one pod, whose log is that of a worker, shows
/// that the results are found in it.
#[test]
fn results_are_collected_from_the_logs_of_pods() {
    let cluster = ServedCluster::new();
    let mut worker = Worker::start(&cluster, (0, 1), &[QUICK]);
    worker.end();
    let client = Client::new(&cluster);
    client.create_job(&worker.log());
    let job = |words: &[&str]| {
        let access = ["--namespace", "default", "--kubeconfig", &cluster.kubeconfig];
        run(cluster.folder.path(), &[&["job"], words, &access].concat())
    };
    let (status, out, err) = job(&["watch"]);
    assert_eq!(status, 0, "{out}{err}");
    assert!(out.contains("index 0: "), "{out}");
    let (_, view, _) = job(&["watch", "--once", "--json"]);
    let view = documents::parse("job-watch", &view);
    assert_eq!((&view["phase"], &view["indexes"][0]["attempts"]), (&json!("complete"), &json!(1)), "{view}");
    let (status, out, err) = job(&["collect", "collected"]);
    assert_eq!(status, 0, "{out}{err}");
    assert!(err.contains("index 0: results of pod evictlab-"), "{err}");
    let [merged, own] =
        [cluster.folder.path().join("collected/merged"), worker.results.clone()].map(|dir| verdicts(&dir));
    assert!(merged == own && !own.is_empty());
    let (status, _, err) = job(&["collect", "collected"]);
    assert!(status == 2 && err.contains("collected: the directory is not empty"), "{err}");
    let (status, _, err) = job(&["delete"]);
    assert!(status == 0 && err.contains("deleted Job evictlab"), "{err}");
    assert_eq!(client.pods_of_job(), 0);
    for words in [&["delete"][..], &["watch"], &["collect", "other"]] {
        let (status, _, err) = job(words);
        assert!(status == 2 && err.contains("failed to find job default/evictlab"), "{words:?}: {err}");
    }
}

/// A client of a served cluster.
struct Client {
    runtime: tokio::runtime::Runtime,
    client: kube::Client,
}

impl Client {
    fn new(cluster: &ServedCluster) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let client = runtime.block_on(cluster.client());
        Self { runtime, client }
    }

    /// Creates a Job `default/evictlab` whose pod prints a log.
    fn create_job(&self, log: &str) {
        let script: String = log.lines().map(|line| format!("echo '{}'\n", line.replace('\'', ""))).collect();
        let container = json!({"name": "evictlab", "image": "agnhost:2.52", "command": ["sh", "-c", script]});
        let index = json!({"batch.kubernetes.io/job-completion-index": "0"});
        let job = json!({
            "metadata": {"name": "evictlab", "labels": {"evictlab.dev/job": "default.evictlab"}},
            "spec": {"completions": 1, "template": {
                "metadata": {"annotations": index},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            }},
        });
        let jobs: kube::Api<k8s_openapi::api::batch::v1::Job> =
            kube::Api::namespaced(self.client.clone(), "default");
        let job = serde_json::from_value(job).unwrap();
        self.runtime.block_on(jobs.create(&Default::default(), &job)).unwrap();
    }

    fn pods_of_job(&self) -> usize {
        let pods: kube::Api<k8s_openapi::api::core::v1::Pod> =
            kube::Api::namespaced(self.client.clone(), "default");
        self.runtime.block_on(pods.list(&Default::default())).unwrap().items.len()
    }
}

/// The time of each case on a kubelet of the model, in seconds.
fn seconds_by_case() -> BTreeMap<String, f64> {
    let mut started = BTreeMap::new();
    let mut seconds = BTreeMap::new();
    for event in &ALL_CASES.events {
        let id = format!(
            "{}/{}",
            event["suite"].as_str().unwrap_or_default(),
            event["case"].as_str().unwrap_or_default()
        );
        let at = || -> Timestamp { event["at"].as_str().unwrap().parse().unwrap() };
        let key = (id.clone(), event["kubelet"].as_str());
        match event["type"].as_str().unwrap() {
            "case-started" => _ = started.insert(key, at()),
            "case-ended" => {
                let took = started.get(&key).map_or(0.0, |began| at().duration_since(*began).as_secs_f64());
                *seconds.entry(id).or_default() += took;
            }
            _ => {}
        }
    }
    assert!(seconds.len() > 100);
    seconds
}

/// Ten workers take the indexes in their order, each the next one when it is free, as Kubernetes
/// does.
#[test]
fn small_shards_keep_ten_workers_busy() {
    const WORKERS: usize = 10;
    let seconds = seconds_by_case();
    let cases: Vec<Arc<LoadedCase>> =
        select(&Source::find(None, cases::FILES), &Selection::default()).unwrap();
    let total: f64 = seconds.values().sum();
    let ratio = |indexes: usize| {
        let mut busy = [0.0_f64; WORKERS];
        for part in 1..=indexes {
            let shard = Shard { part, of: indexes }.select(cases.clone());
            let next = busy.iter_mut().min_by(|one, other| one.total_cmp(other)).unwrap();
            *next += shard.iter().map(|case| seconds[&case.id()]).sum::<f64>();
        }
        busy.into_iter().fold(0.0, f64::max) / (total / WORKERS as f64)
    };
    let (one, four) = (ratio(WORKERS), ratio(4 * WORKERS));
    println!(
        "{total:.0} s of cases: {one:.2} of the ideal with {WORKERS} indexes, {four:.2} with {}",
        4 * WORKERS
    );
    assert!(four <= 1.3, "{four}");
}
