//! Interrupts and kills of real runs on kind at random times, and the resources that remain: none,
//! or those that `evictlab gc` finds.
//!
//! `EVICTLAB_INTERRUPTS=20` interrupts 20 runs (default: 1) and kills a third as many;
//! `EVICTLAB_INTERRUPTS_SEED` repeats the times of a previous test; `EVICTLAB_INTERRUPTS_SPAN` is
//! the duration of a run in seconds, for machines that need more than 45 s.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

mod test_cluster;

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use rustix::process::Signal;
use test_cluster::{Run, TestCluster, environment, kubelet};

/// Duration of a run on a fast machine, in seconds.
const SPAN: u64 = 45;
/// Range of a single interrupt in seconds, short for CI: during the creation of the cluster.
const SHORT_SPAN: u64 = 15;

fn main() -> std::process::ExitCode {
    let mut arguments = Arguments::from_args();
    // One cluster at a time: the machine may not have the memory for two.
    arguments.test_threads = Some(1);
    let trial = |name: &str, work: fn()| {
        Trial::ignorable_test(name, move || match kubelet() {
            Ok(_) => {
                work();
                Ok::<_, Failed>(Completion::Completed)
            }
            Err(why) => Ok(Completion::ignored_with(why)),
        })
    };
    let trials = vec![
        trial("an_interrupt_leaves_nothing", an_interrupt_leaves_nothing),
        trial("a_termination_and_a_hangup_are_interrupts", a_termination_and_a_hangup_are_interrupts),
        trial("a_second_interrupt_writes_reports_and_gc_does_the_rest", a_second_interrupt),
        trial("a_kill_leaves_what_gc_finds", a_kill_leaves_what_gc_finds),
        trial("a_kept_cluster_is_put_in_order", a_kept_cluster_is_put_in_order),
        trial("a_heartbeat_shows_a_live_run_to_other_containers", a_heartbeat_shows_a_live_run),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Seed of the times.
fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    *SEED.get_or_init(|| environment("EVICTLAB_INTERRUPTS_SEED").unwrap_or_else(now))
}

/// Returns random times in seconds, reproducible by seed (SplitMix64).
fn moments(count: usize, salt: u64) -> Vec<f64> {
    let seed = seed();
    println!("moments by EVICTLAB_INTERRUPTS_SEED={seed}");
    let mut state = seed.wrapping_add(salt << 32);
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) >> 11
    };
    let usual = if requested_interrupts() > 1 { SPAN } else { SHORT_SPAN };
    let span = environment("EVICTLAB_INTERRUPTS_SPAN").unwrap_or(usual) as f64;
    (0..count).map(|_| next() as f64 / (1u64 << 53) as f64 * span).collect()
}

fn requested_interrupts() -> usize {
    environment("EVICTLAB_INTERRUPTS").map_or(1, |count| count as usize)
}

/// Prints the last step of a run and its end in one line.
fn log_interrupt(signal: &str, moment: f64, run: &Run, end: &str) {
    println!("{signal} at {moment:5.2} s | {} | {end}", run.last_step());
}

/// Interrupts a run: exit status 130, complete reports, and no remaining resources.
fn interrupted(test_cluster: &TestCluster, signal: Signal, moment: f64, run: &mut Run) {
    // `gc` does not remove live clusters. Very early interrupts leave no time for the check.
    if moment > 1.0 {
        let collected = test_cluster.gc();
        assert!(collected.ends_with("0 clusters removed\n"), "{collected}");
    }
    let (moment, over) = (run.seconds(), run.is_over());
    run.send(signal);
    // The run may end between the check and the signal.
    std::thread::sleep(Duration::from_millis(100));
    let just_over = !over && run.is_over();
    let status = run.wait();
    log_interrupt(signal_name(signal), moment, run, &format!("{status}; {:?}", test_cluster.left()));
    match (run.has_begun(), over) {
        (_, true) => assert_eq!(status.code(), Some(0), "it was over: {}", run.output()),
        (true, _) if just_over && status.code() == Some(0) => {}
        (true, _) => {
            assert_eq!(status.code(), Some(130), "{}", run.output());
            run.assert_reported("ABORTED");
        }
        // Interrupted before the reports started; very early, before the signal handler was
        // installed.
        (false, _) => assert!(status.code().is_none_or(|code| code == 130), "{status}: {}", run.output()),
    }
    test_cluster.assert_nothing_is_left();
}

fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::INT => "SIGINT",
        Signal::TERM => "SIGTERM",
        Signal::HUP => "SIGHUP",
        _ => "SIGKILL",
    }
}

fn an_interrupt_leaves_nothing() {
    for moment in moments(requested_interrupts(), 1) {
        let test_cluster = TestCluster::new();
        let mut run = test_cluster.run();
        run.wait_until(moment);
        interrupted(&test_cluster, Signal::INT, moment, &mut run);
    }
}

fn a_termination_and_a_hangup_are_interrupts() {
    for signal in [Signal::TERM, Signal::HUP] {
        let test_cluster = TestCluster::new();
        let mut run = test_cluster.run();
        run.wait_for("Preparing nodes");
        interrupted(&test_cluster, signal, run.seconds(), &mut run);
    }
}

fn a_second_interrupt() {
    let test_cluster = TestCluster::new();
    let mut run = test_cluster.run();
    run.wait_for("Writing configuration");
    run.send(Signal::INT);
    std::thread::sleep(Duration::from_millis(100));
    run.send(Signal::INT);
    let status = run.wait();
    log_interrupt("SIGINT twice", run.seconds(), &run, &status.to_string());
    assert_eq!(status.code(), Some(130), "{}", run.output());
    run.assert_reported("ABORTED");
    println!("gc: {}", test_cluster.gc().trim());
    test_cluster.assert_nothing_is_left();
}

fn a_kill_leaves_what_gc_finds() {
    let foreign = test_cluster::ForeignCluster::new();
    for moment in moments(requested_interrupts().div_ceil(3), 2) {
        let test_cluster = TestCluster::new();
        let mut run = test_cluster.run();
        run.wait_until(moment);
        run.send(Signal::KILL);
        run.wait();
        let left = test_cluster.left();
        let collected = test_cluster.gc_with(&[&foreign.cluster]);
        log_interrupt(
            "SIGKILL",
            moment,
            &run,
            &format!("left {left:?}; gc: {}", collected.trim().replace('\n', ", ")),
        );
        test_cluster.assert_nothing_is_left();
        assert!(foreign.is_there(), "a foreign cluster was changed");
    }
    let listed = TestCluster::new().evictlab(&["gc", "--dry-run"]);
    assert!(!listed.contains(&foreign.cluster), "{listed}");
}

/// An interrupted run restores the nodes of a kept cluster; after a kill, `gc` restores them. A
/// start of which only the control plane is done is completed by the next.
fn a_kept_cluster_is_put_in_order() {
    let test_cluster = TestCluster::new();
    test_cluster.create();
    let own = test_cluster.settings();
    let rows =
        [(Signal::INT, "preparing the nodes"), (Signal::KILL, "Mi to go"), (Signal::INT, "in steps of")];
    let rows = if requested_interrupts() > 1 { &rows[..] } else { &rows[..2] };
    for &(signal, step) in rows {
        let mut run = test_cluster.run_on_kept();
        run.wait_for(step);
        assert!(test_cluster.gc().contains("its owner is running"));
        run.send(signal);
        let status = run.wait();
        log_interrupt(
            signal_name(signal),
            run.seconds(),
            &run,
            &format!("{status}; {:?}", test_cluster.namespaces()),
        );
        if signal == Signal::INT {
            assert_eq!(status.code(), Some(130), "{}", run.output());
            run.assert_reported("ABORTED");
        } else {
            assert_ne!(test_cluster.settings(), own, "the kill came too late to leave anything");
            let collected = test_cluster.gc();
            assert!(collected.contains("removed leftovers of dead runs from it"), "{collected}");
        }
        assert_eq!(test_cluster.settings(), own);
        test_cluster.assert_no_namespaces();
    }
    let before = test_cluster.disk_of_the_worker();
    test_cluster.evictlab(&["cluster", "stop", &test_cluster.cluster]);
    test_cluster.start_the_control_plane();
    test_cluster.evictlab(&["cluster", "start", &test_cluster.cluster]);
    assert_eq!((test_cluster.settings(), test_cluster.disk_of_the_worker()), (own, before));
    let mut run = test_cluster.run_on_kept();
    assert!(run.wait().success(), "{}", run.output());
    test_cluster.evictlab(&["cluster", "delete", &test_cluster.cluster]);
    test_cluster.assert_nothing_is_left();
}

/// Another container cannot check the process of the run, only the heartbeat in the control plane.
fn a_heartbeat_shows_a_live_run() {
    let test_cluster = TestCluster::new();
    let mut run = test_cluster.run();
    run.wait_for("Mi to go");
    if let Some(collected) = test_cluster.gc_elsewhere() {
        assert!(collected.contains("left alone, its owner is running"), "{collected}");
    }
    assert!(run.runs(), "{}", run.output());
    run.send(Signal::KILL);
    run.wait();
    if let Some(collected) = test_cluster.gc_elsewhere() {
        assert!(collected.contains("left alone, its owner is running"), "for some minutes: {collected}");
    }
    assert!(test_cluster.gc().contains("removed"));
    test_cluster.assert_nothing_is_left();
}
