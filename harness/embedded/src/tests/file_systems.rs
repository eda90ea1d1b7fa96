//! A node with a file system of its own for images: statistics, reclaim and eviction by its layout.

use std::time::Duration;

use crate::machine::Imagefs;
use crate::resource::Kind;
use crate::sim::SimTime;
use crate::simulation::Simulation;
use crate::{ClusterOptions, Housekeeping, NodeOptions};
use evictlab_rules::KubeletVersion;
use serde_json::{Value, json};

const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.52";
const MIB: i64 = 1 << 20;
const DEDICATED: Imagefs = Imagefs { bytes: 8 << 30, inodes: None, has_layers: true };
const SPLIT: Imagefs = Imagefs { bytes: 8 << 30, inodes: None, has_layers: false };

struct Lab {
    simulation: Simulation,
}

impl Lab {
    fn new(minor: u32) -> Self {
        let node = NodeOptions::new("n1", KubeletVersion::from_minor(minor));
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut simulation = Simulation::new(ClusterOptions::new(5, epoch, vec![node])).unwrap();
        for name in ["default", "kube-system"] {
            let namespace = json!({"metadata": {"name": name}, "status": {"phase": "Active"}});
            let _exists = simulation.store.create(Kind::Namespace, namespace, SimTime::ZERO);
        }
        let mut lab = Self { simulation };
        lab.seconds(10);
        lab
    }

    fn seconds(&mut self, seconds: u64) {
        let until = self.simulation.now + Duration::from_secs(seconds);
        self.simulation.run(until);
    }

    fn set_imagefs(&mut self, imagefs: Option<Imagefs>) {
        self.simulation.with(|_, nodes, ctx| nodes.get_mut("n1").unwrap().set_imagefs(imagefs, ctx));
        self.seconds(2);
    }

    fn tune(&mut self, changes: Value) {
        self.simulation.with(|_, nodes, ctx| {
            nodes.get_mut("n1").unwrap().kubelet.configure(
                changes.as_object().unwrap(),
                Housekeeping::Fast,
                ctx,
            );
        });
        self.seconds(2);
    }

    fn summary(&mut self) -> Value {
        self.simulation.with(|_, nodes, ctx| {
            let node = nodes.get_mut("n1").unwrap();
            let answer = node.kubelet.answer("stats/summary", &node.machine, ctx);
            serde_json::from_str(&answer.body).unwrap()
        })
    }

    /// Creates a pod with a volume at `/data` that runs a script.
    fn pod(&mut self, name: &str, script: &str) {
        let pod = json!({"metadata": {"name": name, "namespace": "default"}, "status": {"phase": "Pending"}, "spec": {
            "nodeName": "n1", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "priority": 0,
            "containers": [{"name": "el1", "image": AGNHOST, "command": ["sh", "-c", script],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "volumes": [{"name": "data", "emptyDir": {}}],
        }});
        let now = self.simulation.now;
        self.simulation.with_context(|ctx| ctx.store.create(Kind::Pod, pod, now)).unwrap();
    }

    fn is_evicted(&self, pod: &str) -> bool {
        self.simulation.store.get(Kind::Pod, "default", pod).unwrap()["status"]["reason"] == "Evicted"
    }

    /// Number of log lines since a time that contain a text.
    fn count(&self, since: SimTime, text: &str) -> usize {
        self.simulation.nodes["n1"].kubelet.log.since(since).filter(|line| line.contains(text)).count()
    }

    fn has(&self, image: &str) -> bool {
        self.simulation.nodes["n1"].kubelet.status.images.contains(image)
    }
}

fn mib(summary: &Value, path: &str) -> i64 {
    summary.pointer(path).unwrap().as_i64().unwrap() / MIB
}

#[test]
fn the_summary_has_the_layout() {
    const NODEFS: &str = "/node/fs/availableBytes";
    const IMAGEFS: &str = "/node/runtime/imageFs/availableBytes";
    let mut lab = Lab::new(36);
    lab.tune(json!({}));
    let single = lab.summary();
    assert_eq!(mib(&single, NODEFS), mib(&single, IMAGEFS));

    lab.set_imagefs(Some(DEDICATED));
    let before = lab.summary();
    assert_eq!(before["node"]["runtime"]["imageFs"], before["node"]["runtime"]["containerFs"], "containerd");
    assert_eq!(mib(&before, "/node/runtime/imageFs/capacityBytes"), 8192);
    let images = mib(&single, "/node/runtime/imageFs/usedBytes");
    assert!((8192 - images - 1..=8192 - images).contains(&mib(&before, IMAGEFS)), "{images}");
    assert!((images - 1..=images + 1).contains(&(mib(&before, NODEFS) - mib(&single, NODEFS))));
    lab.pod("writer", "fallocate -l 100M /f; fallocate -l 300M /data/f; sleep infinity");
    lab.seconds(25);
    let after = lab.summary();
    let taken = |path: &str| mib(&before, path) - mib(&after, path);
    assert!((100..102).contains(&taken(IMAGEFS)) && (300..302).contains(&taken(NODEFS)), "{after:#}");
    let container = &after["pods"][0]["containers"][0];
    assert_eq!(mib(container, "/rootfs/capacityBytes"), 8192);
    assert!(mib(container, "/logs/capacityBytes") > 90_000);

    lab.set_imagefs(Some(SPLIT));
    let split = lab.summary();
    assert_eq!(
        split["node"]["runtime"]["containerFs"]["capacityBytes"],
        split["node"]["fs"]["capacityBytes"]
    );
    assert_eq!(
        mib(&split, "/pods/0/containers/0/rootfs/capacityBytes"),
        mib(&split, "/node/fs/capacityBytes")
    );
    assert!((400..403).contains(&(mib(&before, NODEFS) - mib(&split, NODEFS))), "layers are on nodefs");
}

#[test]
fn dead_containers_end_with_their_file_system() {
    const NODEFS: &str = "/node/fs/availableBytes";
    let mut lab = Lab::new(36);
    let before = mib(&lab.summary(), NODEFS);
    lab.set_imagefs(Some(DEDICATED));
    lab.pod("writer", "fallocate -l 1000M /f");
    lab.seconds(10);
    assert_eq!(
        lab.simulation.store.get(Kind::Pod, "default", "writer").unwrap()["status"]["phase"],
        "Succeeded"
    );
    lab.set_imagefs(None);
    lab.seconds(12);
    let after = mib(&lab.summary(), NODEFS);
    assert!((before - 2..=before).contains(&after), "{before} MiB before, {after} MiB after");
}

#[test]
fn deleted_images_return_with_the_original_file_system() {
    const COREDNS: &str = "registry.k8s.io/coredns/coredns:v1.12.0";
    const LOADED: &str = "registry.example/tool:1";
    let mut lab = Lab::new(32);
    let nodefs = mib(&lab.summary(), "/node/fs/availableBytes");
    lab.set_imagefs(Some(DEDICATED));
    lab.tune(json!({"imageMinimumGCAge": "1s"}));
    lab.simulation.with(|_, nodes, _| {
        nodes.get_mut("n1").unwrap().kubelet.status.images.load(LOADED);
    });
    let free = mib(&lab.summary(), "/node/runtime/imageFs/availableBytes");
    lab.tune(
        json!({"imageMinimumGCAge": "1s", "evictionHard": {"imagefs.available": format!("{}Mi", free + 1)}}),
    );
    lab.seconds(15);
    assert!(!lab.has(COREDNS) && !lab.has(LOADED));
    assert_eq!(lab.count(SimTime::ZERO, "able to reduce resource pressure without evicting"), 1);
    lab.set_imagefs(None);
    assert!(lab.has(COREDNS) && !lab.has(LOADED));
    lab.tune(json!({}));
    assert!((nodefs - 1..=nodefs).contains(&mib(&lab.summary(), "/node/fs/availableBytes")));
}

/// `KubeletSeparateDiskGC` is off by default in 1.29 and 1.30: with a split layout the first pass
/// ends with an error, and later ones find no ranking function (`synchronize`).
#[test]
fn a_split_layout_without_its_gate_evicts_nobody() {
    let rows = [
        (29, None, false),
        (30, None, false),
        (30, Some(true), true),
        (31, None, true),
        (36, Some(false), false),
    ];
    for (minor, gate, works) in rows {
        let mut lab = Lab::new(minor);
        lab.set_imagefs(Some(SPLIT));
        lab.pod("writer", "fallocate -l 600M /f; sleep infinity");
        lab.seconds(25);
        let free = mib(&lab.summary(), "/node/fs/availableBytes");
        let since = lab.simulation.now;
        let gates = gate.map_or(json!({}), |gate| json!({"KubeletSeparateDiskGC": gate}));
        let threshold = format!("{}Mi", free + 100);
        lab.tune(json!({"evictionHard": {"nodefs.available": threshold}, "featureGates": gates}));
        lab.seconds(40);
        assert_eq!(lab.is_evicted("writer"), works, "1.{minor} {gate:?}");
        let error = "KubeletSeparateDiskGC is turned off but we still have a split filesystem";
        assert_eq!(lab.count(since, error), usize::from(!works), "1.{minor} {gate:?}");
        assert_eq!(lab.count(since, "no ranking function for signal") > 0, !works, "1.{minor} {gate:?}");
    }
}

/// Reclaim and ranking by layout (`buildSignalToNodeReclaimFuncs`, `buildSignalToRankFunc`).
#[test]
fn pods_are_evicted_by_the_parts_on_the_file_system() {
    let rows = [
        (None, "/node/fs", "nodefs.available", 1100, "volume"),
        (Some(DEDICATED), "/node/fs", "nodefs.available", 600, "volume"),
        (Some(DEDICATED), "/node/runtime/imageFs", "imagefs.available", 500, "layer"),
        (Some(SPLIT), "/node/fs", "nodefs.available", 1100, "volume"),
    ];
    // 1.28 deletes images whatever their age, which is not enough.
    for (imagefs, fs, signal, written, victim) in rows {
        for minor in [28, 31, 36] {
            let mut lab = Lab::new(minor);
            lab.set_imagefs(imagefs);
            lab.tune(json!({}));
            let free = mib(&lab.summary(), &format!("{fs}/availableBytes"));
            lab.tune(json!({
                "evictionSoft": {signal: format!("{}Mi", free - written + 300)},
                "evictionSoftGracePeriod": {signal: "20s"},
                "imageMinimumGCAge": "1h",
                "volumeStatsAggPeriod": "1s",
            }));
            lab.pod("layer", "fallocate -l 500M /f; sleep infinity");
            lab.pod("volume", "fallocate -l 600M /data/f; sleep infinity");
            lab.seconds(50);
            let evicted = ["layer", "volume"].map(|pod| lab.is_evicted(pod));
            assert_eq!(evicted, [victim == "layer", victim == "volume"], "1.{minor} {imagefs:?} {signal}");
        }
    }
}
