//! agnhost's subcommands.

use std::time::Duration;

use crate::lab::{Lab, MIB, spec};

fn agnhost(arguments: &[&str]) -> Lab {
    let mut lab = Lab::new();
    let mut container = spec("pod", &[]);
    container.args = arguments.iter().map(|word| (*word).to_owned()).collect();
    lab.start("c", container);
    lab
}

#[test]
fn stress_allocates_whole_steps_only() {
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
    assert!(lab.machine.log("c").iter().all(|line| line.stderr));
    assert_eq!(lab.exit("c"), None);
}

#[test]
fn stress_in_many_small_steps_takes_its_time() {
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
fn stress_complains_as_go_does() {
    for (arguments, code, said) in [
        (["stress", "--mem-total", "lots"], 2, "panic: cannot parse 'lots'"),
        (["stress", "--mem-alloc-sleep", "5"], 1, "invalid argument \"5\""),
        (["stress", "--memory", "5"], 1, "unknown flag: --memory"),
        (["stress", "-mem-total", "5"], 1, "unknown shorthand flag: 'm' in -mem-total"),
        (["stress", "--mem-alloc-size", "--"], 2, "panic: cannot parse '--'"),
    ] {
        let mut lab = agnhost(&arguments);
        lab.seconds(1);
        assert_eq!(lab.code("c"), Some(code), "{arguments:?}");
        assert!(lab.log("c")[0].contains(said), "{:?}", lab.log("c"));
    }
}

#[test]
fn stress_without_a_step_never_ends_and_never_grows() {
    let mut lab = agnhost(&["stress", "--mem-alloc-size", "0", "--mem-total", "100Mi"]);
    lab.seconds(1);
    let before = lab.memory("c");
    lab.seconds(100);
    assert_eq!(lab.memory("c"), before);
    assert_eq!(lab.log("c").len(), 1);
}

#[test]
fn signals_end_programs_as_they_handle_them() {
    for (arguments, code) in [
        (vec!["stress"], 2),
        (vec!["pause"], 2),
        (vec![], 2),
        (vec!["netexec"], 0),
        (vec!["serve-hostname"], 2),
    ] {
        let mut lab = agnhost(&arguments);
        lab.seconds(1);
        lab.term("c");
        lab.seconds(1);
        assert_eq!(lab.code("c"), Some(code), "{arguments:?}");
    }
    let mut lab = agnhost(&["pause"]);
    lab.seconds(1);
    lab.term("c");
    lab.seconds(1);
    assert_eq!(lab.log("c"), ["Paused", "Signals registered", "exiting because of signal \"terminated\""]);
}

#[test]
fn the_others_do_what_is_known_of_them() {
    let mut lab = agnhost(&["entrypoint-tester", "a", "b"]);
    lab.seconds(1);
    assert_eq!((lab.code("c"), lab.log("c")), (Some(0), vec!["[/agnhost entrypoint-tester a b]".to_owned()]));

    let mut lab = agnhost(&["logs-generator", "--log-lines-total", "1000", "--run-duration", "10s"]);
    lab.seconds(5);
    let half = lab.log("c").len();
    assert!((490..=510).contains(&half), "{half} lines");
    lab.seconds(6);
    assert_eq!((lab.log("c").len(), lab.code("c")), (1000, Some(0)));

    let mut lab = agnhost(&["nonsense"]);
    lab.seconds(1);
    assert_eq!(lab.code("c"), Some(1));

    let mut lab = agnhost(&["webhook"]);
    lab.seconds(1);
    assert_eq!(lab.code("c"), None);
    assert!(lab.log("c")[0].starts_with("evictlab: this model does not run"), "{:?}", lab.log("c"));
}
