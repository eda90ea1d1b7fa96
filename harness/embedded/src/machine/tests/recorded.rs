//! The memory of containers, compared with recordings of real kubelets. Tests have the names of the
//! recordings.

use super::lab::{KIB, Lab, MIB, mount, sh, spec};

/// Asserts a difference of at most 5 % and 8 MiB.
fn near(ours: u64, recorded: u64) {
    let distance = ours.abs_diff(recorded);
    assert!(distance <= recorded / 20 + 8 * MIB, "{ours} is far from {recorded}");
}

/// Asserts a difference of at most a quarter, for small amounts.
fn close(ours: u64, recorded: u64) {
    assert!(ours.abs_diff(recorded) <= recorded / 4, "{ours} is far from {recorded}");
}

/// The script of most recordings: a background process, and a second one that replaces the shell.
const SCRIPT: &str = "sleep 2; /agnhost stress --mem-alloc-size 100Mi --mem-alloc-sleep 200ms --mem-total 300Mi & \
                     sleep 14; exec /agnhost stress --mem-alloc-size 200Mi --mem-alloc-sleep 500ms --mem-total 600Mi";

#[test]
fn idle_containers() {
    let mut lab = Lab::new();
    lab.start("el2", spec("regular", &["sleep", "infinity"]));
    lab.seconds(5);
    let used = lab.memory("el2");
    // v1.31.14/regular: usage 311296, working set 307200, rss 98304; elsewhere 290816 to 323584.
    close(used.working_set, 307_200);
    assert_eq!(used.usage - used.working_set, 4096);
    assert_eq!(used.rss, 98_304);
    // v1.31.14/ranking, rank-guaranteed: pod 544768, container 315392; and rss.
    assert_eq!(lab.pod_memory("regular").working_set - used.working_set, 544_768 - 315_392);
    assert_eq!(lab.pod_memory("regular").rss - used.rss, 143_360 - 98_304 - 4096);
    assert_eq!(lab.processes("el2"), 1);
}

#[test]
fn soft() {
    let mut lab = Lab::new();
    lab.start("el-sidecar1", sh("soft", SCRIPT));
    lab.start("el1", sh("soft", "trap 'echo got SIGTERM; sleep 1; exit 0' TERM; sleep infinity & wait"));
    lab.seconds(10);
    // v1.31.14/soft at 7.85 s to 24.2 s.
    near(lab.memory("el-sidecar1").working_set, 322_723_840);
    close(lab.memory("el1").working_set, 520_192);
    close(lab.memory("el1").rss, 217_088);
    let sidecar = lab.memory("el-sidecar1");
    assert!(sidecar.working_set.abs_diff(322_723_840) < MIB, "{sidecar:?}");
    assert_eq!(lab.processes("el-sidecar1") + lab.processes("el1"), 5);
    lab.seconds(10);
    // At 28.58 s.
    near(lab.pod_memory("soft").working_set, 960_794_624);
    near(lab.pod_memory("soft").rss, 957_652_992);
    assert_eq!(lab.processes("el-sidecar1"), 2);
}

#[test]
fn ranking() {
    let mut lab = Lab::new();
    let mut under = spec("under", &[]);
    under.args = ["stress", "--mem-alloc-size", "50Mi", "--mem-alloc-sleep", "1s", "--mem-total", "100Mi"]
        .map(str::to_owned)
        .into();
    lab.start("a", under);
    lab.seconds(10);
    // v1.31.14/ranking, rank-burstable-under at 18.32 s.
    near(lab.memory("a").working_set, 112_009_216);
    assert!(lab.memory("a").working_set.abs_diff(112_009_216) < MIB);
    near(lab.memory("a").rss, 111_353_856);
}

#[test]
fn container_storage_limit() {
    let mut lab = Lab::new();
    lab.start("el1", sh("p", "dd if=/dev/zero of=/f bs=1M count=40; sleep infinity"));
    lab.start("el2", spec("p", &["sleep", "infinity"]));
    lab.seconds(8);
    // v1.31.14/container-storage-limit at 7.13 s.
    near(lab.memory("el1").working_set, 1_654_784);
    close(lab.memory("el1").working_set, 1_654_784);
    let layer = lab.machine.layer("el1");
    assert_eq!((layer.bytes, layer.inodes), (41_967_616, 7));
    let layer = lab.machine.layer("el2");
    assert_eq!((layer.bytes, layer.inodes), (24_576, 6));
    assert_eq!(lab.machine.log_use("el1").bytes, 4096);
    assert_eq!(lab.machine.log_use("el2").bytes, 0);
    // v1.31.14/emptydir-limit: usage 43622400 of 1675264.
    let used = lab.memory("el1");
    close(used.usage - used.working_set, 43_622_400 - 1_675_264);
    assert_eq!(lab.processes("el1") + lab.processes("el2"), 3);
}

#[test]
fn nodefs() {
    let mut lab = Lab::new();
    lab.start("el1", sh("p", "dd if=/dev/zero of=/f bs=1M count=1500; sleep infinity"));
    lab.seconds(7);
    // v1.31.14/nodefs at 7.04 s.
    near(lab.memory("el1").working_set, 43_585_536);
    close(lab.memory("el1").working_set, 43_585_536);
    assert_eq!(lab.machine.layer("el1").bytes, 1_572_888_576);
}

#[test]
fn emptydir_message() {
    let mut lab = Lab::new();
    let mut writer = sh("p", "dd if=/dev/zero of=/data/f bs=1M count=1500; sleep infinity");
    writer.mounts = vec![mount("/data", "data", false)];
    lab.start("el1", writer);
    lab.seconds(7);
    // v1.31.14/emptydir-message at 10.48 s: the layer has the mount point.
    let layer = lab.machine.layer("el1");
    assert_eq!((layer.bytes, layer.inodes), (28_672, 7));
    near(lab.memory("el1").working_set, 38_334_464);
    assert_eq!(lab.machine.volume("p", "data").bytes, 1500 * MIB + 4 * KIB);
}

#[test]
fn pid() {
    let mut lab = Lab::new();
    lab.start("el1", sh("p", "i=0; while [ $i -lt 900 ]; do sleep 300 & i=$((i+1)); done; wait"));
    lab.seconds(3);
    // v1.31.14/pid at 4 s; v1.36.2/pid: rss 88899584.
    near(lab.memory("el1").working_set, 166_379_520);
    assert!(lab.memory("el1").working_set.abs_diff(166_379_520) < 2 * MIB);
    close(lab.memory("el1").rss, 88_899_584);
    assert_eq!(lab.processes("el1"), 901);
}
