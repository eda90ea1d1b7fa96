//! A run in tmux, whose window changes its size all the time: tmux wraps lines again at once and
//! tells the program a moment later. Skipped without tmux.

use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use crate::unread_output::wait_for;

/// Widths of the window, one after another.
const WIDTHS: [&str; 6] = ["60", "80", "45", "100", "50", "80"];

/// A tmux server of this test.
struct Tmux<'a> {
    folder: &'a Path,
}

impl Tmux<'_> {
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.current_dir(self.folder).env_remove("TMUX").env("NO_COLOR", "1");
        command.env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR");
        command.args(["-S", "socket", "-f", "/dev/null"]).args(arguments).output().unwrap()
    }

    /// All lines, those that scrolled off the top included.
    fn lines(&self) -> Vec<String> {
        let output = self.run(&["capture-pane", "-p", "-S", "-", "-t", "window"]);
        String::from_utf8(output.stdout).unwrap().lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[test]
fn nothing_but_results_remains_after_changes_of_the_width() {
    if Command::new("tmux").arg("-V").output().is_err() {
        eprintln!("skipped, no tmux: changes of the width of a terminal");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let tmux = Tmux { folder: folder.path() };
    let script =
        "seq 100; \"$0\" run message --kubelet all --output-dir results; echo \"ended: $?\"; exec sleep 600";
    let window = ["new-session", "-d", "-x", "80", "-y", "24", "-s", "window", "sh", "-c"];
    let output = tmux.run(&[&window[..], &[script, env!("CARGO_BIN_EXE_evictlab")]].concat());
    assert!(output.status.success(), "{output:?}");
    let mut widths = WIDTHS.iter().cycle();
    wait_for("the run ends", || {
        tmux.run(&["resize-window", "-t", "window", "-x", widths.next().unwrap()]);
        thread::sleep(Duration::from_millis(330));
        tmux.lines().iter().any(|line| line.starts_with("ended: "))
    });
    let lines = tmux.lines();
    assert!(lines.iter().any(|line| line == "ended: 0"), "{lines:#?}");
    let start = lines.iter().position(|line| line == "100").unwrap();
    let numbers: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
    assert_eq!(lines[..=start], numbers, "rows above were erased");
    let of_region = ["━", "─", "running", "observe", "recover", "configure"];
    let left: Vec<_> = lines.iter().filter(|row| of_region.iter().any(|part| row.contains(part))).collect();
    assert!(left.is_empty(), "{left:#?} of {lines:#?}");
}
