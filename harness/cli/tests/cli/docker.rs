//! `gc` and `cluster delete` with a stand-in for the Docker daemon: only what a dead run created is
//! removed.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::{Arc, Mutex};

use evictlab_cluster::{ClusterRecord, KIND_LABEL, Owner};
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::documents;

/// Label of scratch containers.
const SCRATCH_LABEL: &str = "dev.evictlab.scratch";
/// Id of the daemon.
const DAEMON: &str = "daemon-1";

#[derive(Clone, Default)]
struct Container {
    labels: BTreeMap<&'static str, String>,
    /// Age in seconds.
    age: i64,
    /// The record of a run in the node.
    record: Option<ClusterRecord>,
    /// True if the node has a heartbeat, whose age no command reads: they fail.
    beats: bool,
    /// True if the daemon cannot remove the container.
    is_stuck: bool,
}

/// A daemon that lists, reads and removes containers.
#[derive(Clone)]
struct Daemon {
    address: String,
    containers: Arc<Mutex<BTreeMap<&'static str, Container>>>,
    /// Tags of the local images of `kindest/node`.
    tags: &'static [&'static str],
    /// Images that were requested from a registry.
    pulled: Arc<Mutex<Vec<String>>>,
}

impl Daemon {
    fn start(containers: &[(&'static str, Container)], tags: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let containers = Arc::new(Mutex::new(containers.iter().cloned().collect()));
        let daemon = Self { address, containers, tags, pulled: Arc::default() };
        let served = daemon.clone();
        std::thread::spawn(move || {
            listener.incoming().for_each(|stream| served.answer(stream.unwrap()));
        });
        daemon
    }

    fn is_stuck(&self, id: &str) -> bool {
        self.containers.lock().unwrap().get(id).is_some_and(|container| container.is_stuck)
    }

    fn names(&self) -> Vec<&'static str> {
        self.containers.lock().unwrap().keys().copied().collect()
    }

    /// Answers one request.
    fn answer(&self, mut stream: TcpStream) {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        let Some(request) = lines.next() else { return };
        lines.take_while(|line| !line.is_empty()).for_each(drop);
        let mut words = request.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let path = target.split('?').next().unwrap().replace("%2F", "/").replace("%3A", ":");
        // The version of the API comes first: /v1.47/containers/json.
        let parts: Vec<&str> =
            path.split('/').filter(|part| !part.is_empty() && !part.starts_with("v1.")).collect();
        let (status, body) = match (method, &parts[..]) {
            ("GET", ["version"]) => ok(&json!({"ApiVersion": "1.47", "Version": "28.0.0", "Arch": "amd64"})),
            ("GET", ["info"]) => ok(&json!({"ID": DAEMON, "CgroupVersion": "2"})),
            ("GET", ["containers", "json"]) => ok(&self.list(target)),
            ("GET", ["containers", id, "archive"]) => self.archive(id, target.contains("heartbeat")),
            ("DELETE", ["containers", id]) if self.is_stuck(id) => {
                (500, b"{\"message\": \"device is busy\"}".to_vec())
            }
            ("DELETE", ["containers", id]) => match self.containers.lock().unwrap().remove(*id) {
                Some(_) => (204, Vec::new()),
                None => (404, b"{\"message\": \"no such container\"}".to_vec()),
            },
            ("GET", ["images", "json"]) => {
                let tags = self.tags.iter().map(|tag| format!("kindest/node:{tag}"));
                ok(
                    &json!([{"Id": "image", "ParentId": "", "RepoTags": tags.collect::<Vec<_>>(), "RepoDigests": [],
                    "Created": 0, "Size": 0, "SharedSize": -1, "Labels": {}, "Containers": -1}]),
                )
            }
            ("GET", ["images", "kindest", tag, "json"]) => {
                if tag.strip_prefix("node:").is_some_and(|tag| self.tags.contains(&tag)) {
                    ok(&json!({"Id": "image"}))
                } else {
                    (404, b"{\"message\": \"no such image\"}".to_vec())
                }
            }
            ("POST", ["images", "create"]) => {
                self.pulled.lock().unwrap().push(target.to_owned());
                (500, b"{\"message\": \"no network\"}".to_vec())
            }
            _ => (500, format!("{{\"message\": \"unexpected request {request}\"}}").into_bytes()),
        };
        let head = format!(
            "HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.into_bytes(), body].concat()).unwrap();
    }

    /// Containers with the label of the request, as `KEY` or `KEY%3DVALUE`.
    fn list(&self, target: &str) -> Value {
        let containers = self.containers.lock().unwrap();
        let matches = |container: &Container| {
            container.labels.iter().any(|(label, value)| {
                target.contains(&format!("{label}%3D{value}%22")) || target.contains(&format!("{label}%22"))
            })
        };
        let object = |(name, container): (&&str, &Container)| {
            let created = Timestamp::now().as_second() - container.age;
            json!({"Id": name, "Names": [format!("/{name}")], "Labels": container.labels, "State": "running", "Created": created})
        };
        containers.iter().filter(|(_, container)| matches(container)).map(object).collect()
    }

    /// The record of a node, or a file in place of its heartbeat, as an archive.
    fn archive(&self, id: &str, is_heartbeat: bool) -> (u16, Vec<u8>) {
        let containers = self.containers.lock().unwrap();
        let container = containers.get(id).filter(|container| !is_heartbeat || container.beats);
        let Some(record) = container.and_then(|container| container.record.as_ref()) else {
            return (404, b"{\"message\": \"no such file\"}".to_vec());
        };
        let text = serde_json::to_vec(record).unwrap();
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        archive.append_data(&mut header, "evictlab.json", &text[..]).unwrap();
        (200, archive.into_inner().unwrap())
    }
}

fn ok(body: &Value) -> (u16, Vec<u8>) {
    (200, body.to_string().into_bytes())
}

/// A state directory and the daemon.
struct Host {
    folder: TempDir,
    daemon: Daemon,
}

impl Host {
    fn new(containers: &[(&'static str, Container)], states: &[ClusterRecord]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for record in states {
            let file = folder.path().join(format!("{}.json", record.cluster));
            fs::write(file, serde_json::to_vec(record).unwrap()).unwrap();
        }
        Self { folder, daemon: Daemon::start(containers, &[]) }
    }

    /// Exit status and output of a command.
    fn evictlab(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        command.current_dir(self.folder.path()).env_clear().env("PATH", "/nonexistent");
        command.env("DOCKER_HOST", &self.daemon.address).env("EVICTLAB_STATE_DIR", self.folder.path());
        let output = command.args(arguments).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().unwrap(), text)
    }
}

fn dead() -> Owner {
    Owner { started: Some("earlier".to_owned()), ..Owner::current() }
}

fn elsewhere() -> Owner {
    Owner { scope: "boot pid:[1]".to_owned(), ..Owner::current() }
}

fn record(cluster: &str, run: &str, owner: Owner) -> ClusterRecord {
    ClusterRecord::new(DAEMON, cluster, run, owner, vec!["v1.32.13".to_owned()])
}

fn node(cluster: &str, record: Option<ClusterRecord>) -> Container {
    Container { labels: [(KIND_LABEL, cluster.to_owned())].into(), record, age: 5, ..Container::default() }
}

#[test]
fn gc_spares_a_foreign_cluster_with_the_name_of_a_dead_run() {
    let killed = record("lab", "killed", dead());
    let unfinished = ClusterRecord { node_ids: vec!["lab-worker".to_owned()], ..killed.clone() };
    let rows = [
        // A user created the cluster again with kind.
        (node("lab", None), &killed, "lab: left alone, its nodes have no record of a run", true),
        // The run ended before it stored its record in the nodes.
        (node("lab", None), &unfinished, "lab: removed", false),
        // A run with another state directory made it again.
        (
            node("lab", Some(record("lab", "other", Owner::current()))),
            &killed,
            "lab: left alone, its owner is running",
            true,
        ),
        (node("lab", Some(killed.clone())), &killed, "lab: removed", false),
    ];
    for (container, in_state, says, is_spared) in rows {
        let host = Host::new(
            &[("lab-worker", container), ("web", Container::default())],
            std::slice::from_ref(in_state),
        );
        let (status, text) = host.evictlab(&["gc"]);
        assert!(status == 0 && text.contains(says), "{status} {text}");
        let expected: &[&str] = if is_spared { &["lab-worker", "web"] } else { &["web"] };
        assert_eq!(host.daemon.names(), expected, "{text}");
    }
}

/// A node image that was made from a node has the record of that node.
#[test]
fn gc_ignores_a_record_with_the_name_of_another_cluster() {
    let rows = [("theirs", "victim"), ("theirs", "../victim"), ("../victim", "../victim")];
    for (label, stored) in rows {
        let copied = node(label, Some(record(stored, "killed", dead())));
        let nodes = [("their-worker", copied), ("victim-worker", node("victim", None))];
        let host = Host::new(&nodes, &[]);
        let (_, text) = host.evictlab(&["gc"]);
        assert_eq!(host.daemon.names(), ["their-worker", "victim-worker"], "{label} {stored}: {text}");
        assert!(text.contains("0 clusters removed"), "{text}");
    }
}

#[test]
fn gc_spares_clusters_of_other_hosts_and_daemons() {
    let there = ClusterRecord { docker_id: "daemon-2".to_owned(), ..record("there", "a", dead()) };
    // The owner cannot be checked, and the run is younger than its deadline.
    let shared = record("shared", "b", elsewhere());
    let host = Host::new(&[], &[there, shared]);
    let (_, listed) = host.evictlab(&["cluster", "list", "--json"]);
    let listed = documents::parse("cluster-list", &listed);
    assert_eq!((&listed[1]["backend"], &listed[1]["local"]), (&json!("kind"), &json!(false)), "{listed}");
    let (_, planned) = host.evictlab(&["gc", "--dry-run", "--json"]);
    let planned = documents::parse("gc", &planned);
    assert_eq!((&planned[0]["kind"], &planned[0]["outcome"]), (&json!("cluster"), &json!("left-alone")));
    let (status, text) = host.evictlab(&["gc"]);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("there: left alone, it is on another Docker host"), "{text}");
    assert!(text.contains("shared: left alone, its owner is running"), "{text}");
    let left = fs::read_dir(host.folder.path()).unwrap().count();
    assert_eq!(left, 2, "their records stay");
}

/// Commands in a node fail while its host is under pressure.
#[test]
fn gc_spares_a_cluster_whose_heartbeat_cannot_be_read() {
    let deadline = Timestamp::now() - jiff::SignedDuration::from_hours(1);
    let long = ClusterRecord { deadline, ..record("lab", "long", elsewhere()) };
    for (beats, says) in [(true, "lab: left alone, its owner is running"), (false, "lab: removed")] {
        let node = Container { beats, ..node("lab", Some(long.clone())) };
        let host = Host::new(&[("lab-worker", node)], &[]);
        let (status, text) = host.evictlab(&["gc"]);
        assert!(status == 0 && text.contains(says), "{status} {text}");
        assert_eq!(host.daemon.names().is_empty(), !beats, "{text}");
    }
}

#[test]
fn gc_of_an_unknown_cluster_is_an_error() {
    let killed = record("lab", "killed", dead());
    let nodes = [("lab-worker", node("lab", Some(killed.clone())))];
    let host = Host::new(&nodes, &[killed]);
    let rows: [(&[&str], &[&str]); 3] = [
        (&["gc", "labb"], &["lab-worker"]),
        (&["gc", "labb", "--dry-run"], &["lab-worker"]),
        // The others are removed.
        (&["gc", "lab", "labb"], &[]),
    ];
    for (arguments, left) in rows {
        let (status, text) = host.evictlab(arguments);
        assert!(status == 2 && text.contains("failed to find cluster labb\nhelp: "), "{status} {text}");
        assert_eq!(host.daemon.names(), left, "{text}");
    }
}

#[test]
fn delete_asks_for_a_live_owner_and_for_a_record() {
    let rows = [
        (
            record("lab", "live", Owner::current()),
            true,
            "uses it\nhelp: wait for the end of its run, or use --force",
        ),
        (record("lab", "killed", dead()), false, "another program may have created it\nhelp: "),
    ];
    for (state, is_recorded, says) in rows {
        let container = node("lab", is_recorded.then(|| state.clone()));
        let host = Host::new(&[("lab-worker", container)], &[state]);
        let (status, text) = host.evictlab(&["cluster", "delete", "lab"]);
        assert!(status == 2 && text.contains(says), "{status} {text}");
        assert_eq!(host.daemon.names(), ["lab-worker"]);
        let (status, text) = host.evictlab(&["cluster", "delete", "lab", "--force"]);
        assert_eq!((status, host.daemon.names().len()), (0, 0), "{text}");
        assert!(text.contains("cluster lab is deleted\n"), "{text}");
    }
}

#[test]
fn gc_removes_scratch_containers_of_dead_processes() {
    let scratch = |owner: String, age: i64| Container {
        labels: [(SCRATCH_LABEL, owner)].into(),
        age,
        ..Container::default()
    };
    let json = |owner: Owner| serde_json::to_string(&owner).unwrap();
    let host = Host::new(
        &[
            ("dead", scratch(json(dead()), 5)),
            ("live", scratch(json(Owner::current()), 100_000)),
            ("elsewhere", scratch(json(elsewhere()), 3600)),
            ("elsewhere-long-ago", scratch(json(elsewhere()), 50_000)),
            ("unreadable", scratch("?".to_owned(), 100_000)),
        ],
        &[],
    );
    let (status, text) = host.evictlab(&["gc"]);
    assert_eq!(status, 0, "{text}");
    assert_eq!(host.daemon.names(), ["elsewhere", "live", "unreadable"], "{text}");
}

fn scratch(owner: &Owner) -> Container {
    let labels = [(SCRATCH_LABEL, serde_json::to_string(owner).unwrap())].into();
    Container { labels, age: 5, ..Container::default() }
}

#[test]
fn a_dry_run_lists_what_gc_removes() {
    let killed = record("killed", "r1", dead());
    let live = record("live", "r2", Owner::current());
    let nodes = [
        ("killed-worker", node("killed", Some(killed.clone()))),
        ("live-worker", node("live", Some(live.clone()))),
        ("scratch", scratch(&dead())),
    ];
    let host = Host::new(&nodes, &[killed, live]);
    let outcomes = |arguments: &[&str]| -> Vec<String> {
        let (_, text) = host.evictlab(&[&["gc", "--json"], arguments].concat());
        let entries = documents::parse("gc", &text);
        let describe = |entry: &Value| {
            format!("{} {}", entry["name"].as_str().unwrap(), entry["outcome"].as_str().unwrap())
        };
        entries.as_array().unwrap().iter().map(describe).collect()
    };
    assert_eq!(
        outcomes(&["--dry-run"]),
        ["scratch would-be-removed", "killed would-be-removed", "live left-alone"]
    );
    assert_eq!(host.daemon.names().len(), 3);
    assert_eq!(outcomes(&[]), ["scratch removed", "killed removed", "live left-alone"]);
    assert_eq!(host.daemon.names(), ["live-worker"]);
}

#[test]
fn a_container_that_cannot_be_removed_does_not_block_the_others() {
    let killed = record("lab", "killed", dead());
    let stuck = Container { is_stuck: true, ..scratch(&dead()) };
    let nodes = [("lab-worker", node("lab", Some(killed.clone()))), ("stuck", stuck)];
    let host = Host::new(&nodes, &[killed]);
    let (status, text) = host.evictlab(&["gc"]);
    assert!(status == 4 && text.contains("lab: removed\n"), "{status} {text}");
    assert!(text.contains("stuck: failed to ") && text.contains("device is busy"), "{text}");
    assert_eq!(host.daemon.names(), ["stuck"]);
}

/// A directory with a `kind` that only has a version, and a kubelet binary.
fn programs() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let kind = "#!/bin/sh\n[ $1 = version ] && echo 'kind v0.32.0 go1.25 linux/amd64'\n";
    for (name, script) in [("kind", kind), ("kubelet", "#!/bin/sh\necho Kubernetes v1.33.13\n")] {
        let path = folder.path().join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

#[test]
fn a_binary_runs_in_a_local_image_of_its_minor_version() {
    let rows: [(&'static [&'static str], usize, &str); 3] = [
        (&["v1.33.1", "v1.36.2"], 0, "create a container of kindest/node:v1.33.1:"),
        // The closest patch of the minor version, and nothing else.
        (&["v1.32.13"], 1, "failed to pull image kindest/node:v1.33.12@"),
        // It is better than a newer minor version, but not necessary.
        (&["v1.36.2"], 1, "create a container of kindest/node:v1.36.2:"),
    ];
    for (tags, pulls, end) in rows {
        let programs = programs();
        let host = Host { folder: tempfile::tempdir().unwrap(), daemon: Daemon::start(&[], tags) };
        let kubelet = format!("v1.33.13={}", programs.path().join("kubelet").display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        command.current_dir(programs.path()).env_clear().env("PATH", programs.path());
        command.env("DOCKER_HOST", &host.daemon.address).env("EVICTLAB_STATE_DIR", host.folder.path());
        let arguments = ["cluster", "create", "--backend", "kind", "--name", "lab", "--kubelet", &kubelet];
        let output = command.args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(host.daemon.pulled.lock().unwrap().len(), pulls, "{tags:?}: {text}");
        assert!(!output.status.success() && text.contains(end), "{tags:?}: {text}");
    }
}
