//! Writable layers, volumes, logs and a full disk.

use crate::machine::{DiskUse, Imagefs};
use evictlab_rules::threshold::FsLayout;

use super::lab::{Lab, MIB, mount, options, sh};

#[test]
fn writing_to_a_full_disk_fails() {
    let mut options = options();
    options.disk = options.disk_used + 100 * MIB;
    let mut lab = Lab::of(&options);
    lab.start("c", sh("p", "dd if=/dev/zero of=/f bs=1M count=500; echo status $?; sleep 1000"));
    lab.seconds(5);
    let log = lab.log("c");
    assert_eq!(log[0], "dd: error writing '/f': No space left on device");
    assert_eq!(log.last().unwrap(), "status 1");
    let files = lab.machine.filesystem();
    assert!(files.used.bytes <= files.capacity.bytes);
    assert!(files.capacity.bytes - files.used.bytes < 4096 * 8);
}

#[test]
fn creating_files_fails_without_inodes() {
    let mut options = options();
    options.inodes = options.inodes_used + 500;
    let mut lab = Lab::of(&options);
    lab.start("c", sh("p", "i=0; while mkdir /tmp/f$i; do i=$((i+1)); done; echo $i; sleep 1000"));
    lab.seconds(10);
    assert_eq!(lab.log("c")[0].split(": ").last().unwrap(), "No space left on device");
    assert_eq!(lab.machine.filesystem().used.inodes, options.inodes);
}

#[test]
fn volumes_outlive_containers() {
    let mut lab = Lab::new();
    let mut writer = sh("p", "echo hello > /data/f; sleep 1");
    writer.mounts = vec![mount("/data", "shared", false)];
    let mut reader = sh("p", "sleep 2; cat /in/f; sleep 100");
    reader.mounts = vec![mount("/in", "shared", false)];
    lab.start("w", writer);
    lab.start("r", reader);
    lab.seconds(4);
    lab.machine.remove("w");
    assert_eq!(lab.log("r"), ["hello"]);
    let volume = lab.machine.volume("p", "shared");
    assert_eq!((volume.bytes, volume.inodes), (8192, 2));
}

#[test]
fn logs_take_disk_space() {
    let mut lab = Lab::script("while true; do echo 0123456789012345678901234567890123456789; done");
    lab.seconds(5);
    let lines = lab.log("c").len();
    assert!((10_000..=20_000).contains(&lines), "{lines} lines are kept");
    let size = lab.machine.log_use("c").bytes;
    // About ten thousand lines a second, of 40 bytes and 41 of containerd.
    assert!((5 * MIB..60 * MIB).contains(&size), "{size}");
    assert!(lab.machine.filesystem().used.bytes > options().disk_used + size);

    let mut lab = Lab::script("dd if=/dev/zero bs=1M count=40; sleep 100");
    lab.seconds(5);
    let size = lab.machine.log_use("c").bytes;
    assert!((40 * MIB..41 * MIB).contains(&size), "{size}");
}

#[test]
fn rotation_keeps_a_number_of_log_files() {
    let mut lab = Lab::script("while true; do dd if=/dev/zero bs=1M count=2; sleep 1; done");
    lab.seconds(5);
    let written = lab.machine.log_use("c");
    assert_eq!(written.inodes, 1);
    lab.machine.rotate_log("c", written.bytes + MIB, 3);
    assert_eq!(lab.machine.log_use("c"), written, "the file is smaller than its maximum");
    for files in [2, 3, 3] {
        let before = lab.machine.log_use("c").bytes;
        lab.machine.rotate_log("c", 4 * MIB, 3);
        let usage = lab.machine.log_use("c");
        assert_eq!((usage.inodes, lab.machine.current_log_use("c").bytes), (files, 0));
        assert!(usage.bytes <= before, "a rotation writes nothing");
        assert!(usage.bytes < 27 * MIB, "{}", usage.bytes);
        lab.seconds(5);
    }
    assert!(lab.machine.filesystem().used.bytes >= options().disk_used + lab.machine.log_use("c").bytes);
}

#[test]
fn rotated_text_is_compressed_at_the_next_rotation() {
    let mut lab = Lab::script("while true; do echo 0123456789012345678901234567890123456789; done");
    lab.seconds(5);
    let size = lab.machine.log_use("c").bytes;
    lab.machine.rotate_log("c", 1, 5);
    assert_eq!(lab.machine.log_use("c").bytes, size);
    lab.machine.rotate_log("c", 0, 5);
    let usage = lab.machine.log_use("c");
    assert_eq!(usage.inodes, 3);
    assert!((size / 25..size / 15).contains(&usage.bytes), "{} of {size}", usage.bytes);
    assert!(lab.log("c").is_empty(), "kubectl logs reads the current file");
}

#[test]
fn fallocate_takes_blocks() {
    let mut lab = Lab::script("fallocate -l 100M /a; sleep 100");
    lab.seconds(5);
    let layer = lab.machine.layer("c");
    assert_eq!((layer.bytes >> 20, layer.inodes), (100, 6 + 1));
    assert!(lab.memory("c").usage < 3 * MIB);
}

#[test]
fn layers_have_the_file_system_of_images() {
    let mut lab = Lab::new();
    let mut writer = sh(
        "p",
        "dd if=/dev/zero of=/f bs=1M count=30; dd if=/dev/zero of=/data/f bs=1M count=50; sleep 60; dd if=/dev/zero of=/g bs=1M count=500",
    );
    writer.mounts = vec![mount("/data", "data", false)];
    lab.start("c", writer);
    lab.seconds(5);
    let whole = lab.machine.filesystem().used;
    assert_eq!((lab.machine.images_filesystem(), lab.machine.fs_layout()), (None, FsLayout::Single));

    let images = DiskUse { bytes: 40 * MIB, inodes: 9 };
    let imagefs = Imagefs { bytes: 160 * MIB, inodes: None, has_layers: true };
    lab.machine.set_imagefs(Some(imagefs), images);
    assert_eq!(lab.machine.fs_layout(), FsLayout::DedicatedImagefs);
    let layer = lab.machine.layer("c");
    let files = lab.machine.images_filesystem().unwrap();
    assert_eq!((files.used, files.capacity.bytes, files.capacity.inodes), (layer, 160 * MIB, 10_240));
    assert_eq!(whole.bytes - lab.machine.filesystem().used.bytes, layer.bytes, "volumes stay");

    lab.seconds(60);
    let log = lab.log("c");
    assert!(log.iter().any(|line| line == "dd: error writing '/g': No space left on device"), "{log:?}");
    let full = lab.machine.images_filesystem().unwrap().used.bytes;
    assert!((119 * MIB..=120 * MIB).contains(&full), "images take 40 MiB of 160: {full}");
    let nodefs = lab.machine.filesystem().used.bytes;
    lab.machine.set_imagefs(None, DiskUse::default());
    assert_eq!(lab.machine.filesystem().used.bytes, nodefs + full);

    // Only images have a file system of their own.
    lab.machine.set_imagefs(Some(Imagefs { has_layers: false, ..imagefs }), images);
    assert_eq!(lab.machine.fs_layout(), FsLayout::SplitImagefs);
    assert_eq!(lab.machine.images_filesystem().unwrap().used, DiskUse::default());
    assert_eq!(lab.machine.filesystem().used.bytes, nodefs + full);
    lab.machine.remove("c");
    assert!(nodefs - lab.machine.filesystem().used.bytes < 60 * MIB, "the volume remains");
}
