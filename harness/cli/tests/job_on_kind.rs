//! A Job with three indexes on a kind cluster of four workers, while a pod, the API server and
//! nodes are killed: verdicts, and what remains. Ignored without Docker, kind, a node image and the
//! images of the cases.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

#[expect(dead_code, reason = "other tests use the rest")]
mod test_cluster;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::Value;
use test_cluster::{TestCluster, kubelet};

/// Cases that put no node under pressure.
const CASES: [&str; 5] = [
    "limits/emptydir-size",
    "message/ephemeral-resources-are-refused",
    "relatives/api-eviction",
    "relatives/graceful-delete",
    "relatives/lifted-budget-allows-the-eviction",
];
/// Label of the nodes under test.
const SELECTOR: &str = "evictlab.dev/under-test=true";
/// Maximum time without a change of the Job.
const TIMEOUT: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let trial = Trial::ignorable_test("a_job_gives_the_verdicts_of_a_run_and_leaves_nothing", || {
        match kubelet().and_then(|_| case_image()) {
            Ok(image) => {
                a_job_gives_the_verdicts_of_a_run_and_leaves_nothing(&image);
                Ok::<_, Failed>(Completion::Completed)
            }
            Err(why) => Ok(Completion::ignored_with(why)),
        }
    });
    libtest_mimic::run(&arguments, vec![trial]).exit_code()
}

/// Returns the image of the cases in Docker, or why no test is possible.
fn case_image() -> Result<String, String> {
    let format = ["image", "ls", "--format", "{{.Repository}}:{{.Tag}}"];
    let listed = Command::new("docker").args(format).output().map_err(|error| error.to_string())?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let image = listed.lines().find(|name| name.ends_with("/agnhost:2.52"));
    image.map(str::to_owned).ok_or_else(|| "the image agnhost:2.52 is not in Docker".to_owned())
}

fn succeed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{program} {arguments:?}: {out}{err}");
    out
}

/// An image of this build of evictlab with the libraries that it is linked to. Deleted on drop.
struct Image(String);

impl Image {
    fn build() -> Self {
        let program = env!("CARGO_BIN_EXE_evictlab");
        let root = tempfile::tempdir().unwrap();
        fs::copy(program, root.path().join("evictlab")).unwrap();
        let libraries = succeed("ldd", &[program]);
        for library in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
            let target = root.path().join(library.trim_start_matches('/'));
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::copy(library, target).unwrap();
        }
        let name = format!("localhost/evictlab/job-test:{}", std::process::id());
        let archive = root.path().with_extension("tar");
        let [from, to] = [root.path(), &archive].map(|path| path.to_str().unwrap());
        succeed("tar", &["--create", "--file", to, "--directory", from, "."]);
        let entrypoint = "ENTRYPOINT [\"/evictlab\"]";
        succeed("docker", &["import", "--change", entrypoint, "--change", "USER 65532:65532", to, &name]);
        fs::remove_file(archive).unwrap();
        Self(name)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _gone = Command::new("docker").args(["image", "rm", "--force", &self.0]).output();
    }
}

/// kubectl of a control plane, so that the test needs none.
struct Kubectl(String);

impl Kubectl {
    fn run(&self, arguments: &[&str]) -> String {
        let kubectl = ["exec", &self.0, "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf"];
        succeed("docker", &[&kubectl[..], arguments].concat())
    }

    /// Objects of the Job, of runs, and their namespaces.
    fn left(&self) -> BTreeSet<String> {
        let kinds = "namespaces,clusterroles,clusterrolebindings,priorityclasses,leases.coordination.k8s.io";
        let listed = self.run(&["get", kinds, "--all-namespaces", "--output", "name"]);
        listed.lines().filter(|name| name.contains("evictlab")).map(str::to_owned).collect()
    }
}

fn verdicts(run: &Path) -> BTreeSet<String> {
    let events = fs::read_to_string(run.join("artifacts/events.jsonl")).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ended = events.filter(|event| event["type"] == "case-ended");
    ended
        .map(|event| format!("{} {} {}", event["case"], event["kubelet"], event["result"]["verdict"]))
        .collect()
}

/// Waits for a pod of an index that runs a case.
fn running_pod(kubectl: &Kubectl) -> String {
    let began = Instant::now();
    loop {
        let namespaces = kubectl.run(&["get", "namespaces", "--output", "name"]);
        let is_case = |name: &str| name.contains("evictlab-") && !name.contains("evictlab-nodes-");
        let columns = "custom-columns=NAME:.metadata.name,PHASE:.status.phase";
        let pods =
            kubectl.run(&["get", "pods", "--namespace", "evictlab", "--no-headers", "--output", columns]);
        let running = pods.lines().find_map(|line| line.strip_suffix("Running"));
        if let (true, Some(pod)) = (namespaces.lines().any(is_case), running) {
            return pod.trim().to_owned();
        }
        assert!(began.elapsed() < TIMEOUT, "no index runs: {pods}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A kind cluster with four workers. Three are under test; the fourth is for the pods of the Job.
struct Cluster {
    test_cluster: TestCluster,
    kubectl: Kubectl,
    image: Image,
    kubeconfig: String,
    folder: tempfile::TempDir,
}

impl Cluster {
    fn new(case_image: &str) -> Self {
        let test_cluster = TestCluster::new();
        let (cluster, image) = (test_cluster.cluster.clone(), Image::build());
        let create =
            ["cluster", "create", "--backend", "kind", "--name", &cluster, "--kubelet", &kubelet().unwrap()];
        test_cluster.evictlab(&[&create[..], &["--nodes", "4"]].concat());
        let kubectl = Kubectl(format!("{cluster}-control-plane"));
        let load = ["load", "docker-image", "--name", &cluster];
        succeed("kind", &[&load[..], &[case_image]].concat());
        load_image(&cluster, &image);
        let workers = ["", "2", "3"].map(|number| format!("{cluster}-worker{number}"));
        let workers: Vec<&str> = workers.iter().map(String::as_str).collect();
        kubectl.run(&[&["label", "nodes"], &workers[..], &[SELECTOR]].concat());
        let kubeconfig = test_cluster.evictlab(&["cluster", "kubeconfig", &cluster]).trim().to_owned();
        Self { test_cluster, kubectl, image, kubeconfig, folder: tempfile::tempdir().unwrap() }
    }

    /// Runs a command on the cluster; returns its standard output.
    fn evictlab(&self, words: &[&str]) -> String {
        self.test_cluster.evictlab(&[words, &["--kubeconfig", &self.kubeconfig]].concat())
    }

    /// Runs the cases from outside; returns their verdicts.
    fn verdicts_of_a_run(&self) -> BTreeSet<String> {
        let whole = self.folder.path().join("whole");
        let options =
            ["--backend", "existing", "--node-selector", SELECTOR, "--output-dir", whole.to_str().unwrap()];
        self.evictlab(&[&["run"], &options[..], &CASES].concat());
        verdicts(&whole)
    }

    /// Runs the cases as a Job a part of which is killed while a case is under way; returns the
    /// verdicts.
    fn verdicts_of_a_job(&self, part: KilledPart) -> BTreeSet<String> {
        let manifest = ["job", "manifest", "--node-selector", SELECTOR, "--image", &self.image.0, "--apply"];
        self.evictlab(&[&manifest[..], &CASES, &["--indexes", "3", "--parallelism", "3"]].concat());
        let pod = running_pod(&self.kubectl);
        self.kill(part, &pod);
        let watched = self.evictlab(&["job", "watch"]);
        assert!(watched.contains("3 succeeded"), "{part:?}: {watched}");
        let collected = self.folder.path().join(format!("{part:?}"));
        self.evictlab(&["job", "collect", collected.to_str().unwrap()]);
        self.evictlab(&["job", "delete"]);
        verdicts(&collected.join("merged"))
    }

    fn kill(&self, part: KilledPart, pod: &str) {
        let cluster = &self.test_cluster.cluster;
        match part {
            KilledPart::Pod => {
                let force = ["--namespace", "evictlab", "--grace-period=0", "--force"];
                self.kubectl.run(&[&["delete", "pod", pod], &force[..]].concat());
            }
            KilledPart::ApiServer => {
                // Of the processes of this container.
                let kill = "kill -KILL $(pgrep --exact kube-apiserver)";
                succeed("docker", &["exec", &format!("{cluster}-control-plane"), "sh", "-c", kill]);
            }
            KilledPart::NodeUnderTest => restart(&format!("{cluster}-worker2")),
            KilledPart::NodeOfTheJob => {
                restart(&format!("{cluster}-worker4"));
                // The file system that evictlab gave to its images is mounted no more.
                load_image(cluster, &self.image);
            }
        }
    }
}

/// Loads the image of evictlab into the node for the pods of the Job, as soon as it runs.
fn load_image(cluster: &str, image: &Image) {
    let node = format!("{cluster}-worker4");
    let began = Instant::now();
    let load = ["load", "docker-image", "--name", cluster, "--nodes", &node, &image.0];
    while !Command::new("kind").args(load).output().unwrap().status.success() {
        assert!(began.elapsed() < TIMEOUT, "failed to load {} into {node}", image.0);
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The part of a cluster that a test kills while a Job runs.
#[derive(Clone, Copy, Debug)]
enum KilledPart {
    Pod,
    ApiServer,
    NodeUnderTest,
    NodeOfTheJob,
}

/// Kills all processes of a node, and starts it again.
fn restart(node: &str) {
    succeed("docker", &["kill", node]);
    succeed("docker", &["start", node]);
}

fn a_job_gives_the_verdicts_of_a_run_and_leaves_nothing(case_image: &str) {
    let cluster = Cluster::new(case_image);
    let before = cluster.kubectl.left();
    let expected = cluster.verdicts_of_a_run();
    assert_eq!(expected.len(), CASES.len());
    for part in [KilledPart::Pod, KilledPart::ApiServer, KilledPart::NodeUnderTest, KilledPart::NodeOfTheJob]
    {
        assert_eq!(cluster.verdicts_of_a_job(part), expected, "{part:?}");
        assert_eq!(cluster.kubectl.left(), before, "{part:?}: left after `job delete`");
    }
    cluster.test_cluster.evictlab(&["cluster", "delete", &cluster.test_cluster.cluster]);
    cluster.test_cluster.assert_nothing_is_left();
}
