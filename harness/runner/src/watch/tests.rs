//! What is made of answers and events, without a cluster.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node as ApiNode, Pod as ApiPod};
use serde_json::{Value, json};

use super::answer::{Answer, Unread};
use super::change::Change;
use super::eviction::Eviction;
use super::ledger::Ledger;
use super::node::{NodeView, Seen};
use crate::report::Manners;
use crate::watch::{Show, Style};
use evictlab_rules::pod::Sample;
use evictlab_rules::threshold::Signal;
use serde::Deserialize;

const MI: i64 = 1 << 20;
const START: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// A node with its pods and what its kubelet answers.
struct Scene {
    version: &'static str,
    signal: Signal,
    conditions: Value,
    hard: Value,
    soft: Value,
    available: i64,
    pods: Vec<Value>,
    stats: Vec<Value>,
}

impl Scene {
    fn new() -> Self {
        Self {
            version: "v1.32.13",
            signal: Signal::MemoryAvailable,
            conditions: json!([{"type": "Ready", "status": "True"}]),
            hard: json!({"memory.available": "100Mi", "nodefs.available": "10%"}),
            soft: json!({}),
            available: 900,
            pods: Vec::new(),
            stats: Vec::new(),
        }
    }

    /// Adds a pod that runs; `stats` are the fields of its statistics, or nothing if the kubelet has none.
    fn pod(mut self, name: &str, spec: Value, stats: Value) -> Self {
        let mut whole = json!({"nodeName": "n", "containers": [{"name": "c"}]});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let uid = format!("uid-{name}");
        let reference = json!({"name": name, "namespace": "ns", "uid": uid});
        let metadata = json!({"name": name, "namespace": "ns", "uid": uid});
        self.pods.push(json!({"metadata": metadata, "spec": whole, "status": {"phase": "Running"}}));
        if let Some(stats) = stats.as_object() {
            let mut own = json!({"podRef": reference});
            own.as_object_mut().unwrap().extend(stats.clone());
            self.stats.push(own);
        }
        self
    }

    /// Adds a pod that uses so many Mi and asks for so many.
    fn memory(self, name: &str, uses: i64, asks: i64) -> Self {
        self.pod(name, asking("memory", asks), json!({"memory": {"workingSetBytes": uses * MI}}))
    }

    fn answer(&self) -> Answer {
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
        let config =
            json!({"evictionHard": self.hard, "evictionSoft": self.soft, "evictionSoftGracePeriod": grace});
        Answer { config, sample: Sample::deserialize(summary).unwrap() }
    }

    fn view(&self, answer: Result<&Answer, &Unread>, seconds: i64, evicted: &BTreeSet<String>) -> NodeView {
        let info = json!({"kubeletVersion": self.version, "operatingSystem": "linux", "architecture": "", "bootID": "",
            "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "osImage": "", "systemUUID": ""});
        let node =
            json!({"metadata": {"name": "n"}, "status": {"conditions": self.conditions, "nodeInfo": info}});
        let node: ApiNode = serde_json::from_value(node).unwrap();
        let pods: Vec<ApiPod> =
            self.pods.iter().map(|pod| serde_json::from_value(pod.clone()).unwrap()).collect();
        let pods: Vec<&ApiPod> = pods.iter().collect();
        let at = at(seconds);
        NodeView::of(&Seen { node: &node, pods: &pods, answer, signal: self.signal, evicted, at })
    }

    fn seen(&self) -> NodeView {
        self.view(Ok(&self.answer()), 0, &BTreeSet::new())
    }

    /// What a ledger makes of it after some seconds.
    fn told(&self, ledger: &mut Ledger, seconds: i64) -> Vec<String> {
        let view = self.view(Ok(&self.answer()), seconds, &ledger.evicted);
        texts(ledger.take(view, at(seconds)))
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(START.as_second() + seconds).unwrap()
}

fn texts(changes: Vec<Change>) -> Vec<String> {
    changes.into_iter().map(|change| format!("{}: {}", change.what.word(), change.text)).collect()
}

fn asking(resource: &str, mi: i64) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": {resource: format!("{mi}Mi")}}}]})
}

/// The order as `place pod why`.
fn order(scene: &Scene) -> Vec<String> {
    let reading = scene.seen().reading.unwrap();
    reading.order.iter().map(|own| format!("{} {} {}", own.place, &own.pod[3..], own.why)).collect()
}

#[test]
fn each_pod_has_its_place_and_the_reason() {
    let memory = |uses: i64| json!({"memory": {"workingSetBytes": uses * MI}});
    let over = Scene::new()
        .memory("within", 16, 28)
        .memory("over", 240, 28)
        .pod("nothing", json!({}), memory(100))
        .pod("urgent", json!({"priority": 1000}), memory(500))
        .pod("starting", asking("memory", 5), Value::Null)
        .pod("waiting", json!({}), Value::Null);
    assert_eq!(
        order(&over),
        [
            "1 starting the kubelet has no statistics of it (no container runs), so that it goes before all others; priority 0",
            "1 waiting the kubelet has no statistics of it (no container runs), so that it goes before all others; priority 0",
            "3 over over its request by 212Mi (uses 240Mi, requests 28Mi), priority 0",
            "4 nothing over its request by 100Mi (uses 100Mi, requests nothing), priority 0",
            "5 urgent over its request by 500Mi (uses 500Mi, requests nothing), priority 1000",
            "6 within within its request, 12Mi to spare (uses 16Mi, requests 28Mi), priority 0",
        ]
    );
    let disk = |bytes: i64, inodes: i64| json!({"containers": [{"name": "c", "rootfs": {"usedBytes": bytes * MI, "inodesUsed": inodes}}]});
    let mut scene = Scene::new()
        .pod("idle", json!({}), disk(0, 0))
        .pod("writer", asking("ephemeral-storage", 10), disk(30, 7))
        .pod("files", json!({}), disk(11, 900));
    scene.signal = Signal::NodefsAvailable;
    assert_eq!(
        order(&scene),
        [
            "1 writer over its request by 20Mi (uses 30Mi, requests 10Mi), priority 0",
            "2 files over its request by 11Mi (uses 11Mi, requests nothing), priority 0",
            "3 idle uses nothing, requests nothing, priority 0",
        ]
    );
    // The request of bytes is subtracted from inodes.
    scene.signal = Signal::NodefsInodesFree;
    assert_eq!(
        order(&scene),
        [
            "1 files uses 900 inodes, priority 0",
            "2 writer uses 7 inodes, less its request of 10485760 bytes of ephemeral-storage, priority 0",
            "3 idle uses 0 inodes, priority 0",
        ]
    );
    let pids = |count: i64| json!({"process_stats": {"process_count": count}});
    let mut scene = Scene::new()
        .pod("many", json!({}), pids(90))
        .pod("few", json!({}), pids(2))
        .pod("low", json!({"priority": -5}), pids(1))
        .pod("none", json!({}), Value::Null);
    scene.signal = Signal::PidAvailable;
    assert_eq!(
        order(&scene),
        [
            "1 low priority -5, 1 pids",
            "2 none priority 0, the kubelet has no statistics of it, so that it goes before its equals",
            "3 many priority 0, 90 pids",
            "4 few priority 0, 2 pids",
        ]
    );
}

#[test]
fn who_is_never_evicted_has_no_place_and_who_has_ended_is_not_there() {
    let mut scene = Scene::new().memory("hog", 100, 0).memory("static", 500, 0).memory("system", 600, 0);
    scene = scene.memory("done", 700, 0).memory("leaving", 50, 0);
    scene.pods[1]["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    scene.pods[2]["spec"]["priority"] = json!(2_000_000_000);
    scene.pods[3]["status"]["phase"] = json!("Succeeded");
    scene.pods[4]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let reading = scene.seen().reading.unwrap();
    let names: Vec<&str> = reading.order.iter().map(|own| own.pod.as_str()).collect();
    assert_eq!(names, ["ns/hog", "ns/leaving"]);
    assert!(reading.order[1].why.ends_with("priority 0; it is being deleted"), "{:?}", reading.order[1]);
    let never: Vec<(&str, &str)> =
        reading.never.iter().map(|never| (never.pod.as_str(), never.why.as_str())).collect();
    assert_eq!(never, [("ns/static", "static pod"), ("ns/system", "priority 2000000000")]);
}

#[test]
fn what_changes_is_told_once() {
    let mut ledger = Ledger::default();
    let mut scene = Scene::new().memory("one", 100, 0).memory("two", 50, 0);
    assert!(scene.told(&mut ledger, 0).is_empty(), "the first look changes nothing");
    ledger.begun = true;
    assert!(scene.told(&mut ledger, 2).is_empty());
    scene.stats[1]["memory"]["workingSetBytes"] = json!(120 * MI);
    assert_eq!(
        scene.told(&mut ledger, 4),
        ["first: ns/two: over its request by 120Mi (uses 120Mi, requests nothing), priority 0"]
    );
    scene.available = 95;
    scene.conditions = json!([{"type": "Ready", "status": "True"}, {"type": "MemoryPressure", "status": "True", "message": "too little"}]);
    assert_eq!(
        scene.told(&mut ledger, 6),
        [
            "condition: MemoryPressure: too little",
            "below: memory.available 95Mi, 5120Ki below the hard threshold of 100Mi; first in order is ns/two",
        ]
    );
    assert!(scene.told(&mut ledger, 8).is_empty());
    let limit = &ledger.nodes["n"].reading.as_ref().unwrap().thresholds[0];
    assert_eq!(limit.since, Some(at(6)), "since it was seen first");
    scene.available = 700;
    scene.conditions = json!([{"type": "Ready", "status": "Unknown", "message": "silent"}]);
    assert_eq!(
        scene.told(&mut ledger, 10),
        [
            "condition: NotReady: silent",
            "condition: MemoryPressure is over",
            "above: memory.available 700Mi, 600Mi above the hard threshold of 100Mi",
        ]
    );
    scene.hard = json!({"memory.available": "5%"});
    scene.soft = json!({"memory.available": "750Mi"});
    assert_eq!(
        scene.told(&mut ledger, 12),
        [
            "thresholds: memory.available: hard 5%, soft (1m 30s) 750Mi",
            "below: memory.available 700Mi, 50Mi below the soft (1m 30s) threshold of 750Mi; first in order is ns/two",
        ]
    );
    scene.pods.remove(0);
    scene.pods[0]["status"] = json!({"phase": "Failed", "reason": "Evicted"});
    assert_eq!(
        scene.told(&mut ledger, 14),
        [
            "gone: ns/one: deleted",
            "gone: ns/two: Failed, Evicted",
            "first: no pod is left that may be evicted"
        ]
    );
}

#[test]
fn a_node_that_does_not_answer_keeps_its_last_figures() {
    let mut ledger = Ledger::default();
    let scene = Scene::new().memory("one", 100, 0);
    scene.told(&mut ledger, 0);
    ledger.begun = true;
    let silent = Unread::Kubelet("connection refused".to_owned());
    let mut lose = |seconds: i64| {
        let view = scene.view(Err(&silent), seconds, &BTreeSet::new());
        texts(ledger.take(view, at(seconds)))
    };
    assert_eq!(lose(2), ["lost: it cannot be read, and is asked again: connection refused"]);
    assert!(lose(4).is_empty());
    assert_eq!(ledger.nodes["n"].reading.as_ref().unwrap().at, at(0));
    assert_eq!(scene.told(&mut ledger, 6), ["back: it can be read again"]);
    let server = |why: Option<&str>, ledger: &mut Ledger| texts(ledger.server(why.map(str::to_owned), at(8)));
    assert_eq!(
        server(Some("no route"), &mut ledger),
        ["server: the API server does not answer, and is asked again: no route"]
    );
    assert!(server(Some("no route"), &mut ledger).is_empty());
    assert_eq!(server(None, &mut ledger), ["server: the API server answers again"]);
    let refuse = |ledger: &mut Ledger, seconds: i64| {
        texts(ledger.refused("pods", "forbidden".to_owned(), at(seconds)))
    };
    assert_eq!(
        refuse(&mut ledger, 9),
        ["server: the watch on pods is refused, and is asked for again: forbidden"]
    );
    assert!(refuse(&mut ledger, 39).is_empty() && ledger.granted(at(99)).is_empty());
    assert_eq!(texts(ledger.granted(at(100))), ["server: the watch on pods goes on"]);
    assert!(ledger.granted(at(101)).is_empty());
    assert_eq!(texts(ledger.retain(&BTreeSet::new(), at(9))), ["lost: the node is gone from the cluster"]);
}

fn evicted(pod: &str, message: &str) -> Eviction {
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": "e", "namespace": "ns", "uid": "e"}, "reason": "Evicted", "message": message, "count": 1,
        "involvedObject": {"kind": "Pod", "namespace": "ns", "name": pod, "uid": format!("uid-{pod}")},
        "source": {"component": "kubelet", "host": "n"}, "lastTimestamp": "2026-01-01T00:00:07Z",
    }))
    .unwrap();
    Eviction::of(&event).unwrap()
}

#[test]
fn an_eviction_is_held_against_the_order() {
    let low = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ";
    let short = "memory: threshold 100Mi, available 90Mi; nobody is named";
    let rows = [
        (
            "hog",
            low,
            "as foreseen, it was the first in order: over its request by 300Mi (uses 300Mi, requests nothing), priority 0",
        ),
        (
            "small",
            low,
            "not foreseen: it was number 2 (over its request by 9216Ki (uses 9216Ki, requests nothing), priority 0); the first was ns/hog \
             (over its request by 300Mi (uses 300Mi, requests nothing), priority 0)",
        ),
        ("stranger", low, "not foreseen: it was not on the node at the last look"),
        ("critical", low, "not foreseen: it was taken for one that is never evicted"),
        (
            "hog",
            "The node was low on resource: pids. ",
            "for pids, and the order is that for memory.available",
        ),
        (
            "hog",
            "Usage of EmptyDir volume \"v\" exceeds the limit \"20Mi\". ",
            "for its own limit, so that no order counts",
        ),
        ("hog", "The node had condition: [MemoryPressure]. ", "it was not admitted, and never ran"),
        ("hog", "The node was tired. ", "the order cannot be held against it"),
    ];
    let critical = json!({"priority": 2_000_000_000});
    let scene = Scene::new().memory("hog", 300, 0).memory("small", 9, 0).pod("critical", critical, json!({}));
    for (pod, message, foreseen) in rows {
        let mut ledger = Ledger::default();
        scene.told(&mut ledger, 0);
        let told = texts(ledger.evict(&evicted(pod, message), None, at(7)));
        assert!(told[0].starts_with(&format!("evicted: ns/{pod}: ")), "{told:?}");
        assert!(told[0].ends_with(foreseen), "{told:?}");
        if message == low {
            assert!(told[0].contains(short), "{told:?}");
        }
        // It is on its way out, and nobody's next.
        let next = scene.told(&mut ledger, 9);
        assert!(
            !ledger.nodes["n"]
                .reading
                .as_ref()
                .unwrap()
                .order
                .iter()
                .any(|own| own.pod == format!("ns/{pod}")),
            "{next:?}"
        );
        let again = texts(ledger.evict(&evicted(pod, message), None, at(10)));
        assert!(again[0].ends_with("; told once more of the same pod"), "{again:?}");
    }
    // A late event is held against what was read before it: the pod's containers have ended since.
    let mut scene = Scene::new().memory("hog", 300, 0).memory("small", 9, 0);
    let mut ledger = Ledger::default();
    for seconds in [5, 8] {
        scene.told(&mut ledger, seconds);
        scene.stats.retain(|stats| stats["podRef"]["name"] != "small");
    }
    let told = texts(ledger.evict(&evicted("small", low), None, at(9)));
    assert!(told[0].contains("not foreseen: it was number 2 (over its request by 9216Ki"), "{told:?}");
    let equal = Scene::new().memory("one", 50, 0).memory("two", 50, 0);
    let foreseen = evicted("two", low).foreseen(equal.seen().reading.as_ref());
    assert!(foreseen.starts_with("as foreseen, it was one of 2 equal first in order: "), "{foreseen}");
}

fn plain(pods: usize) -> Style {
    Style { manners: Manners { live: false, colour: false }, pods, title: "lab".to_owned() }
}

/// A table without its first line, which has the time.
fn table(scene: &Scene, pods: usize) -> String {
    let mut out = Vec::new();
    Show::new(&mut out, || None, plain(pods)).once(vec![scene.seen()], at(0)).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.split_once('\n').unwrap().1.to_owned()
}

#[test]
fn a_node_is_a_line_and_its_pods_beneath() {
    let critical = json!({"priority": 2_000_001_000});
    let mut scene = Scene::new().memory("hog", 300, 20).memory("small", 9, 10).memory("smaller", 5, 10).pod(
        "proxy",
        critical,
        json!({}),
    );
    let mut whole = table(&scene, 2);
    scene.available = 500;
    scene.soft = json!({"memory.available": "60%"});
    scene.hard = json!({"memory.available": "100Mi", "pid.available": "700"});
    scene.conditions = json!([{"type": "Ready", "status": "False", "message": "PLEG"}, {"type": "MemoryPressure", "status": "True"}]);
    scene.pods.truncate(0);
    whole += &table(&scene, 5);
    scene.signal = Signal::PidAvailable;
    scene.hard = json!({});
    whole += &table(&scene, 5);
    scene.signal = Signal::AllocatableMemoryAvailable;
    whole += &table(&scene, 5);
    scene.version = "old";
    whole += &table(&scene, 5);
    insta::assert_snapshot!(whole);
}

#[test]
fn a_terminal_of_any_size_has_room() {
    let scene = Scene::new().memory("hog", 300, 20).memory("small", 9, 10).memory("smaller", 5, 10);
    let low = "The node was low on resource: memory. ";
    let mut ledger = Ledger::default();
    for nth in 0..5 {
        let mut view = scene.seen();
        view.name = format!("n{nth}");
        ledger.take(view, at(0));
        let mut eviction = evicted("hog", low);
        eviction.node = Some(format!("n{nth}"));
        ledger.evict(&eviction, None, at(1));
    }
    for rows in 2..40_u16 {
        let lines = super::show::frame(&ledger, &plain(3), usize::from(rows), at(2));
        assert!(lines.len() < usize::from(rows), "{} lines in {rows}", lines.len());
        let nodes = lines.iter().filter(|line| line.text(false).contains("memory.available")).count();
        assert_eq!(nodes, usize::from(rows - 2).min(5), "{rows} rows");
        let title = lines[0].text(false);
        let hidden = 5_usize.saturating_sub(usize::from(rows - 2));
        assert_eq!(title.contains(&format!("{hidden} of them")), hidden > 0, "{title}");
    }
}

/// What a terminal of 100 columns shows.
#[test]
fn on_a_terminal_the_table_stays_below_what_happened() {
    let mut scene = Scene::new().memory("hog", 300, 20).memory("small", 9, 10);
    let style = Style { manners: Manners { live: true, colour: true }, ..plain(5) };
    let size = || Some((terminal_size::Width(100), terminal_size::Height(20)));
    let mut ledger = Ledger::default();
    let mut out = Vec::new();
    let mut show = Show::new(&mut out, size, style);
    scene.told(&mut ledger, 0);
    ledger.begun = true;
    show.begin(&ledger, at(0)).unwrap();
    scene.available = 90;
    let view = scene.view(Ok(&scene.answer()), 2, &ledger.evicted);
    let crossed = ledger.take(view, at(2));
    show.tell(&ledger, &crossed, at(2)).unwrap();
    let low = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ";
    let evicted = ledger.evict(&evicted("hog", low), None, at(7));
    show.tell(&ledger, &evicted, at(7)).unwrap();
    let view = scene.view(Ok(&scene.answer()), 8, &ledger.evicted);
    let next = ledger.take(view, at(8));
    assert_eq!(texts(next.clone()).len(), 1, "another pod is first: that stands in the table");
    show.tell(&ledger, &next, at(8)).unwrap();
    let mut terminal = vt100::Parser::new(20, 100, 0);
    terminal.process(String::from_utf8(out).unwrap().replace('\n', "\r\n").as_bytes());
    let screen = terminal.screen();
    let rows: Vec<String> = screen.rows(0, 100).map(|row| row.trim_end().to_owned()).collect();
    insta::assert_snapshot!(rows.join("\n").trim_end());
    assert_eq!((screen.cursor_position().1, screen.hide_cursor()), (0, false));
}
