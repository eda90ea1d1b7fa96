//! `evictlab watch` on a served embedded cluster, in real time.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use evictlab_embedded::{
    Access, CgroupVersion, Cluster, ClusterOptions, Housekeeping, Node, NodeOptions, SimContext,
};
use evictlab_rules::KubeletVersion;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

#[cfg(target_os = "linux")]
use crate::unread_output::{full_pipe, wait_for};

use crate::documents;

const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.52";
/// Timeout for the next line.
const LINE_TIMEOUT: Duration = Duration::from_secs(60);

/// A cluster of one node with 2Gi of memory and a hard threshold of 1500Mi.
struct Lab {
    cluster: Cluster,
    folder: TempDir,
    runtime: Runtime,
}

impl Lab {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut node = NodeOptions::new("worker", KubeletVersion::from_minor(32));
        (node.memory, node.cgroup) = (2 << 30, CgroupVersion::V1);
        let cluster = Cluster::new(ClusterOptions::new(7, Timestamp::now(), vec![node])).unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let access = Access::new("s3cret").unwrap();
        let kubeconfig = access.kubeconfig(listener.local_addr().unwrap());
        fs::write(folder.path().join("kubeconfig"), kubeconfig).unwrap();
        let (living, serving) = (cluster.clone(), cluster.clone());
        runtime.spawn(async move { living.drive().await });
        runtime.spawn(async move { serving.serve(listener, &access).await });
        let lab = Self { cluster, folder, runtime };
        let configuration = json!({"evictionHard": {"memory.available": "1500Mi"}, "kernelMemcgNotification": true,
            "nodeStatusUpdateFrequency": "1s"});
        let configuration = configuration.as_object().unwrap();
        let configure = |node: &mut Node, ctx: &mut SimContext| {
            node.kubelet.configure(configuration, Housekeeping::Fast, ctx)
        };
        lab.cluster.with_node("worker", configure).unwrap();
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
    fn output(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code().unwrap(), out, err)
    }

    /// Waits until the node matches, and returns it.
    fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..600 {
            let (status, out, err) = self.output(&["--once", "--json"]);
            assert_eq!(status, 0, "{err}");
            let nodes = documents::parse("watch", &out);
            if is(&nodes[0]) {
                return nodes[0].clone();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("no {what}: {}", self.output(&["--once"]).1)
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

/// A running watch.
struct Watch {
    process: Child,
    lines: Receiver<String>,
    lines_so_far: Vec<String>,
}

impl Watch {
    fn start(lab: &Lab, arguments: &[&str]) -> Self {
        let mut process =
            lab.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { process, lines, lines_so_far: Vec::new() }
    }

    /// Waits for a line with all parts.
    fn until(&mut self, parts: &[&str]) -> String {
        let has = |line: &&String| parts.iter().all(|part| line.contains(part));
        if let Some(line) = self.lines_so_far.iter().find(has) {
            return line.clone();
        }
        loop {
            let line = self.lines.recv_timeout(LINE_TIMEOUT);
            let line =
                line.unwrap_or_else(|_| panic!("no line has {parts:?}:\n{}", self.lines_so_far.join("\n")));
            self.lines_so_far.push(line.clone());
            if has(&&line) {
                return line;
            }
        }
    }

    /// Interrupts the watch; returns its exit status.
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
fn predicts_and_reports_an_eviction() {
    let lab = Lab::new();
    lab.create("idle", "50Mi", &["pause"]);
    let within = |node: &Value| {
        node["reading"]["order"][0]["why"].as_str().is_some_and(|why| why.starts_with("below its request"))
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
    let (_, table, _) = lab.output(&["--once"]);
    assert!(table.contains("hard 1500Mi: ") && table.contains("Mi above"), "{table}");
    assert!(table.contains("   1  default/idle") && table.contains("requests 50Mi"), "{table}");
    let mut watch = Watch::start(&lab, &["--interval", "200ms"]);
    watch.until(&["default/idle", "below its request"]);
    let stress = ["stress", "--mem-alloc-size", "50Mi", "--mem-alloc-sleep", "500ms", "--mem-total", "900Mi"];
    lab.create("hog", "1Mi", &stress);
    watch.until(&["first  ", "default/hog: "]);
    let evicted = watch.until(&["evicted  "]);
    assert!(evicted.contains("default/hog: memory: threshold 1500Mi, available "), "{evicted}");
    assert!(evicted.contains("; container `c`: ") && evicted.contains(", request 1Mi"), "{evicted}");
    assert!(evicted.contains("; as predicted, first in the ranking: "), "{evicted}");
    watch.until(&["gone  ", "default/hog: Failed, Evicted"]);
    watch.until(&["condition  ", "MemoryPressure: kubelet has insufficient memory available"]);
    assert!(
        !watch.lines_so_far.join("\n").contains('\x1b'),
        "colors without a terminal: {:?}",
        watch.lines_so_far
    );
    assert_eq!(watch.interrupt(), 0);
}

#[test]
fn reports_unusable_input() {
    let lab = Lab::new();
    let kubeconfig = fs::read_to_string(lab.path("kubeconfig")).unwrap();
    fs::write(lab.path("denied"), kubeconfig.replace("s3cret", "guess")).unwrap();
    let denied = lab.path("denied").display().to_string();
    let rows: [(&[&str], i32, &str); 8] = [
        (&["worker", "nobody"], 2, "no node is named nobody\nhelp: its nodes are worker"),
        (&["--once", "nobody"], 2, "no node is named nobody\nhelp: its nodes are worker"),
        (&["--node-selector", "pool=none"], 2, "failed to select nodes with selector pool=none: no node of "),
        (&["--context", "nothing"], 2, "the kubeconfig has no context nothing; it has "),
        (&["--signal", "memory"], 2, "possible values: memory.available, allocatableMemory.available"),
        (&["--interval", "1ms"], 2, "the interval must be at least 200ms"),
        (&["--json"], 2, "--once"),
        (&["--json", "--metrics", "127.0.0.1:0"], 2, "cannot be used with"),
    ];
    for (arguments, code, says) in rows {
        let (status, out, error) = lab.output(arguments);
        assert_eq!((status, out.as_str()), (code, ""), "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    let refused = command.env_clear().args(["watch", "--kubeconfig", &denied]).output().unwrap();
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(4), "{error}");
    assert!(
        error.contains("failed to list nodes of cluster ") && error.contains(": Unauthorized"),
        "{error}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_watch_ends_by_a_signal_without_the_reader() {
    let lab = Lab::new();
    for (arguments, status) in [(&["--once", "--json"][..], 130), (&[], 0)] {
        let (_reader, writer, _) = full_pipe();
        let mut process = lab.command(arguments).stdout(writer).spawn().unwrap();
        let status_file = format!("/proc/{}/status", process.id());
        wait_for("SIGINT is not handled", || {
            let text = fs::read_to_string(&status_file).unwrap();
            let handled = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(handled.trim(), 16).unwrap() & 0b10 != 0
        });
        // On most machines, the output is blocked by then. The watch has to end in any case.
        std::thread::sleep(Duration::from_secs(2));
        kill_process(Pid::from_child(&process), Signal::INT).unwrap();
        wait_for("the signal has no effect", || process.try_wait().unwrap().is_some());
        assert_eq!(process.wait().unwrap().code(), Some(status), "{arguments:?}");
    }
}

/// Returns the content type and the body of the metrics.
fn scrape(address: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: "));
    (kind.unwrap().to_owned(), body.to_owned())
}

/// Parses metrics by the rules of OpenMetrics: `# EOF` ends them, each family has its type and help
/// once before its samples, and samples of counters end in `_total`. Returns the samples.
fn parse_metrics(body: &str) -> BTreeMap<String, f64> {
    let lines = body.strip_suffix("# EOF\n").unwrap().lines();
    let (mut families, mut samples) = (BTreeMap::new(), BTreeMap::new());
    let mut current = String::new();
    for line in lines {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert_eq!(families.insert(name.to_owned(), kind.to_owned()), None, "{line}");
            current = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.strip_prefix(&current).is_some_and(|text| text.starts_with(' ')), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = sample.split_once('{').unwrap();
            let expected =
                if families[&current] == "counter" { format!("{current}_total") } else { current.clone() };
            assert!(name == expected && labels.ends_with("\"}"), "{line}");
            assert_eq!(samples.insert(sample.to_owned(), value.parse().unwrap()), None, "{line}");
        }
    }
    samples
}

#[test]
fn serves_metrics_of_thresholds_and_evictions() {
    let lab = Lab::new();
    let mut watch = Watch::start(&lab, &["--interval", "200ms", "--metrics", "127.0.0.1:0"]);
    let mut stderr = BufReader::new(watch.process.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("metrics: http://").unwrap().strip_suffix("/metrics").unwrap();
    watch.until(&["hard 1500Mi: "]);
    let (kind, body) = scrape(address);
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    // Connections beyond the limit close those that are idle longest.
    let mut idle: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    scrape(address);
    idle[0].set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(idle[0].read(&mut [0]).unwrap(), 0, "it is open");
    let before = parse_metrics(&body);
    let distance = r#"evictlab_threshold_distance{node="worker",signal="memory.available",kind="hard"}"#;
    let hits = r#"evictlab_forecasts_total{outcome="hit"}"#;
    assert!(before[distance] > 0.0 && before[hits] == 0.0, "{body}");
    assert_eq!(before[r#"evictlab_node_queryable{node="worker"}"#], 1.0, "{body}");
    let stress = ["stress", "--mem-alloc-size", "50Mi", "--mem-alloc-sleep", "500ms", "--mem-total", "900Mi"];
    lab.create("hog", "1Mi", &stress);
    watch.until(&["evicted  ", "default/hog", "as predicted"]);
    let (_, body) = scrape(address);
    let after = parse_metrics(&body);
    assert_eq!(after[r#"evictlab_evictions_total{node="worker",cause="memory"}"#], 1.0, "{body}");
    assert_eq!(after[hits], 1.0, "{body}");
    assert_eq!(watch.interrupt(), 0);
    let (status, _, err) = lab.output(&["--once", "--metrics", "127.0.0.1:0"]);
    assert!(status == 2 && err.contains("cannot be used with"), "{err}");
}

/// A watch on a pseudoterminal of 24 rows and 120 columns, which is its controlling terminal.
#[cfg(target_os = "linux")]
fn watch_on_terminal(lab: &Lab) -> (Watch, fs::File, fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};

    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    tcsetwinsize(&ours, Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let path = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = fs::File::options().read(true).write(true).open(path).unwrap();
    let watch = lab.command(&["--interval", "200ms", "--color", "never"]);
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg(watch.get_program()).args(watch.get_args()).env("TERM", "xterm");
    let [stdin, stdout, stderr] = [(); 3].map(|()| theirs.try_clone().unwrap());
    let process = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn().unwrap();
    let ours = fs::File::from(ours);
    let out = BufReader::new(ours.try_clone().unwrap());
    let (tell, lines) = channel();
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
    (Watch { process, lines, lines_so_far: Vec::new() }, ours, theirs)
}

#[cfg(target_os = "linux")]
#[test]
fn keys_select_a_pod_and_the_signal() {
    use rustix::termios::{LocalModes, tcgetattr};

    let lab = Lab::new();
    lab.create("idle", "50Mi", &["pause"]);
    lab.until("idle pod", |node| !node["reading"]["order"][0]["why"].is_null());
    let (mut watch, mut keys, terminal) = watch_on_terminal(&lab);
    let has_lines =
        |terminal| tcgetattr(terminal).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO);
    watch.until(&["Enter its pods", "q quit"]);
    assert!(!has_lines(&terminal));
    keys.write_all(b"\x1b[B").unwrap();
    watch.until(&["▸ worker", "memory.available"]);
    keys.write_all(b"\nj").unwrap();
    watch.until(&["rank 1 of 1"]);
    watch.until(&["order: pods that exceed their request of memory"]);
    keys.write_all(b"ss").unwrap();
    watch.until(&["worker", "nodefs.available"]);
    watch.until(&["order: pods that exceed their request of ephemeral-storage"]);
    keys.write_all(b"q").unwrap();
    assert_eq!(watch.process.wait().unwrap().code(), Some(0));
    assert!(has_lines(&terminal));
}
