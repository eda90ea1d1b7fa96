//! Interrupts and kills at random moments of real runs on kind, and what is left: nothing, or what `evictlab gc` finds.
//!
//! `EVICTLAB_INTERRUPTS=20` interrupts so many runs (one by default) and kills a third as many; `EVICTLAB_INTERRUPTS_SEED` repeats the
//! moments of an earlier time; a machine on which a run takes longer than 45 s needs `EVICTLAB_INTERRUPTS_SPAN`, in seconds.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

mod laboratory;

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use laboratory::{Laboratory, Run, environment, kubelet};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use rustix::process::Signal;

/// Seconds within which a run on a quick machine begins and ends.
const SPAN: u64 = 45;
/// Seconds within which a single moment is drawn, so that the gate stays short: a cluster is being made.
const SHORT_SPAN: u64 = 15;

fn main() -> std::process::ExitCode {
    let mut arguments = Arguments::from_args();
    // Clusters are made one after the other: a machine has room for one.
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
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// What the moments are drawn from.
fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    *SEED.get_or_init(|| environment("EVICTLAB_INTERRUPTS_SEED").unwrap_or_else(now))
}

/// Random moments, in seconds, the same for the same seed (SplitMix64).
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
    let usual = if asked() > 1 { SPAN } else { SHORT_SPAN };
    let span = environment("EVICTLAB_INTERRUPTS_SPAN").unwrap_or(usual) as f64;
    (0..count).map(|_| next() as f64 / (1u64 << 53) as f64 * span).collect()
}

fn asked() -> usize {
    environment("EVICTLAB_INTERRUPTS").map_or(1, |count| count as usize)
}

/// What was happening, what came of it; one line a moment.
fn tell(signal: &str, moment: f64, run: &Run, end: &str) {
    println!("{signal} at {moment:5.2} s | {} | {end}", run.last_step());
}

/// The end of a run that was interrupted once: status 130, reports, and nothing of it is there any more.
fn interrupted(laboratory: &Laboratory, signal: Signal, moment: f64, run: &mut Run) {
    // What lives is not collected. At the first moments there is no time to ask.
    if moment > 1.0 {
        let collected = laboratory.gc();
        assert!(collected.ends_with("0 clusters removed\n"), "{collected}");
    }
    let (moment, over) = (run.seconds(), run.is_over());
    run.send(signal);
    // Its last moment may lie between the look and the signal.
    std::thread::sleep(Duration::from_millis(100));
    let just_over = !over && run.is_over();
    let status = run.wait();
    tell(signal_name(signal), moment, run, &format!("{status}; {:?}", laboratory.left()));
    match (run.has_begun(), over) {
        (_, true) => assert_eq!(status.code(), Some(0), "it was over: {}", run.said()),
        (true, _) if just_over && status.code() == Some(0) => {}
        (true, _) => {
            assert_eq!(status.code(), Some(130), "{}", run.said());
            run.assert_reported("ABORTED");
        }
        // Before there was anything to report; at the very first not even a handler was there.
        (false, _) => assert!(status.code().is_none_or(|code| code == 130), "{status}: {}", run.said()),
    }
    laboratory.assert_nothing_is_left();
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
    for moment in moments(asked(), 1) {
        let laboratory = Laboratory::new();
        let mut run = laboratory.run();
        run.wait_until(moment);
        interrupted(&laboratory, Signal::INT, moment, &mut run);
    }
}

fn a_termination_and_a_hangup_are_interrupts() {
    for signal in [Signal::TERM, Signal::HUP] {
        let laboratory = Laboratory::new();
        let mut run = laboratory.run();
        run.wait_for("Preparing nodes");
        interrupted(&laboratory, signal, run.seconds(), &mut run);
    }
}

fn a_second_interrupt() {
    let laboratory = Laboratory::new();
    let mut run = laboratory.run();
    run.wait_for("Writing configuration");
    run.send(Signal::INT);
    std::thread::sleep(Duration::from_millis(100));
    run.send(Signal::INT);
    let status = run.wait();
    tell("SIGINT twice", run.seconds(), &run, &status.to_string());
    assert_eq!(status.code(), Some(130), "{}", run.said());
    run.assert_reported("ABORTED");
    laboratory.gc();
    laboratory.assert_nothing_is_left();
}

fn a_kill_leaves_what_gc_finds() {
    let stranger = laboratory::Stranger::new();
    for moment in moments(asked().div_ceil(3), 2) {
        let laboratory = Laboratory::new();
        let mut run = laboratory.run();
        run.wait_until(moment);
        run.send(Signal::KILL);
        run.wait();
        let left = laboratory.left();
        let collected = laboratory.gc_with(&[&stranger.cluster]);
        tell(
            "SIGKILL",
            moment,
            &run,
            &format!("left {left:?}; gc: {}", collected.trim().replace('\n', ", ")),
        );
        laboratory.assert_nothing_is_left();
        assert!(stranger.is_there(), "a stranger's cluster was touched");
    }
    let listed = Laboratory::new().evictlab(&["gc", "--dry-run"]);
    assert!(!listed.contains(&stranger.cluster), "{listed}");
}

/// An interrupted run puts a kept cluster's nodes back by itself; for a killed one `gc` does.
fn a_kept_cluster_is_put_in_order() {
    let laboratory = Laboratory::new();
    laboratory.create();
    let own = laboratory.settings();
    let rows =
        [(Signal::INT, "preparing the nodes"), (Signal::KILL, "Mi to go"), (Signal::INT, "in steps of")];
    let rows = if asked() > 1 { &rows[..] } else { &rows[..2] };
    for &(signal, step) in rows {
        let mut run = laboratory.run_on_kept();
        run.wait_for(step);
        assert!(laboratory.gc().contains("its owner runs"));
        run.send(signal);
        let status = run.wait();
        tell(signal_name(signal), run.seconds(), &run, &format!("{status}; {:?}", laboratory.namespaces()));
        if signal == Signal::INT {
            assert_eq!(status.code(), Some(130), "{}", run.said());
            run.assert_reported("ABORTED");
        } else {
            assert_ne!(laboratory.settings(), own, "the kill came too late to leave anything");
            let collected = laboratory.gc();
            assert!(collected.contains("nothing of a dead run is left in it"), "{collected}");
        }
        assert_eq!(laboratory.settings(), own);
        laboratory.assert_no_namespaces();
    }
    laboratory.evictlab(&["cluster", "delete", &laboratory.cluster]);
    laboratory.assert_nothing_is_left();
}
