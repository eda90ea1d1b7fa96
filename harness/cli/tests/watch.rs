//! `evictlab watch` on a cluster that is served, in the wall's time: what it shows of a node, and what it tells when a pod is evicted.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use evictlab_embedded::api::Access;
use evictlab_embedded::{CgroupVersion, Cluster, NodeOptions, Options};
use evictlab_rules::KubeletVersion;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.52";
/// How long nothing at all may be told.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster of one node with 2Gi and a hard threshold of 1500Mi.
struct Lab {
    cluster: Cluster,
    folder: TempDir,
    runtime: Runtime,
}

impl Lab {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut node = NodeOptions::new("worker", KubeletVersion::minor(32));
        (node.memory, node.cgroup) = (2 << 30, CgroupVersion::V1);
        let cluster = Cluster::new(Options::new(7, Timestamp::now(), vec![node])).unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let access = Access::new("s3cret").unwrap();
        let kubeconfig = access.kubeconfig(listener.local_addr().unwrap());
        fs::write(folder.path().join("kubeconfig"), kubeconfig).unwrap();
        let (living, serving) = (cluster.clone(), cluster.clone());
        runtime.spawn(async move { living.live().await });
        runtime.spawn(async move { serving.serve(listener, &access).await });
        let lab = Self { cluster, folder, runtime };
        let configuration = json!({"evictionHard": {"memory.available": "1500Mi"}, "kernelMemcgNotification": true,
            "nodeStatusUpdateFrequency": "1s"});
        lab.cluster.with(|world| {
            world.with(|_, nodes, ctx| {
                let kubelet = &mut nodes.get_mut("worker").unwrap().kubelet;
                kubelet.configure(configuration.as_object().unwrap(), true, ctx);
            });
        });
        lab.until("a threshold", |node| node.pointer("/reading/thresholds/0").is_some());
        lab
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        command.env_clear().args(["watch", "--kubeconfig"]).arg(self.path("kubeconfig")).args(arguments);
        command.stdin(Stdio::null());
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Exit status, standard output, standard error.
    fn said(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code().unwrap(), out, err)
    }

    /// The node, as soon as it is so.
    fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..600 {
            let (status, out, err) = self.said(&["--once", "--json"]);
            assert_eq!(status, 0, "{err}");
            let nodes: Value = serde_json::from_str(&out).unwrap();
            if is(&nodes[0]) {
                return nodes[0].clone();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("no {what}: {}", self.said(&["--once"]).1)
    }

    /// Creates a pod of agnhost.
    fn create(&self, name: &str, request: &str, arguments: &[&str]) {
        let container = json!({"name": "c", "image": AGNHOST, "args": arguments, "resources": {"requests": {"memory": request}}});
        let pod = json!({"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [container]}});
        let _within = self.runtime.enter();
        let pods: Api<Pod> = Api::namespaced(Client::new(self.cluster.router(), "default"), "default");
        let pod = serde_json::from_value(pod).unwrap();
        self.runtime.block_on(pods.create(&Default::default(), &pod)).unwrap();
    }
}

/// A watch that goes on.
struct Watch {
    process: Child,
    lines: Receiver<String>,
    told: Vec<String>,
}

impl Watch {
    fn start(lab: &Lab, arguments: &[&str]) -> Self {
        let mut process = lab.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { process, lines, told: Vec::new() }
    }

    /// A line that has all of these, as soon as there is one.
    fn until(&mut self, parts: &[&str]) -> String {
        let has = |line: &&String| parts.iter().all(|part| line.contains(part));
        if let Some(line) = self.told.iter().find(has) {
            return line.clone();
        }
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no line has {parts:?}:\n{}", self.told.join("\n")));
            self.told.push(line.clone());
            if has(&&line) {
                return line;
            }
        }
    }

    /// Interrupts it; returns how it ended.
    fn interrupt(mut self) -> i32 {
        kill_process(Pid::from_child(&self.process), Signal::INT).unwrap();
        self.process.wait().unwrap().code().unwrap()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _over = self.process.kill();
        let _status = self.process.wait();
    }
}

#[test]
fn an_eviction_is_foreseen_and_told() {
    let lab = Lab::new();
    lab.create("idle", "50Mi", &["pause"]);
    let within = |node: &Value| {
        node["reading"]["order"][0]["why"].as_str().is_some_and(|why| why.starts_with("within"))
    };
    let node = lab.until("idle pod", within);
    assert_eq!(
        (
            &node["name"],
            &node["kubelet"],
            &node["reading"]["order"][0]["pod"],
            &node["reading"]["order"][0]["qos"]
        ),
        (&json!("worker"), &json!("v1.32.0"), &json!("default/idle"), &json!("Burstable"))
    );
    let (_, table, _) = lab.said(&["--once"]);
    assert!(table.contains("hard 1500Mi: ") && table.contains("Mi to go"), "{table}");
    assert!(table.contains("   1  default/idle") && table.contains("requests 50Mi"), "{table}");
    let mut watch = Watch::start(&lab, &["--interval", "200ms"]);
    watch.until(&["default/idle", "within its request"]);
    let stress = ["stress", "--mem-alloc-size", "50Mi", "--mem-alloc-sleep", "500ms", "--mem-total", "900Mi"];
    lab.create("hog", "1Mi", &stress);
    watch.until(&["first  ", "default/hog: "]);
    let told = watch.until(&["evicted  "]);
    assert!(told.contains("default/hog: memory: threshold 1500Mi, available "), "{told}");
    assert!(told.contains("; container `c`: ") && told.contains(", request 1Mi"), "{told}");
    assert!(told.contains("; as foreseen, it was the first in order: "), "{told}");
    watch.until(&["gone  ", "default/hog: Failed, Evicted"]);
    watch.until(&["condition  ", "MemoryPressure: kubelet has insufficient memory available"]);
    assert!(!watch.told.join("\n").contains('\x1b'), "it is no terminal: {:?}", watch.told);
    assert_eq!(watch.interrupt(), 0);
}

#[test]
fn what_cannot_be_watched_is_told() {
    let lab = Lab::new();
    let kubeconfig = fs::read_to_string(lab.path("kubeconfig")).unwrap();
    fs::write(lab.path("stranger"), kubeconfig.replace("s3cret", "guess")).unwrap();
    let stranger = lab.path("stranger").display().to_string();
    let rows: [(&[&str], i32, &str); 7] = [
        (&["worker", "nobody"], 2, "has no node named nobody; it has worker"),
        (&["--once", "nobody"], 2, "has no node named nobody; it has worker"),
        (&["--node-selector", "pool=none"], 2, "the node selector pool=none selects no node of "),
        (&["--context", "nothing"], 2, "the kubeconfig has no context named nothing; it has "),
        (&["--signal", "memory"], 2, "unsupported eviction signal memory"),
        (&["--interval", "1ms"], 2, "not asked more often than every 200ms"),
        (&["--json"], 2, "--once"),
    ];
    for (arguments, code, says) in rows {
        let (status, out, error) = lab.said(arguments);
        assert_eq!((status, out.as_str()), (code, ""), "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    let refused = command.env_clear().args(["watch", "--kubeconfig", &stranger]).output().unwrap();
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(4), "{error}");
    assert!(error.contains("could not list nodes: Unauthorized"), "{error}");
}
