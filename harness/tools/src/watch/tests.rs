//! Tests of readings, changes and views without a cluster.

use std::collections::BTreeSet;
use std::thread::sleep;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node as ApiNode};
use serde_json::{Value, json};

use super::bounded_set::BoundedSet;
use super::change::WatchChange;
use super::eviction::EvictionEvent;
use super::focus::Focus;
use super::keyboard::Key;
use super::kubelet_client::{KubeletSnapshot, QueryError};
use super::node::NodeView;
use super::options::ViewOptions;
use super::pod_fields::{ApiPod, WatchedPod};
use super::reading::NodeInput;
use super::state::WatchState;
use super::view::{REDRAW_INTERVAL, Viewport, WatchView, frame};
use evictlab_report::TerminalCaps;
use evictlab_rules::summary::Sample;
use evictlab_rules::threshold::Signal;
use serde::Deserialize;

const MI: i64 = 1 << 20;
const START: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// A node, its pods, and the state of its kubelet.
struct Fixture {
    version: &'static str,
    signal: Signal,
    conditions: Value,
    hard: Value,
    /// The other signals with default thresholds are disabled by name.
    disables_others: bool,
    soft: Value,
    available: i64,
    pods: Vec<Value>,
    stats: Vec<Value>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            version: "v1.32.13",
            signal: Signal::MemoryAvailable,
            conditions: json!([{"type": "Ready", "status": "True"}]),
            hard: json!({"memory.available": "100Mi", "nodefs.available": "10%"}),
            disables_others: true,
            soft: json!({}),
            available: 900,
            pods: Vec::new(),
            stats: Vec::new(),
        }
    }

    /// Adds a running pod; `stats` are the fields of its statistics, null for a pod without
    /// statistics.
    fn pod(mut self, name: &str, spec: Value, stats: Value) -> Self {
        let mut pod_spec = json!({"nodeName": "n", "containers": [{"name": "c"}]});
        pod_spec.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let uid = format!("uid-{name}");
        let reference = json!({"name": name, "namespace": "ns", "uid": uid});
        let metadata = json!({"name": name, "namespace": "ns", "uid": uid});
        self.pods.push(json!({"metadata": metadata, "spec": pod_spec, "status": {"phase": "Running"}}));
        if let Some(stats) = stats.as_object() {
            let mut own = json!({"podRef": reference});
            own.as_object_mut().unwrap().extend(stats.clone());
            self.stats.push(own);
        }
        self
    }

    /// Adds a pod with this usage and request in Mi.
    fn memory(self, name: &str, uses: i64, asks: i64) -> Self {
        self.pod(name, asking("memory", asks), json!({"memory": {"workingSetBytes": uses * MI}}))
    }

    fn snapshot(&self) -> KubeletSnapshot {
        let gib = 1024 * MI;
        let fs = json!({"availableBytes": 50 * gib, "capacityBytes": 100 * gib, "inodes": 1000, "inodesFree": 600});
        let summary = json!({
            "node": {
                "memory": {"availableBytes": self.available * MI, "workingSetBytes": (1000 - self.available) * MI},
                "fs": fs, "runtime": {"imageFs": fs, "containerFs": fs}, "rlimit": {"maxpid": 1000, "curproc": 400},
            },
            "pods": self.stats,
        });
        let grace = json!({"memory.available": "1m30s"});
        let mut hard = self.hard.clone();
        for signal in [
            "memory.available",
            "nodefs.available",
            "nodefs.inodesFree",
            "imagefs.available",
            "imagefs.inodesFree",
        ] {
            if self.disables_others && hard.get(signal).is_none() {
                hard[signal] = json!("0%");
            }
        }
        let config =
            json!({"evictionHard": hard, "evictionSoft": self.soft, "evictionSoftGracePeriod": grace});
        KubeletSnapshot { config, sample: Sample::deserialize(summary).unwrap() }
    }

    fn view(
        &self,
        snapshot: Result<&KubeletSnapshot, &QueryError>,
        seconds: i64,
        evicted: &BoundedSet<String>,
    ) -> NodeView {
        let info = json!({"kubeletVersion": self.version, "operatingSystem": "linux", "architecture": "", "bootID": "",
            "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "osImage": "", "systemUUID": ""});
        let node =
            json!({"metadata": {"name": "n"}, "status": {"conditions": self.conditions, "nodeInfo": info}});
        let node: ApiNode = serde_json::from_value(node).unwrap();
        let pod = |pod: &Value| -> ApiPod { serde_json::from_value(pod.clone()).unwrap() };
        let pods: Vec<WatchedPod> = self.pods.iter().map(|own| pod(own).encode().decode().unwrap()).collect();
        let at = at(seconds);
        NodeView::new(&NodeInput { node: &node, pods: &pods, snapshot, signal: self.signal, evicted, at })
    }

    fn current_view(&self) -> NodeView {
        self.view(Ok(&self.snapshot()), 0, &BoundedSet::default())
    }

    /// Applies the current view and returns the changes.
    fn apply(&self, state: &mut WatchState, seconds: i64) -> Vec<String> {
        let view = self.view(Ok(&self.snapshot()), seconds, &state.evicted);
        texts(state.apply(view, at(seconds)))
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(START.as_second() + seconds).unwrap()
}

fn texts(changes: Vec<WatchChange>) -> Vec<String> {
    changes.into_iter().map(|change| format!("{}: {}", change.kind.label(), change.text)).collect()
}

fn asking(resource: &str, mi: i64) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": {resource: format!("{mi}Mi")}}}]})
}

/// Returns the ranking as `rank pod reason`.
fn order(fixture: &Fixture) -> Vec<String> {
    let reading = fixture.current_view().reading.unwrap();
    reading.order.iter().map(|own| format!("{} {} {}", own.rank, &own.pod[3..], own.reason)).collect()
}

#[test]
fn ranks_pods_with_a_reason() {
    let memory = |uses: i64| json!({"memory": {"workingSetBytes": uses * MI}});
    let over = Fixture::new()
        .memory("within", 16, 28)
        .memory("over", 240, 28)
        .pod("nothing", json!({}), memory(100))
        .pod("urgent", json!({"priority": 1000}), memory(500))
        .pod("starting", asking("memory", 5), Value::Null)
        .pod("waiting", json!({}), Value::Null);
    assert_eq!(
        order(&over),
        [
            "1 starting no statistics (no container runs): ranked first; priority 0",
            "1 waiting no statistics (no container runs): ranked first; priority 0",
            "3 over exceeds its request by 212Mi (uses 240Mi, requests 28Mi), priority 0",
            "4 nothing exceeds its request by 100Mi (uses 100Mi, requests nothing), priority 0",
            "5 urgent exceeds its request by 500Mi (uses 500Mi, requests nothing), priority 1000",
            "6 within below its request by 12Mi (uses 16Mi, requests 28Mi), priority 0",
        ]
    );
    let disk = |bytes: i64, inodes: i64| json!({"containers": [{"name": "c", "rootfs": {"usedBytes": bytes * MI, "inodesUsed": inodes}}]});
    let mut fixture = Fixture::new()
        .pod("idle", json!({}), disk(0, 0))
        .pod("writer", asking("ephemeral-storage", 10), disk(30, 7))
        .pod("files", json!({}), disk(11, 900));
    fixture.signal = Signal::NodefsAvailable;
    assert_eq!(
        order(&fixture),
        [
            "1 writer exceeds its request by 20Mi (uses 30Mi, requests 10Mi), priority 0",
            "2 files exceeds its request by 11Mi (uses 11Mi, requests nothing), priority 0",
            "3 idle uses nothing, requests nothing, priority 0",
        ]
    );
    // The kubelet subtracts the request in bytes from inodes.
    fixture.signal = Signal::NodefsInodesFree;
    assert_eq!(
        order(&fixture),
        [
            "1 files uses 900 inodes, priority 0",
            "2 writer uses 7 inodes, minus its request of 10485760 bytes of ephemeral-storage, priority 0",
            "3 idle uses 0 inodes, priority 0",
        ]
    );
    let pids = |count: i64| json!({"process_stats": {"process_count": count}});
    let mut fixture = Fixture::new()
        .pod("many", json!({}), pids(90))
        .pod("few", json!({}), pids(2))
        .pod("low", json!({"priority": -5}), pids(1))
        .pod("none", json!({}), Value::Null)
        .pod("not-counted", json!({}), json!({}));
    fixture.signal = Signal::PidAvailable;
    assert_eq!(
        order(&fixture),
        [
            "1 low priority -5, 1 pids",
            "2 none priority 0, no statistics: ranked before pods of equal priority",
            "3 many priority 0, 90 pids",
            "4 few priority 0, 2 pids",
            "5 not-counted priority 0, 0 pids",
        ]
    );
}

#[test]
fn excludes_exempt_and_ended_pods_from_the_ranking() {
    let mut fixture = Fixture::new().memory("hog", 100, 0).memory("static", 500, 0).memory("system", 600, 0);
    fixture = fixture.memory("done", 700, 0).memory("leaving", 50, 0);
    fixture.pods[1]["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    fixture.pods[2]["spec"]["priority"] = json!(2_000_000_000);
    fixture.pods[3]["status"]["phase"] = json!("Succeeded");
    fixture.pods[4]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let reading = fixture.current_view().reading.unwrap();
    let names: Vec<&str> = reading.order.iter().map(|own| own.pod.as_str()).collect();
    assert_eq!(names, ["ns/hog", "ns/leaving"]);
    assert!(reading.order[1].reason.ends_with("priority 0; terminating"), "{:?}", reading.order[1]);
    let never: Vec<(&str, &str)> =
        reading.exempt.iter().map(|never| (never.pod.as_str(), never.reason.as_str())).collect();
    assert_eq!(never, [("ns/static", "static pod"), ("ns/system", "priority 2000000000")]);
}

#[test]
fn reports_each_change_once() {
    let mut state = WatchState::default();
    let mut fixture = Fixture::new().memory("one", 100, 0).memory("two", 50, 0);
    assert!(fixture.apply(&mut state, 0).is_empty(), "the initial state is not a change");
    state.started = true;
    assert!(fixture.apply(&mut state, 2).is_empty());
    fixture.stats[1]["memory"]["workingSetBytes"] = json!(120 * MI);
    assert_eq!(
        fixture.apply(&mut state, 4),
        ["first: ns/two: exceeds its request by 120Mi (uses 120Mi, requests nothing), priority 0"]
    );
    fixture.available = 95;
    fixture.conditions = json!([{"type": "Ready", "status": "True"}, {"type": "MemoryPressure", "status": "True", "message": "too little"}]);
    assert_eq!(
        fixture.apply(&mut state, 6),
        [
            "condition: MemoryPressure: too little",
            "below: memory.available 95Mi, 5120Ki below the hard threshold of 100Mi; first eviction candidate: ns/two",
        ]
    );
    assert!(fixture.apply(&mut state, 8).is_empty());
    let status = &state.nodes["n"].reading.as_ref().unwrap().thresholds[0];
    assert_eq!(status.since, Some(at(6)), "since the first observation");
    fixture.available = 700;
    fixture.conditions = json!([{"type": "Ready", "status": "Unknown", "message": "silent"}]);
    assert_eq!(
        fixture.apply(&mut state, 10),
        [
            "condition: NotReady: silent",
            "condition: MemoryPressure cleared",
            "above: memory.available 700Mi, 600Mi above the hard threshold of 100Mi",
        ]
    );
    fixture.hard = json!({"memory.available": "5%"});
    fixture.soft = json!({"memory.available": "750Mi"});
    assert_eq!(
        fixture.apply(&mut state, 12),
        [
            "thresholds: memory.available: hard 5%, soft (1m 30s) 750Mi",
            "below: memory.available 700Mi, 50Mi below the soft (1m 30s) threshold of 750Mi; first eviction candidate: ns/two",
        ]
    );
    fixture.pods.remove(0);
    fixture.pods[0]["status"] = json!({"phase": "Failed", "reason": "Evicted"});
    assert_eq!(
        fixture.apply(&mut state, 14),
        ["gone: ns/one: deleted", "gone: ns/two: Failed, Evicted", "first: no pod can be evicted"]
    );
}

#[test]
fn keeps_the_last_reading_of_a_lost_node() {
    let mut state = WatchState::default();
    let fixture = Fixture::new().memory("one", 100, 0);
    fixture.apply(&mut state, 0);
    state.started = true;
    let timeout = QueryError::Kubelet("connection refused".to_owned());
    let mut lose = |seconds: i64| {
        let view = fixture.view(Err(&timeout), seconds, &BoundedSet::default());
        texts(state.apply(view, at(seconds)))
    };
    assert_eq!(lose(2), ["lost: cannot query node, retrying: connection refused"]);
    assert!(lose(4).is_empty());
    assert_eq!(state.nodes["n"].reading.as_ref().unwrap().at, at(0));
    assert_eq!(fixture.apply(&mut state, 6), ["back: node can be queried again"]);
    let server = |why: Option<&str>, state: &mut WatchState| {
        texts(state.set_server_error(why.map(str::to_owned), at(8)))
    };
    assert_eq!(
        server(Some("no route"), &mut state),
        ["server: API server does not answer, retrying: no route"]
    );
    assert!(server(Some("no route"), &mut state).is_empty());
    assert_eq!(server(None, &mut state), ["server: API server answers again"]);
    let deny = |state: &mut WatchState, seconds: i64| {
        texts(state.watch_denied("pods", "forbidden".to_owned(), at(seconds)))
    };
    assert_eq!(deny(&mut state, 9), ["server: watch on pods denied, retrying: forbidden"]);
    assert!(deny(&mut state, 39).is_empty() && state.watches_recovered(at(99)).is_empty());
    assert_eq!(texts(state.watches_recovered(at(100))), ["server: watch on pods works again"]);
    assert!(state.watches_recovered(at(101)).is_empty());
    assert_eq!(texts(state.retain(&BTreeSet::new(), at(9))), ["lost: node removed from the cluster"]);
}

fn evicted(pod: &str, message: &str) -> EvictionEvent {
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": "e", "namespace": "ns", "uid": "e"}, "reason": "Evicted", "message": message, "count": 1,
        "involvedObject": {"kind": "Pod", "namespace": "ns", "name": pod, "uid": format!("uid-{pod}")},
        "source": {"component": "kubelet", "host": "n"}, "lastTimestamp": "2026-01-01T00:00:07Z",
    }))
    .unwrap();
    EvictionEvent::from_event(&event).unwrap()
}

#[test]
fn compares_evictions_with_the_ranking() {
    let low = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ";
    let short = "memory: threshold 100Mi, available 90Mi; no container named";
    let rows = [
        (
            "hog",
            low,
            "as predicted, first in the ranking: exceeds its request by 300Mi (uses 300Mi, requests nothing), priority 0",
        ),
        (
            "small",
            low,
            "not predicted: rank 2 (exceeds its request by 9216Ki (uses 9216Ki, requests nothing), priority 0); the first was ns/hog \
             (exceeds its request by 300Mi (uses 300Mi, requests nothing), priority 0)",
        ),
        ("stranger", low, "not predicted: the pod was not on the node at the last query"),
        ("critical", low, "not predicted: the pod was considered exempt from eviction"),
        (
            "hog",
            "The node was low on resource: pids. ",
            "evicted for pids, the ranking is for memory.available",
        ),
        (
            "hog",
            "Usage of EmptyDir volume \"v\" exceeds the limit \"20Mi\". ",
            "exceeded its own limit, ranking does not apply",
        ),
        ("hog", "The node had condition: [MemoryPressure]. ", "rejected at admission, the pod never ran"),
        ("hog", "The node was tired. ", "unknown message, cannot compare with the ranking"),
    ];
    let critical = json!({"priority": 2_000_000_000});
    let fixture =
        Fixture::new().memory("hog", 300, 0).memory("small", 9, 0).pod("critical", critical, json!({}));
    for (pod, message, prediction) in rows {
        let mut state = WatchState::default();
        fixture.apply(&mut state, 0);
        let changes = texts(state.apply_eviction(&evicted(pod, message), None, at(7)));
        assert!(changes[0].starts_with(&format!("evicted: ns/{pod}: ")), "{changes:?}");
        assert!(changes[0].ends_with(prediction), "{changes:?}");
        if message == low {
            assert!(changes[0].contains(short), "{changes:?}");
        }
        // An evicted pod is no longer a candidate.
        let next = fixture.apply(&mut state, 9);
        assert!(
            !state.nodes["n"]
                .reading
                .as_ref()
                .unwrap()
                .order
                .iter()
                .any(|own| own.pod == format!("ns/{pod}")),
            "{next:?}"
        );
        let again = texts(state.apply_eviction(&evicted(pod, message), None, at(10)));
        assert!(again[0].ends_with("; repeated event for the same pod"), "{again:?}");
    }
    // A late event is compared with the reading before it: the containers of the pod have ended
    // since.
    let mut fixture = Fixture::new().memory("hog", 300, 0).memory("small", 9, 0);
    let mut state = WatchState::default();
    for seconds in [5, 8] {
        fixture.apply(&mut state, seconds);
        fixture.stats.retain(|stats| stats["podRef"]["name"] != "small");
    }
    let changes = texts(state.apply_eviction(&evicted("small", low), None, at(9)));
    assert!(changes[0].contains("not predicted: rank 2 (exceeds its request by 9216Ki"), "{changes:?}");
    let equal = Fixture::new().memory("one", 50, 0).memory("two", 50, 0);
    let prediction = evicted("two", low).describe_prediction(equal.current_view().reading.as_ref());
    assert!(
        prediction.starts_with("as predicted, one of 2 equal first pods in the ranking: "),
        "{prediction}"
    );
}

fn plain(pods: usize) -> ViewOptions {
    ViewOptions { terminal: TerminalCaps { live: false, color: false }, pods, title: "lab".to_owned() }
}

/// Returns a table without its first line, which contains the time.
fn table(fixture: &Fixture, pods: usize) -> String {
    let mut out = Vec::new();
    WatchView::new(&mut out, || None, plain(pods)).print_once(vec![fixture.current_view()], at(0)).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.split_once('\n').unwrap().1.to_owned()
}

#[test]
fn renders_nodes_with_their_pods() {
    let critical = json!({"priority": 2_000_001_000});
    let mut fixture = Fixture::new()
        .memory("hog", 300, 20)
        .memory("small", 9, 10)
        .memory("smaller", 5, 10)
        .pod("proxy", critical, json!({}));
    let mut output = table(&fixture, 2);
    fixture.available = 500;
    fixture.soft = json!({"memory.available": "60%"});
    fixture.hard = json!({"memory.available": "100Mi", "pid.available": "700"});
    fixture.conditions = json!([{"type": "Ready", "status": "False", "message": "PLEG"}, {"type": "MemoryPressure", "status": "True"}]);
    fixture.pods.truncate(0);
    output += &table(&fixture, 5);
    fixture.signal = Signal::PidAvailable;
    fixture.hard = json!({});
    output += &table(&fixture, 5);
    fixture.signal = Signal::AllocatableMemoryAvailable;
    output += &table(&fixture, 5);
    fixture.version = "old";
    output += &table(&fixture, 5);
    insta::assert_snapshot!(output);
}

#[test]
fn metrics_have_no_amounts_of_a_node_that_does_not_answer() {
    let fixture = Fixture::new().memory("hog", 300, 20);
    let mut state = WatchState::default();
    fixture.apply(&mut state, 0);
    let distance = "evictlab_threshold_distance{node=";
    let text = super::metrics::render(&state);
    assert!(text.contains(distance) && text.contains("evictlab_node_queryable{node=\"n\"} 1\n"), "{text}");
    let mut view = fixture.current_view();
    (view.reading, view.problem) = (None, Some("timed out".to_owned()));
    state.apply(view, at(5));
    let text = super::metrics::render(&state);
    assert!(!text.contains(distance) && text.contains("evictlab_node_queryable{node=\"n\"} 0\n"), "{text}");
}

#[test]
fn fits_terminals_of_any_size() {
    let fixture = Fixture::new().memory("hog", 300, 20).memory("small", 9, 10).memory("smaller", 5, 10);
    let low = "The node was low on resource: memory. ";
    let mut state = WatchState::default();
    for nth in 0..5 {
        let mut view = fixture.current_view();
        view.name = format!("n{nth}");
        state.apply(view, at(0));
        let mut eviction = evicted("hog", low);
        eviction.node = Some(format!("n{nth}"));
        state.apply_eviction(&eviction, None, at(1));
    }
    for rows in 2..40_u16 {
        let lines = frame(&state, &plain(3), &Focus::default(), wide(usize::from(rows)), at(2));
        assert!(lines.len() < usize::from(rows), "{} lines in {rows}", lines.len());
        let nodes = lines.iter().filter(|line| line.text(false).contains("memory.available")).count();
        assert_eq!(nodes, usize::from(rows - 2).min(5), "{rows} rows");
        let title = lines[0].text(false);
        let hidden = 5_usize.saturating_sub(usize::from(rows - 2));
        assert_eq!(title.contains(&format!("{hidden} nodes farther")), hidden > 0, "{title}");
    }
}

/// Renders a terminal of 100 columns.
#[test]
fn redraws_the_table_below_the_log() {
    let mut fixture = Fixture::new().memory("hog", 300, 20).memory("small", 9, 10);
    let options = ViewOptions { terminal: TerminalCaps { live: true, color: true }, ..plain(5) };
    let size = || Some((terminal_size::Width(100), terminal_size::Height(20)));
    let mut state = WatchState::default();
    let mut out = Vec::new();
    let mut watch_view = WatchView::new(&mut out, size, options);
    fixture.apply(&mut state, 0);
    state.started = true;
    watch_view.start(&state, at(0)).unwrap();
    fixture.available = 90;
    let view = fixture.view(Ok(&fixture.snapshot()), 2, &state.evicted);
    let crossed = state.apply(view, at(2));
    watch_view.update(&state, &crossed, at(2)).unwrap();
    let low = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ";
    let evicted = state.apply_eviction(&evicted("hog", low), None, at(7));
    watch_view.update(&state, &evicted, at(7)).unwrap();
    let view = fixture.view(Ok(&fixture.snapshot()), 8, &state.evicted);
    let next = state.apply(view, at(8));
    assert_eq!(texts(next.clone()).len(), 1, "the table shows the first candidate");
    // Without a line for the log, the table is not drawn more often.
    sleep(REDRAW_INTERVAL);
    watch_view.update(&state, &next, at(8)).unwrap();
    let mut terminal = vt100::Parser::new(20, 100, 0);
    drop(watch_view);
    terminal.process(String::from_utf8(out).unwrap().replace('\n', "\r\n").as_bytes());
    let screen = terminal.screen();
    let rows: Vec<String> = screen.rows(0, 100).map(|row| row.trim_end().to_owned()).collect();
    insta::assert_snapshot!(rows.join("\n").trim_end());
    assert_eq!((screen.cursor_position().1, screen.hide_cursor()), (0, false));
}

#[test]
fn the_end_removes_the_keys_and_keeps_the_table() {
    let fixture = Fixture::new().memory("hog", 300, 20);
    let options = ViewOptions { terminal: TerminalCaps { live: true, color: false }, ..plain(5) };
    let size = || Some((terminal_size::Width(100), terminal_size::Height(20)));
    let mut state = WatchState::default();
    fixture.apply(&mut state, 0);
    let rows = |is_finished: bool| -> Vec<String> {
        let mut out = Vec::new();
        let mut watch_view = WatchView::new(&mut out, size, options.clone());
        watch_view.enable_keys();
        watch_view.start(&state, at(0)).unwrap();
        if is_finished {
            watch_view.finish(&state, at(0)).unwrap();
        }
        drop(watch_view);
        let mut terminal = vt100::Parser::new(20, 100, 0);
        terminal.process(String::from_utf8(out).unwrap().replace('\n', "\r\n").as_bytes());
        let rows = terminal.screen().rows(0, 100).map(|row| row.trim_end().to_owned());
        rows.filter(|row| !row.is_empty()).collect()
    };
    let (running, finished) = (rows(false), rows(true));
    assert_eq!(running.last().unwrap(), "↑ ↓ node   Enter its pods   s S signal   q quit");
    assert_eq!(finished, running[..running.len() - 1]);
}

#[test]
fn a_narrow_terminal_has_the_key_that_quits_and_marks_a_shortened_warning() {
    let mut state = WatchState::default();
    state.apply(Fixture { disables_others: false, ..Fixture::new() }.current_view(), START);
    let focus = Focus { has_keys: true, ..Focus::default() };
    let lines = |columns, rows| -> Vec<String> {
        let lines = frame(&state, &plain(1), &focus, Viewport { columns, ..wide(rows) }, START);
        lines.iter().map(|line| line.text(false).trim_end().to_owned()).collect()
    };
    assert_eq!(lines(39, 24).last().unwrap(), "↑ ↓ node   Enter its pods   q quit");
    assert_eq!(lines(5, 24).last().unwrap(), "q quit");
    let shortened = lines(39, 12);
    assert!(shortened[2].ends_with('…') && !shortened[1].ends_with('…'), "{shortened:?}");
    let complete = lines(39, 48).join("\n");
    assert!(complete.contains("warning") && !complete.contains('…'), "{complete}");
}

#[test]
fn the_table_is_redrawn_after_the_clock_was_set_back() {
    let mut fixture = Fixture::new().memory("hog", 300, 20);
    let options = ViewOptions { terminal: TerminalCaps { live: true, color: false }, ..plain(5) };
    let mut state = WatchState::default();
    let mut out = Vec::new();
    let mut watch_view = WatchView::new(&mut out, || None, options);
    fixture.apply(&mut state, 60);
    watch_view.start(&state, at(60)).unwrap();
    fixture.available = 90;
    fixture.apply(&mut state, 0);
    sleep(REDRAW_INTERVAL);
    watch_view.update(&state, &[], at(0)).unwrap();
    drop(watch_view);
    let text = String::from_utf8(out).unwrap();
    let time = at(0).strftime("%H:%M:%SZ").to_string();
    assert!(text.contains(&time), "{text}");
}

#[test]
fn nodes_without_default_thresholds_have_a_warning() {
    let fixture = Fixture { disables_others: false, ..Fixture::new() };
    let mut state = WatchState::default();
    for name in ["a", "b", "c", "d", "e"] {
        let view = NodeView { name: name.to_owned(), ..fixture.current_view() };
        state.apply(view, START);
    }
    state.apply(NodeView { name: "f".to_owned(), ..Fixture::new().current_view() }, START);
    let lines_within = |viewport: Viewport| -> Vec<String> {
        let lines = frame(&state, &plain(3), &Focus::default(), viewport, START);
        lines.iter().map(|line| line.text(false).trim_end().to_owned()).collect()
    };
    let lines = |rows| lines_within(wide(rows));
    let warning = "warning  a, b, c and 2 more: evictionHard sets only memory.available, nodefs.available: no threshold for nodefs.inodesFree, imagefs.available, imagefs.inodesFree";
    assert_eq!(lines(24)[1], warning);
    let narrow = Viewport { columns: 80, ..wide(24) };
    assert_eq!(
        lines_within(narrow)[1..4],
        [
            "warning  a, b, c and 2 more: evictionHard sets only memory.available,",
            "         nodefs.available: no threshold for nodefs.inodesFree,",
            "         imagefs.available, imagefs.inodesFree",
        ]
    );
    for rows in 3..24 {
        assert!(lines(rows).len() < rows, "{rows}");
    }
    let json = serde_json::to_value(&state.nodes["a"]).unwrap();
    assert_eq!(
        json["reading"]["missingDefaults"],
        json!({"configured": ["memory.available", "nodefs.available"],
            "missing": ["nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"]})
    );
    assert!(serde_json::to_value(&state.nodes["f"]).unwrap()["reading"].get("missingDefaults").is_none());
}

/// A terminal on which no line is wrapped.
fn wide(rows: usize) -> Viewport {
    Viewport { columns: 500, rows }
}

/// Three nodes with pods, the second selected and then opened.
#[test]
fn keys_select_nodes_and_pods() {
    let fixture = Fixture::new().memory("hog", 300, 20).memory("small", 9, 10).memory("smaller", 5, 10).pod(
        "system",
        json!({"priority": 2_000_001_000}),
        json!({"memory": {"workingSetBytes": MI}}),
    );
    let mut state = WatchState::default();
    for name in ["n1", "n2", "n3"] {
        state.apply(NodeView { name: name.to_owned(), ..fixture.current_view() }, at(0));
    }
    let mut eviction = evicted("gone", "The node was low on resource: memory. ");
    eviction.node = Some("n2".to_owned());
    state.apply_eviction(&eviction, None, at(1));
    let mut focus = Focus { has_keys: true, ..Focus::default() };
    let mut press = |keys: &[Key], rows: usize| {
        keys.iter().for_each(|key| focus.apply(*key, &state));
        let lines = frame(&state, &plain(2), &focus, wide(rows), at(2));
        assert!(lines.len() < rows, "{} lines in {rows}", lines.len());
        let text: String = lines.iter().map(|line| line.text(false) + "\n").collect();
        format!("{keys:?}, {rows} rows\n{text}\n")
    };
    let screens = [
        press(&[], 20),
        press(&[Key::Down, Key::Down], 20),
        press(&[Key::Open], 20),
        press(&[Key::Down], 20),
        press(&[Key::End], 20),
        press(&[Key::Home, Key::Down], 8),
        press(&[Key::Close, Key::End], 8),
        press(&[Key::Close], 20),
    ];
    insta::assert_snapshot!(screens.concat());
    for rows in 2..30 {
        press(&[Key::Open], rows);
        press(&[Key::Close, Key::Down], rows);
    }
    focus = Focus { node: Some("n2".to_owned()), is_open: true, ..Focus::default() };
    focus.apply(Key::Down, &state);
    let lines = frame(&state, &plain(2), &focus, Viewport { columns: 60, ..wide(24) }, at(2));
    let below: Vec<String> = lines[7..].iter().map(|line| line.text(false).trim_end().to_owned()).collect();
    assert_eq!(
        below,
        [
            "      rank 1 of 3",
            "      exceeds its request by 280Mi (uses 300Mi, requests",
            "      20Mi), priority 0",
            "      order: pods that exceed their request of memory, then",
            "      lower priority, then the larger excess",
            "      evicted 00:00:07Z  ns/gone: not predicted: the pod was",
            "      not on the node at the last query; memory, no",
            "      threshold given; no container named",
        ]
    );
}
