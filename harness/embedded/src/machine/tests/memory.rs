//! Page cache, tmpfs and thresholds.

use std::time::Duration;

use crate::machine::{Cgroup, MachineEvent};

use super::lab::{Lab, MIB, mount, sh};

#[test]
fn page_cache_is_inactive_until_its_second_use() {
    let mut lab =
        Lab::script("dd if=/dev/zero of=/f bs=1M count=100; sleep 10; cat /f > /dev/null; sleep 100");
    lab.seconds(5);
    let used = lab.memory("c");
    assert!(used.usage > 100 * MIB && used.working_set < 5 * MIB, "{used:?}");
    lab.seconds(10);
    let used = lab.memory("c");
    assert!(used.working_set > 100 * MIB && used.rss < MIB, "{used:?}");
}

#[test]
fn truncating_a_file_frees_its_pages() {
    let mut lab =
        Lab::script("dd if=/dev/zero of=/f bs=1M count=100; sleep 5; : > /f; sleep 5; echo; sleep 100");
    lab.seconds(3);
    let full = lab.machine.filesystem().used;
    lab.seconds(5);
    assert!(lab.memory("c").usage < 2 * MIB);
    assert_eq!(full.bytes - lab.machine.filesystem().used.bytes, 100 * MIB);
}

#[test]
fn tmpfs_files_are_working_set() {
    let mut lab = Lab::new();
    let mut writer = sh("p", "dd if=/dev/zero of=/mem/f bs=1M count=50; sleep 1000");
    writer.mounts = vec![mount("/mem", "mem", true)];
    lab.start("c", writer);
    lab.seconds(2);
    assert!(lab.memory("c").working_set > 50 * MIB);
    assert_eq!(lab.machine.volume("p", "mem").bytes, 50 * MIB);
    let used = lab.machine.filesystem().used.bytes;
    // The files exist as long as their volume.
    lab.machine.remove("c");
    assert!(lab.pod_memory("p").working_set > 50 * MIB);
    lab.machine.remove_volumes("p");
    assert!(lab.machine.memory(&Cgroup::Pods).unwrap().usage < MIB);
    assert!(lab.machine.filesystem().used.bytes <= used);
}

#[test]
fn tmpfs_has_a_size() {
    let mut lab = Lab::new();
    let mut writer = sh("p", "dd if=/dev/zero of=/mem/f bs=1M count=50; echo $?; sleep 1000");
    writer.mounts = vec![crate::machine::Mount { size_limit: Some(20 * MIB), ..mount("/mem", "mem", true) }];
    lab.start("c", writer);
    lab.start("d", sh("p", "dd if=/dev/zero of=/dev/shm/f bs=1M count=100; echo $?; sleep 1000"));
    lab.seconds(2);
    assert_eq!(lab.machine.volume("p", "mem").bytes, 20 * MIB);
    for (id, path) in [("c", "/mem/f"), ("d", "/dev/shm/f")] {
        let log = lab.log(id);
        assert_eq!(log[0], format!("dd: error writing '{path}': No space left on device"));
        assert_eq!(log.last().unwrap(), "1");
    }
    let shm = lab.memory("d").working_set;
    assert!((64 * MIB..66 * MIB).contains(&shm), "{shm}");
}

#[test]
fn threshold_reports_each_crossing() {
    let mut lab = Lab::new();
    lab.machine.set_memory_threshold("a", Cgroup::Pods, 60 * MIB);
    lab.start("c", sh("p", "for i in 1 2; do dd if=/dev/zero of=/dev/shm/f bs=1M count=60 2>/dev/null; sleep 5; : > /dev/shm/f; sleep 5; done; sleep 100"));
    lab.seconds(30);
    let crossed: Vec<u64> = lab
        .events
        .iter()
        .filter_map(|event| match event {
            MachineEvent::ThresholdCrossed { group: Cgroup::Pods, threshold, at }
                if *threshold == 60 * MIB =>
            {
                Some(at.since_start().as_secs())
            }
            _ => None,
        })
        .collect();
    // Each file is removed after 5 s.
    assert_eq!(crossed, [0, 5, 10, 15]);
    // A threshold of the same key replaces it.
    lab.machine.set_memory_threshold("a", Cgroup::Pods, 1 << 40);
    lab.start("d", sh("p", "dd if=/dev/zero of=/dev/shm/g bs=1M count=60; sleep 100"));
    let before = lab.events.len();
    lab.seconds(5);
    assert_eq!(lab.events.len(), before);
}

#[test]
fn memory_limit_reclaims_page_cache_first() {
    let mut lab = Lab::new();
    let mut writer = sh("p", "dd if=/dev/zero of=/f bs=1M count=500; echo $?; sleep 100");
    writer.memory_limit = Some(50 * MIB);
    lab.start("c", writer);
    lab.seconds(5);
    assert_eq!(lab.log("c").last().unwrap(), "0");
    assert!(lab.memory("c").usage <= 50 * MIB);
    assert!(lab.killed().is_empty());
    assert_eq!(lab.machine.layer("c").bytes >> 20, 500);
}

#[test]
fn cpu_time_is_counted() {
    let mut lab = Lab::script("exec /agnhost stress --cpus 2");
    lab.seconds(10);
    let used = lab.machine.cpu(&Cgroup::Container("c".to_owned()));
    assert!(used > Duration::from_secs(17) && used <= Duration::from_secs(20), "{used:?}");
    assert!(lab.machine.cpu(&Cgroup::Root) > used);
}
