//! agnhost's subcommands.

use std::time::Duration;

use super::lab::{Lab, MIB, spec};
use crate::machine::types::OutputStream;

fn agnhost(arguments: &[&str]) -> Lab {
    let mut lab = Lab::new();
    let mut container = spec("pod", &[]);
    container.args = arguments.iter().map(|word| (*word).to_owned()).collect();
    lab.start("c", container);
    lab
}

#[test]
fn stress_allocates_whole_steps() {
    let mut lab =
        agnhost(&["stress", "--mem-alloc-size=100Mi", "--mem-alloc-sleep", "1s", "--mem-total", "250Mi"]);
    lab.pass(Duration::from_millis(20));
    let base = lab.memory("c").rss;
    lab.pass(Duration::from_millis(500));
    assert_eq!(lab.memory("c").rss - base, 100 * MIB);
    lab.seconds(1);
    assert_eq!(lab.memory("c").rss - base, 200 * MIB);
    lab.seconds(60);
    assert_eq!(lab.memory("c").rss - base, 200 * MIB);
    let log = lab.log("c");
    assert!(log[0].starts_with("I0101 00:00:00.001000       1 main.go:26] Allocating \"250Mi\" memory, in \"100Mi\" chunks, with a 1s sleep between allocations"), "{}", log[0]);
    assert!(log[1].ends_with("] Allocated \"250Mi\" memory"), "{}", log[1]);
    assert!(lab.machine.log("c").iter().all(|line| line.stream == OutputStream::Stderr));
    assert_eq!(lab.exit("c"), None);
}

#[test]
fn small_steps_take_their_pauses() {
    let mut lab =
        agnhost(&["stress", "--mem-alloc-size", "4Ki", "--mem-alloc-sleep", "1ms", "--mem-total", "400Mi"]);
    lab.pass(Duration::from_millis(20));
    let base = lab.memory("c").rss;
    lab.seconds(50);
    let half = (lab.memory("c").rss - base) / MIB;
    assert!((190..=200).contains(&half), "{half} MiB after 50 s");
    lab.seconds(60);
    assert_eq!(lab.memory("c").rss / MIB, (base + 400 * MIB) / MIB);
}

#[test]
fn stress_rejects_arguments_as_go_does() {
    for (arguments, code, message) in [
        (["stress", "--mem-total", "lots"], 2, "panic: cannot parse 'lots'"),
        (["stress", "--mem-alloc-sleep", "5"], 1, "invalid argument \"5\""),
        (["stress", "--memory", "5"], 1, "unknown flag: --memory"),
        (["stress", "-mem-total", "5"], 1, "unknown shorthand flag: 'm' in -mem-total"),
        (["stress", "--mem-alloc-size", "--"], 2, "panic: cannot parse '--'"),
    ] {
        let mut lab = agnhost(&arguments);
        lab.seconds(1);
        assert_eq!(lab.code("c"), Some(code), "{arguments:?}");
        assert!(lab.log("c")[0].contains(message), "{:?}", lab.log("c"));
    }
}

#[test]
fn steps_of_zero_bytes_never_end_and_never_grow() {
    let mut lab = agnhost(&["stress", "--mem-alloc-size", "0", "--mem-total", "100Mi"]);
    lab.seconds(1);
    let before = lab.memory("c");
    lab.seconds(100);
    assert_eq!(lab.memory("c"), before);
    assert_eq!(lab.log("c").len(), 1);
}

#[test]
fn sigterm_ends_stress_and_pause() {
    for arguments in [vec!["stress"], vec!["pause"], vec![]] {
        let mut lab = agnhost(&arguments);
        lab.seconds(1);
        lab.term("c");
        lab.seconds(1);
        assert_eq!(lab.code("c"), Some(2), "{arguments:?}");
    }
    let mut lab = agnhost(&["pause"]);
    lab.seconds(1);
    lab.term("c");
    lab.seconds(1);
    assert_eq!(lab.log("c"), ["Paused", "Signals registered", "exiting because of signal \"terminated\""]);
}

#[test]
fn other_subcommands_idle_and_report_that() {
    let mut lab = agnhost(&["netexec", "--http-port=80"]);
    lab.seconds(1);
    assert_eq!(lab.code("c"), None);
    let message =
        "evictlab: this model does not run \"/agnhost netexec --http-port=80\": the container idles";
    assert_eq!(lab.log("c"), [message]);
}
