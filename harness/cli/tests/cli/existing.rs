//! `evictlab run --backend existing` on an embedded cluster that another process serves, in real
//! time: verdicts, skipped cases, and that no resources remain.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::core::v1::{Container, Namespace, Node, Pod, ResourceQuota};
use kube::Api;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, from_value, json};
use tempfile::TempDir;

/// A case whose pods state no limits.
pub(crate) const DELETION: &str = "relatives/graceful-delete";
/// A case that evicts no pod.
pub(crate) const QUICK: &str = "message/ephemeral-resources-are-refused";

pub(crate) fn evictlab(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder).env_clear().env("PATH", "/nonexistent").stdin(Stdio::null());
    command
}

/// A served embedded cluster.
pub(crate) struct ServedCluster {
    pub(crate) folder: TempDir,
    server: Child,
    pub(crate) kubeconfig: String,
}

impl ServedCluster {
    /// Serves two nodes of 1.32 and two of 1.31.
    pub(crate) fn new() -> Self {
        Self::with(&["--kubelet", "v1.32", "--kubelet", "v1.31", "--nodes", "2"])
    }

    /// Serves a cluster that is created with these options.
    pub(crate) fn with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut server = evictlab(folder.path())
            .env("EVICTLAB_STATE_DIR", folder.path().join("state"))
            .args(["cluster", "create", "--backend", "embedded"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let kubeconfig =
            lines.find_map(|line| line.unwrap().strip_prefix("export KUBECONFIG=").map(str::to_owned));
        Self { folder, server, kubeconfig: kubeconfig.unwrap() }
    }

    /// Creates a client of the cluster.
    pub(crate) async fn client(&self) -> kube::Client {
        let kubeconfig = kube::config::Kubeconfig::read_from(&self.kubeconfig).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
        kube::Client::try_from(config).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = evictlab(self.folder.path());
        command.args(arguments).args(["--backend", "existing", "--kubeconfig", &self.kubeconfig]);
        command
    }

    /// Exit status, standard output, standard error.
    fn run_to_end(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code().unwrap(), out, err)
    }

    /// Runs cases; returns the status, the output, and node, verdict and reason of each case on
    /// each kubelet.
    fn run(&self, arguments: &[&str]) -> (i32, String, BTreeMap<(String, String), [String; 3]>) {
        let results = self.folder.path().join("results");
        let (status, out, err) = self.run_to_end(&[&["run", "--output-dir", "results"], arguments].concat());
        let mut verdicts = BTreeMap::new();
        for event in events(&results) {
            let text =
                |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            if text("/type") == "case-ended" {
                let ended = [text("/node"), text("/result/verdict"), text("/result/why")];
                verdicts.insert((text("/case"), text("/kubelet")), ended);
            }
        }
        fs::remove_dir_all(&results).unwrap_or_else(|error| panic!("{error}\n{out}\n{err}"));
        (status, out + &err, verdicts)
    }

    /// Starts a run with its own run directory, and waits for a step.
    fn start_until(&self, place: &str, arguments: &[&str], step: &str) -> (Child, PathBuf) {
        let results = self.folder.path().join(place);
        let mut run = self.command(&["run", "--output-dir", place]);
        let mut run = run.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !events(&results).iter().any(|event| event.to_string().contains(step)) {
            assert!(run.try_wait().unwrap().is_none(), "it ended before {step:?}: {:?}", events(&results));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        (run, results)
    }

    pub(crate) fn gc(&self) -> String {
        let (status, out, err) = self.run_to_end(&["gc"]);
        assert_eq!(status, 0, "{out}{err}");
        out
    }
}

impl Drop for ServedCluster {
    fn drop(&mut self) {
        // The server deletes its kubeconfig.
        let _gone = kill_process(Pid::from_child(&self.server), Signal::INT);
        let _status = self.server.wait();
    }
}

pub(crate) fn events(results: &Path) -> Vec<Value> {
    let events = fs::read_to_string(results.join("artifacts/events.jsonl")).unwrap_or_default();
    events.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn runs_cases_on_unchanged_nodes_and_leaves_nothing() {
    let cluster = ServedCluster::new();
    let cases = [QUICK, DELETION, "message/sidecars-are-named", "message/soft-threshold-message"];
    let (status, out, verdicts) = cluster.run(&cases);
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("backend existing") && !out.contains("a model"), "{out}");
    let verdict = |case: &str, kubelet: &str| verdicts[&(case.to_owned(), kubelet.to_owned())].clone();
    for kubelet in ["v1.31.14", "v1.32.13"] {
        let [node, ended, why] = verdict("ephemeral-resources-are-refused", kubelet);
        assert_eq!(ended, "passed", "{why}");
        assert!(node.starts_with(&kubelet[..5].replace('.', "-")), "{node}");
        let [_, ended, why] = verdict("graceful-delete", kubelet);
        assert_eq!(ended, "passed", "its pods get limits: {why}");
        let [node, ended, why] = verdict("sidecars-are-named", kubelet);
        assert_eq!([node.as_str(), &ended], ["", "skipped"]);
        assert_eq!(why, "the case puts a node under pressure, which requires --allow-disruption");
        let [_, ended, why] = verdict("soft-threshold-message", kubelet);
        assert_eq!(ended, "skipped");
        assert!(
            why.contains("not supported on existing clusters: evictionMaxPodGracePeriod: requested 6"),
            "{why}"
        );
    }
    assert!(cluster.gc().starts_with("0 namespaces removed from "), "it was not swept");
}

#[test]
fn pressure_requires_permission_and_a_threshold() {
    let cluster = ServedCluster::new();
    let case = "message/sidecars-are-named";
    let why = |arguments: &[&str]| {
        let (status, out, verdicts) = cluster.run(&[&[case, "--allow-disruption"], arguments].concat());
        assert_eq!(status, 0, "{out}");
        verdicts
            .into_iter()
            .map(|((_, kubelet), [_, verdict, why])| format!("{kubelet} {verdict}: {why}"))
            .collect::<Vec<_>>()
    };
    let neither = "skipped: the case puts a node under pressure, and this node is neither selected (--node-selector) nor tainted";
    assert_eq!(why(&[]), [format!("v1.31.14 {neither}"), format!("v1.32.13 {neither}")]);
    let [one] = &why(&["--node-selector", "kubernetes.io/hostname=v1-32-worker2"])[..] else {
        panic!("one kubelet was selected")
    };
    // The configuration of kind sets only disk thresholds, which replace all defaults.
    let none = "v1.32.13 skipped: the node has no hard threshold on memory.available, and its kubelet is not reconfigured";
    assert_eq!(one, none);
}

/// Several attempts of a case evict pods at the same time, each on a node of its own.
#[test]
fn attempts_put_different_nodes_under_pressure_at_the_same_time() {
    let cluster = ServedCluster::with(&[
        "--kubelet",
        "v1.36",
        "--nodes",
        "3",
        "--node-memory",
        "1Gi",
        "--eviction-hard",
        "memory.available<200Mi",
    ]);
    let selected = ["--node-selector", "kubernetes.io/os=linux", "--allow-disruption"];
    let (status, out, err) = cluster.run_to_end(
        &[
            &["run", "message/sidecars-are-named", "--repeat", "3", "--max-starved-nodes", "3"],
            &selected[..],
            &["--nodes-per-version", "3", "--output-dir", "results"],
        ]
        .concat(),
    );
    assert_eq!(status, 0, "{out}{err}");
    let events = events(&cluster.folder.path().join("results"));
    let position = |what: &str, pick: fn(&mut dyn Iterator<Item = usize>) -> Option<usize>| {
        pick(&mut (0..events.len()).filter(|index| events[*index]["type"] == what)).unwrap()
    };
    let last_start = position("case-started", |found| found.last());
    let first_end = position("case-ended", |found| found.next());
    assert!(last_start < first_end, "an attempt waited for another");
    let ended: Vec<&Value> = events.iter().filter(|event| event["type"] == "case-ended").collect();
    let nodes: BTreeSet<&str> = ended.iter().map(|event| event["node"].as_str().unwrap()).collect();
    assert_eq!((ended.len(), nodes.len()), (3, 3));
    for event in ended {
        assert_eq!(event["result"]["verdict"], "passed", "{event}");
    }
    assert!(cluster.gc().starts_with("0 namespaces removed from "));
}

#[test]
fn gc_removes_leftovers_of_killed_runs() {
    let cluster = ServedCluster::new();
    let (mut run, _) = cluster.start_until("first", &["limits/emptydir-size"], "\"observe\"");
    let live = cluster.gc();
    assert!(live.contains("left alone, its run is active"), "{live}");
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(cluster.gc().starts_with("0 namespaces removed from "), "an interrupted run leaves nothing");
    let (mut run, results) = cluster.start_until("second", &["limits/emptydir-size"], "\"observe\"");
    run.kill().unwrap();
    run.wait().unwrap();
    let id = events(&results)[0]["run"].as_str().unwrap().to_owned();
    let dry = || cluster.run_to_end(&["gc", "--dry-run"]).1;
    let first = dry();
    assert!(first.contains("left alone, its process has ended, but its Lease counts for 30 s"), "{first}");
    while dry().contains("left alone") {
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    assert!(dry().contains(&format!("run {id}, ")) && dry().contains("would be removed"), "{}", dry());
    let collected = cluster.gc();
    assert!(collected.contains(&format!("run {id}, ")) && collected.contains(": removed"), "{collected}");
    assert!(cluster.gc().starts_with("0 namespaces removed from "), "{collected}");
}

#[test]
fn a_run_waits_for_the_nodes_of_another_run() {
    let cluster = ServedCluster::new();
    let (mut first, results) = cluster.start_until("first", &["limits/emptydir-size"], "\"observe\"");
    let (mut second, waiting) = cluster.start_until("second", &[QUICK], "waiting for v1-3");
    let holder = events(&results)[0]["run"].as_str().unwrap().to_owned();
    let step = events(&waiting).into_iter().find(|event| event.to_string().contains("waiting for ")).unwrap();
    assert!(step["text"].as_str().unwrap().contains(&format!(", which run {holder} uses")), "{step}");
    kill_process(Pid::from_child(&first), Signal::INT).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(130));
    assert_eq!(second.wait().unwrap().code(), Some(0), "{:?}", events(&waiting));
    assert!(cluster.gc().starts_with("0 namespaces removed from "));
}

/// The pod of a killed run takes memory of its node until it is removed.
#[test]
fn a_run_waits_until_the_pods_of_a_killed_run_are_gone() {
    let cluster = ServedCluster::new();
    let (mut first, results) = cluster.start_until("first", &["limits/emptydir-size"], "\"observe\"");
    first.kill().unwrap();
    first.wait().unwrap();
    let id = events(&results)[0]["run"].as_str().unwrap().to_owned();
    let waits = format!("which has pods of run {id}, which is dead: ");
    let (mut second, waiting) = cluster.start_until("second", &[QUICK], &waits);
    assert!(!events(&waiting).iter().any(|event| event["type"] == "case-started"));
    assert!(cluster.gc().contains(&format!("run {id}, ")));
    assert_eq!(second.wait().unwrap().code(), Some(0), "{:?}", events(&waiting));
    assert!(cluster.gc().starts_with("0 namespaces removed from "));
}

#[test]
fn a_run_without_its_namespaces_ends_in_an_error() {
    let cluster = ServedCluster::new();
    let (mut run, results) = cluster.start_until("run", &["limits/emptydir-size"], "\"observe\"");
    let id = events(&results)[0]["run"].as_str().unwrap().to_owned();
    let (status, out, err) = cluster.run_to_end(&["gc", "--run", &id, "--force"]);
    assert!(status == 0 && out.contains(": removed"), "{out}{err}");
    let code = run.wait().unwrap().code().unwrap();
    let events = events(&results);
    let verdicts: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "case-ended")
        .filter_map(|event| event.pointer("/result/verdict")?.as_str())
        .collect();
    assert!(code != 0 && !verdicts.contains(&"passed"), "{code}, {verdicts:?}");
    assert!(events.iter().any(|event| event.to_string().contains("the run's Lease is gone")), "{events:?}");
}

/// A process in another namespace of process IDs, like one in another container, cannot check
/// whether the process of a run is active.
#[test]
fn gc_in_another_pid_namespace_spares_a_live_run() {
    let is_permitted =
        Command::new("unshare").args(["--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    if !is_permitted.is_ok_and(|status| status.success()) {
        eprintln!("Skipped: this user must not create a namespace of process IDs.");
        return;
    }
    let cluster = ServedCluster::new();
    let (mut run, results) = cluster.start_until("run", &["limits/emptydir-size"], "\"observe\"");
    let id = events(&results)[0]["run"].as_str().unwrap().to_owned();
    let gc = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", env!("CARGO_BIN_EXE_evictlab"), "gc", "--backend", "existing"]);
        let output = command.args(["--kubeconfig", &cluster.kubeconfig]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let spared = gc(&[]);
    assert!(spared.contains("left alone, its run renewed its Lease "), "{spared}");
    assert!(run.try_wait().unwrap().is_none());
    // A run that is killed is dead some time later, on its own host earlier than elsewhere.
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(gc(&[]).contains("left alone, its run renewed its Lease "));
    assert!(gc(&["--run", &id, "--force"]).contains(": removed"));
    assert!(cluster.gc().starts_with("0 namespaces removed from "));
    let (status, _, err) = cluster.run_to_end(&["gc", "--run", &id]);
    assert!(status == 2 && err.contains(&format!("failed to find run {id} in ")), "{err}");
}

/// A case whose pod could take all memory of its node, for some seconds.
const UNLIMITED: &str = "
name: unlimited
about: A pod without limits.
pods:
  - metadata: {name: idle}
    spec:
      containers:
        - name: c
          image: agnhost:2.52
          command: [sh, -c, sleep infinity]
          resources: {requests: {cpu: 1m}}
do: [{when: running(pods.idle), wait: WAIT, about: waiting}]
until: 'true'
expect: {evicted: []}
";

impl ServedCluster {
    /// Writes [`UNLIMITED`] and returns its path.
    fn unlimited_case(&self, wait: &str) -> String {
        let suite = self.folder.path().join("mine");
        fs::create_dir_all(&suite).unwrap();
        let path = suite.join("unlimited.yaml");
        fs::write(&path, UNLIMITED.replace("WAIT", wait)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Uses a client of the cluster.
    fn block_on<T>(&self, work: impl AsyncFnOnce(kube::Client) -> T) -> T {
        tokio::runtime::Runtime::new().unwrap().block_on(async { work(self.client().await).await })
    }

    /// Creates a pod on a node that does not belong to evictlab, though its namespace is named like
    /// those of runs.
    fn create_other_pod(&self, node: &str) {
        self.block_on(async |client| {
            let namespaces: Api<Namespace> = Api::all(client.clone());
            let namespace = json!({"metadata": {"name": "evictlab-theirs"}});
            namespaces.create(&Default::default(), &from_value(namespace).unwrap()).await.unwrap();
            let pods: Api<Pod> = Api::namespaced(client, "evictlab-theirs");
            let pod = json!({
                "metadata": {"name": "theirs"},
                "spec": {"nodeName": node, "containers": [{"name": "c", "image": "agnhost"}]},
            });
            let pod = from_value(pod).unwrap();
            // Pods are forbidden until a controller has made the default service account.
            while let Err(error) = pods.create(&Default::default(), &pod).await {
                assert!(error.to_string().contains("serviceaccount \"default\" not found"), "{error}");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        });
    }
}

#[test]
fn a_case_ends_when_pods_of_others_arrive() {
    let cluster = ServedCluster::new();
    let case = cluster.unlimited_case("60s");
    let node = "v1-32-worker";
    let selected = format!("kubernetes.io/hostname={node}");
    let arguments = [case.as_str(), "--allow-disruption", "--node-selector", &selected];
    let (mut run, results) = cluster.start_until("run", &arguments, "\"observe\"");
    cluster.create_other_pod(node);
    assert_ne!(run.wait().unwrap().code(), Some(0));
    let ended = events(&results).into_iter().find(|event| event["type"] == "case-ended").unwrap();
    assert_eq!(ended["result"]["verdict"], "error");
    let why = ended["result"]["why"].as_str().unwrap();
    assert!(why.starts_with("failed to complete the case: the case puts its node under pressure, "), "{why}");
    assert!(why.contains("and this node runs other pods (evictlab-theirs/theirs)"), "{why}");
    // From now on the node is in use.
    let (status, _, verdicts) = cluster.run(&arguments);
    let [_, verdict, why] = verdicts.values().next().unwrap();
    assert_eq!((status, verdict.as_str()), (0, "skipped"), "{why}");
    assert!(why.contains("with --allow-other-pods if they may be evicted"), "{why}");
}

impl ServedCluster {
    /// Writes a case without pressure, of one pod with these containers, that ends when its pod has
    /// ended or after a minute.
    fn taking_case(&self, containers: &str) -> String {
        let suite = self.folder.path().join("mine");
        fs::create_dir_all(&suite).unwrap();
        let path = suite.join("taking.yaml");
        let case = format!(
            "{{name: taking, about: A pod that takes something., until: \"pods.p.status.phase == 'Failed'\", timeout: 60s,
            expect: {{evicted: [], that: [{{what: reason, value: 'pods.p.status.containerStatuses[0].state.terminated.reason',
                is: OOMKilled}}]}},
            pods: [{{metadata: {{name: p}}, spec: {{restartPolicy: Never, containers: {containers},
                volumes: [{{name: data, emptyDir: {{}}}}]}}}}]}}"
        );
        fs::write(&path, case).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Returns a container that takes so much memory at once, with a request that makes its pod
/// Burstable.
fn taker(name: &str, memory: &str) -> String {
    format!(
        "{{name: {name}, image: 'agnhost:2.52', resources: {{requests: {{cpu: 1m}}, limits: {{ephemeral-storage: 10Mi}}}},
        args: [stress, --mem-total, {memory}, --mem-alloc-size, {memory}, --mem-alloc-sleep, 1s]}}"
    )
}

/// Returns the verdict of the only case of a run, and its reason.
fn only_verdict(results: &Path) -> [String; 2] {
    let ended: Vec<Value> =
        events(results).into_iter().filter(|event| event["type"] == "case-ended").collect();
    let [ended] = &ended[..] else { panic!("{ended:?}") };
    ["verdict", "why"].map(|field| ended["result"][field].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_case_ends_when_its_pods_take_more_than_the_cap() {
    let cluster = ServedCluster::with(&["--kubelet", "v1.36"]);
    let selected =
        ["--allow-disruption", "--node-selector", "kubernetes.io/os=linux", "--pressure-cap", "100Mi"];
    // Each container remains below its limit, which is the cap and 256Mi.
    let case = cluster.taking_case(&format!("[{}, {}]", taker("a", "250Mi"), taker("b", "250Mi")));
    let (_, out, verdicts) = cluster.run(&[&[case.as_str()], &selected[..]].concat());
    let [_, verdict, why] = verdicts.values().next().unwrap_or_else(|| panic!("{out}"));
    assert_eq!(verdict, "error", "{why}");
    assert!(why.contains("of memory or disk, more than the cap of 100Mi (--pressure-cap)"), "{why}");
    // One that takes more is ended by the kernel.
    let case = cluster.taking_case(&format!("[{}]", taker("a", "500Mi")));
    let (_, out, verdicts) = cluster.run(&[&[case.as_str()], &selected[..]].concat());
    let [_, verdict, why] = verdicts.values().next().unwrap_or_else(|| panic!("{out}"));
    assert_eq!(verdict, "passed", "{why}");
}

/// The pod writes 1 GiB each second; the kubelet would enforce its limit after a minute.
#[test]
fn a_case_ends_before_a_fast_writer_causes_disk_pressure() {
    let options = ["--kubelet", "v1.36", "--node-disk", "60Gi", "--eviction-hard", "nodefs.available<10%"];
    let cluster = ServedCluster::with(&options);
    let case = cluster.taking_case(
        "[{name: c, image: 'agnhost:2.52', volumeMounts: [{name: data, mountPath: /data}],
        command: [sh, -c, 'dd if=/dev/zero of=/data/f bs=1M count=200000; sleep infinity']}]",
    );
    let (mut run, results) = cluster.start_until("run", &[&case], "\"observe\"");
    let has_pressure = cluster.block_on(async |client| {
        let nodes: Api<Node> = Api::all(client);
        let mut has_pressure = false;
        while run.try_wait().unwrap().is_none() {
            let listed = nodes.list(&Default::default()).await.unwrap().items;
            let mut conditions = listed
                .iter()
                .flat_map(|node| node.status.iter().flat_map(|status| status.conditions.iter().flatten()));
            has_pressure |= conditions.any(|one| one.type_ == "DiskPressure" && one.status == "True");
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        has_pressure
    });
    let [verdict, why] = only_verdict(&results);
    assert!(!has_pressure, "{verdict}: {why}");
    assert_eq!(verdict, "error", "{why}");
    assert!(why.contains("the node came close to its thresholds"), "{why}");
}

/// While the server is stopped, it accepts connections and never answers.
#[test]
fn a_case_under_pressure_ends_when_its_node_cannot_be_checked() {
    let cluster = ServedCluster::new();
    let case = cluster.unlimited_case("300s");
    let arguments = [&case, "--allow-disruption", "--node-selector", "kubernetes.io/hostname=v1-32-worker"];
    let (mut run, results) = cluster.start_until("run", &arguments, "\"observe\"");
    let server = Pid::from_child(&cluster.server);
    kill_process(server, Signal::STOP).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(50));
    kill_process(server, Signal::CONT).unwrap();
    assert_ne!(run.wait().unwrap().code(), Some(0));
    let [verdict, why] = only_verdict(&results);
    assert_eq!(verdict, "error", "{why}");
    assert!(why.contains("the node could not be checked for "), "{why}");
    assert!(cluster.gc().starts_with("0 namespaces removed from "));
}

/// The clean-up begins although no request about the case is answered.
#[test]
fn an_interrupt_does_not_wait_for_requests_without_an_answer() {
    let cluster = ServedCluster::new();
    let (mut run, results) = cluster.start_until("run", &["limits/emptydir-size"], "\"observe\"");
    let server = Pid::from_child(&cluster.server);
    kill_process(server, Signal::STOP).unwrap();
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(20));
    kill_process(server, Signal::CONT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let events = events(&results);
    assert!(!events.iter().any(|event| event["type"] == "case-ended"), "{events:?}");
    let deleted = events.iter().find(|event| event["type"] == "cluster-deleted").unwrap();
    // It waited for the server since the interrupt.
    assert!(deleted["seconds"].as_f64().unwrap() > 10.0, "{deleted}");
    assert!(cluster.gc().starts_with("0 namespaces removed from "));
}

#[test]
fn the_api_server_guards_the_namespaces_of_cases() {
    let cluster = ServedCluster::new();
    let (mut run, _) = cluster.start_until("run", &[DELETION], "\"observe\"");
    // On a busy machine, the case would end before its namespace has all pods of the quota.
    kill_process(Pid::from_child(&run), Signal::STOP).unwrap();
    let (refusal, pods) = cluster.block_on(async |client| {
        let label = kube::api::ListParams::default().labels("evictlab.dev/run");
        let namespaces = Api::<Namespace>::all(client.clone()).list(&label).await.unwrap().items;
        let names = namespaces.iter().map(|namespace| {
            let labels = namespace.metadata.labels.as_ref().unwrap();
            assert_eq!(labels["pod-security.kubernetes.io/enforce"], "baseline", "{labels:?}");
            namespace.metadata.name.clone().unwrap()
        });
        let name = names.into_iter().find(|name| name.contains("graceful-delete")).unwrap();
        let quotas = Api::<ResourceQuota>::namespaced(client.clone(), &name).list(&Default::default()).await;
        let quotas = quotas.unwrap().items;
        let [quota] = &quotas[..] else { panic!("{quotas:?}") };
        let hard = quota.spec.as_ref().and_then(|spec| spec.hard.as_ref()).unwrap();
        assert_eq!(hard["count/pods"].0, "300");
        let api: Api<Pod> = Api::namespaced(client, &name);
        let pods = api.list(&Default::default()).await.unwrap().items;
        // As a controller whose pods are evicted would do it.
        let pod = json!({
            "metadata": {"generateName": "again-"},
            "spec": {"containers": [{"name": "c", "image": "agnhost"}], "nodeSelector": {"no": "node"}},
        });
        let pod = from_value(pod).unwrap();
        let mut created = pods.len();
        let refusal = loop {
            match api.create(&Default::default(), &pod).await {
                Ok(_) => created += 1,
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!(created, 300, "{refusal}");
        (refusal, pods)
    });
    assert!(refusal.contains("exceeded quota"), "{refusal}");
    assert!(!pods.is_empty());
    let limits = |container: &Container| {
        let resources = container.resources.as_ref().and_then(|resources| resources.limits.clone());
        resources.unwrap_or_else(|| panic!("no limits: {container:?}"))
    };
    for pod in &pods {
        let limits: Vec<_> = pod.spec.as_ref().unwrap().containers.iter().map(limits).collect();
        assert!(limits.iter().all(|limits| limits.contains_key("memory")), "{limits:?}");
        assert!(limits.iter().any(|limits| limits.contains_key("ephemeral-storage")), "{limits:?}");
    }
    kill_process(Pid::from_child(&run), Signal::CONT).unwrap();
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    run.wait().unwrap();
    assert!(cluster.gc().starts_with("0 namespaces removed from "), "it was not swept");
}

#[test]
fn one_node_at_a_time_is_under_pressure() {
    let cluster = ServedCluster::new();
    let case = cluster.unlimited_case("2s");
    let run = |arguments: &[&str]| {
        let all =
            [&[case.as_str(), "--allow-disruption", "--node-selector", "kubernetes.io/os=linux"], arguments];
        let place = format!("run{}", arguments.len());
        let (status, out, err) =
            cluster.run_to_end(&[&["run", "--output-dir", &place], &all.concat()[..]].concat());
        assert_eq!(status, 0, "{out}{err}");
        // The kubelets whose pod runs at the same time, at most.
        let (mut now, mut most) = (BTreeSet::new(), 0);
        for event in events(&cluster.folder.path().join(place)) {
            match event["type"].as_str().unwrap() {
                "case-progress" => _ = now.insert(event["kubelet"].to_string()),
                "case-ended" => _ = now.remove(&event["kubelet"].to_string()),
                _ => {}
            }
            most = most.max(now.len());
        }
        most
    };
    assert_eq!((run(&[]), run(&["--max-starved-nodes", "2"])), (1, 2));
}

/// The next case waits until the node of the last one does not report pressure any more.
#[test]
fn a_node_keeps_its_permit_until_it_has_recovered() {
    let options = ["--kubelet", "v1.36", "--nodes", "3", "--node-memory", "1Gi", "--eviction-hard"];
    let period = ["memory.available<200Mi", "--eviction-pressure-transition-period", "5s"];
    let cluster = ServedCluster::with(&[&options[..], &period].concat());
    let arguments = ["message/sidecars-are-named", "--repeat", "2", "--nodes-per-version", "3"];
    let selected = ["--node-selector", "kubernetes.io/os=linux", "--allow-disruption"];
    let (mut run, results) =
        cluster.start_until("run", &[&arguments[..], &selected].concat(), "case-started");
    let most = cluster.block_on(async |client| {
        let nodes: Api<Node> = Api::all(client);
        let mut most = 0;
        while run.try_wait().unwrap().is_none() {
            let listed = nodes.list(&Default::default()).await.unwrap().items;
            let has_pressure = |node: &&Node| {
                let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
                conditions.into_iter().any(|one| one.type_ == "MemoryPressure" && one.status == "True")
            };
            most = most.max(listed.iter().filter(has_pressure).count());
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        most
    });
    let ended: Vec<Value> =
        events(&results).into_iter().filter(|event| event["type"] == "case-ended").collect();
    assert_eq!((most, ended.len()), (1, 2), "{ended:?}");
}

/// As in a pod: no kubeconfig, the address in the environment, and the files of the service
/// account, in a mount namespace of its own.
#[test]
fn uses_the_service_account_of_its_pod() {
    let in_pod = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-euc", script, env!("CARGO_BIN_EXE_evictlab")]).stdin(Stdio::null());
        command
    };
    let mount = "mount -t tmpfs none /var/run; mkdir -p /var/run/secrets/kubernetes.io/serviceaccount";
    if !in_pod(mount).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("Skipped: this user must not mount file systems.");
        return;
    }
    let cluster = ServedCluster::new();
    let kubeconfig: serde_yaml::Value =
        serde_yaml::from_str(&fs::read_to_string(&cluster.kubeconfig).unwrap()).unwrap();
    let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str().unwrap();
    let (host, port) = server.strip_prefix("https://").unwrap().split_once(':').unwrap();
    let certificate = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"].as_str().unwrap();
    let run = |token: &str, arguments: &str| {
        let account = "cd /var/run/secrets/kubernetes.io/serviceaccount";
        let files = format!(
            "echo {certificate} | base64 -d > ca.crt; printf default > namespace; {token}; cd \"$FOLDER\""
        );
        let output = in_pod(&format!("{mount}; {account}; {files}; exec \"$0\" {arguments}"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
            .env("FOLDER", cluster.folder.path())
            .env("HOME", cluster.folder.path())
            .env("KUBERNETES_SERVICE_HOST", host)
            .env("KUBERNETES_SERVICE_PORT", port)
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (output.status.code().unwrap(), text)
    };
    let token = format!("printf %s {} > token", kubeconfig["users"][0]["user"]["token"].as_str().unwrap());
    let case = format!("run {QUICK} --backend existing");
    let (status, text) = run(&token, &case);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains(&format!("4 nodes at {server}")) && text.contains("in-cluster"), "{text}");
    let (status, text) = run("true", &case);
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("failed to load the service account of this pod: "), "{text}");
    assert!(text.contains("help: set automountServiceAccountToken: true in the pod"), "{text}");
    // A context is one of a kubeconfig.
    let (status, text) = run(&token, &format!("{case} --context a"));
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("failed to load the kubeconfig"), "{text}");
}

#[test]
fn reports_unusable_clusters() {
    let cluster = ServedCluster::new();
    fs::write(cluster.folder.path().join("other"), "{contexts: [{name: a}]}").unwrap();
    let rows: [(&[&str], i32, &str); 5] = [
        (&["run", QUICK, "--context", "nothing"], 2, "the kubeconfig has no context nothing; it has "),
        (
            &["run", QUICK, "--node-selector", "pool=none"],
            2,
            "failed to select nodes with selector pool=none: no node of ",
        ),
        (
            &["run", QUICK, "--node-selector", "a b"],
            2,
            "failed to select nodes with selector a b: invalid selector: ",
        ),
        (&["gc", "--kept"], 2, "--kept requires --backend kind, and the backend is existing"),
        (&["run", QUICK, "--nodes", "2"], 2, "--nodes applies only to clusters created by evictlab"),
    ];
    for (arguments, code, says) in rows {
        let (status, _, error) = cluster.run_to_end(arguments);
        assert_eq!(status, code, "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
    }
    let kubeconfig = fs::read_to_string(&cluster.kubeconfig).unwrap();
    let folder = cluster.folder.path().to_owned();
    drop(cluster);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("gone"), kubeconfig).unwrap();
    let gone = evictlab(&folder)
        .args(["run", QUICK, "--backend", "existing", "--kubeconfig", "gone"])
        .output()
        .unwrap();
    let error = String::from_utf8(gone.stderr).unwrap();
    assert_eq!(gone.status.code(), Some(4), "{error}");
    assert!(
        error.contains("failed to list nodes of cluster ") && error.contains("Connection refused"),
        "{error}"
    );
    fs::remove_dir_all(folder).unwrap();
}
