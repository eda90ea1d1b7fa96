//! A disk that becomes full during a run.

use std::fs::{self, File};
use std::process::Command;

/// Runs `script` as a shell script in a mount namespace of its own, on a file system of 6 MiB.
/// `None` where the host does not allow that.
pub(crate) fn on_a_small_disk(script: &str) -> Option<(Option<i32>, String, String)> {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("mount -t tmpfs -o size=6m tmpfs {0} && cd {0} && {script}", dir.path().display());
    let unshare = ["--user", "--map-root-user", "--mount"];
    let mount = ["mount", "-t", "tmpfs", "tmpfs"];
    let allowed = Command::new("unshare").args(unshare).args(mount).arg(dir.path()).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let output = Command::new("unshare").args(unshare).args(["sh", "-c", &script]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some((output.status.code(), text(output.stdout), text(output.stderr)))
}

#[test]
fn the_last_reports_are_complete_on_a_full_disk() {
    let evictlab = env!("CARGO_BIN_EXE_evictlab");
    let elsewhere = tempfile::tempdir().unwrap();
    let shown = elsewhere.path().join("shown").display().to_string();
    let script = format!(
        "{evictlab} run message limits --kubelet v1.31,v1.32 --output-dir run > {shown}; echo $?; \
         tail -c 14 run/artifacts/junit_evictlab.xml; cat run/finished.json; tail -n 1 run/artifacts/events.jsonl"
    );
    let Some((status, out, err)) = on_a_small_disk(&script) else {
        eprintln!("skipped: this host allows no mount namespace of one's own");
        return;
    };
    assert_eq!(status, Some(0), "{err}");
    // The disk was full, and the run says so.
    assert!(out.starts_with("4\n") && err.contains("No space left on device"), "{out}{err}");
    for part in ["</testsuites>", "\"result\": \"FAILURE\"", "\"type\":\"run-ended\""] {
        assert!(out.contains(part), "{part}: {out}");
    }
    // It said so once when the disk became full, and went on.
    let shown = fs::read_to_string(shown).unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    let notices: Vec<usize> =
        (0..lines.len()).filter(|nth| lines[*nth].contains("  not written  ")).collect();
    let &[notice] = &notices[..] else { panic!("{shown}") };
    assert!(
        lines[notice].contains("write run/artifacts/") && lines[notice].contains("No space left"),
        "{shown}"
    );
    assert!(lines[notice + 1].contains("help: free disk space"), "{shown}");
    assert!(lines[notice + 2..].iter().any(|line| line.contains("  passed  ")), "{shown}");
}

#[test]
fn a_full_standard_output_is_one_error() {
    let dir = tempfile::tempdir().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(dir.path()).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR").stdout(full);
    let output = command.args(["run", "requests-decide", "--kubelet", "v1.32"]).output().unwrap();
    let expected = "error: failed to write to standard output: No space left on device (os error 28)\n";
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(4), expected));
}
