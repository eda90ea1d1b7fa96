//! The stress image built by the command.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        files.insert(entry.path().unwrap().display().to_string(), bytes);
    }
    files
}

/// Returns whether a program needs a dynamic loader: it has a program header of type PT_INTERP
/// (elf(5)). For 64-bit little-endian programs.
fn is_dynamic(program: &[u8]) -> bool {
    let number = |at: usize, len: usize| {
        program[at..at + len].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let (table, size, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    (0..count).any(|header| number(table + header * size, 4) == 3)
}

#[test]
fn the_image_is_one_static_program() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stress.tar");
    let output = Command::new(env!("CARGO_BIN_EXE_evictlab"))
        .args(["image", "build", "--output"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("stress.tar: localhost/evictlab/stress:1 for linux/"), "{text}");

    let archive = files(&fs::read(&file).unwrap());
    let list: Value = serde_json::from_slice(&archive["manifest.json"]).unwrap();
    let layer = files(&archive[list[0]["Layers"][0].as_str().unwrap()]);
    assert_eq!(layer.keys().collect::<Vec<_>>(), ["stress"]);
    let program = &layer["stress"];
    assert!(!is_dynamic(program));
    assert!(is_dynamic(&fs::read(env!("CARGO_BIN_EXE_evictlab")).unwrap()), "dynamic programs are detected");
    let path = folder.path().join("stress");
    fs::write(&path, program).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    let help = Command::new(path).arg("help").output().unwrap();
    assert!(String::from_utf8(help.stdout).unwrap().starts_with("Consume a resource of the node"));
}
