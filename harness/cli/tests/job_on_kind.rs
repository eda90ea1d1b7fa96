//! A Job with three indexes on a kind cluster of four workers: verdicts, an index that is killed,
//! and what remains. Ignored without Docker, kind, a node image and the images of the cases.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

#[expect(dead_code, reason = "other tests use the rest")]
mod laboratory;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use laboratory::{Laboratory, kubelet};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::Value;

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
    let ended = events.filter(|event| event["what"] == "case-ended");
    ended
        .map(|event| format!("{} {} {}", event["case"], event["kubelet"], event["judgement"]["verdict"]))
        .collect()
}

/// A pod of an index that runs a case, once there is one.
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

fn a_job_gives_the_verdicts_of_a_run_and_leaves_nothing(case_image: &str) {
    let laboratory = Laboratory::new();
    let (cluster, image) = (laboratory.cluster.clone(), Image::build());
    let create =
        ["cluster", "create", "--backend", "kind", "--name", &cluster, "--kubelet", &kubelet().unwrap()];
    laboratory.evictlab(&[&create[..], &["--nodes", "4"]].concat());
    let kubectl = Kubectl(format!("{cluster}-control-plane"));
    let load = ["load", "docker-image", "--name", &cluster];
    succeed("kind", &[&load[..], &[case_image]].concat());
    succeed("kind", &[&load[..], &[&image.0, "--nodes", &format!("{cluster}-worker4")]].concat());
    // The fourth worker is for the pods of the Job.
    let workers = ["", "2", "3"].map(|number| format!("{cluster}-worker{number}"));
    let workers: Vec<&str> = workers.iter().map(String::as_str).collect();
    kubectl.run(&[&["label", "nodes"], &workers[..], &[SELECTOR]].concat());
    let kubeconfig = laboratory.evictlab(&["cluster", "kubeconfig", &cluster]);
    let access = ["--kubeconfig", kubeconfig.trim()];
    let job = |words: &[&str]| laboratory.evictlab(&[&["job"], words, &access].concat());
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    let before = kubectl.left();

    let manifest = ["manifest", "--node-selector", SELECTOR, "--image", &image.0, "--apply"];
    job(&[&manifest[..], &CASES, &["--indexes", "3", "--parallelism", "3"]].concat());
    let killed = running_pod(&kubectl);
    kubectl.run(&["delete", "pod", &killed, "--namespace", "evictlab", "--grace-period=0", "--force"]);
    let watched = job(&["watch"]);
    assert!(watched.contains("3 succeeded"), "{watched}");
    job(&["collect", at("collected").to_str().unwrap()]);
    job(&["delete"]);
    assert_eq!(kubectl.left(), before, "left after `job delete`");

    let whole = at("whole");
    let run = [
        "run",
        "--backend",
        "existing",
        "--node-selector",
        SELECTOR,
        "--output-dir",
        whole.to_str().unwrap(),
    ];
    laboratory.evictlab(&[&run[..], &access, &CASES].concat());
    assert_eq!(verdicts(&at("collected/merged")), verdicts(&whole));
    laboratory.evictlab(&["cluster", "delete", &cluster]);
    laboratory.assert_nothing_is_left();
}
