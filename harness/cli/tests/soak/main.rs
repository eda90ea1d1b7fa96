//! Soak: random cases, faults, interrupts, kills and collections of several processes at once, on a
//! served embedded cluster and on a kind cluster. At the end nothing is left, no object of others
//! has changed, and no verdict was wrong.
//!
//! `SOAK_MINUTES=60 cargo test -p evictlab --test soak -- served` soaks the embedded cluster for an
//! hour, `-- kind` one on kind, where Docker, kind and a node image are available. `SOAK_SEED`
//! repeats the actions of an earlier soak, whose seed is printed first.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

#[path = "../test_cluster/mod.rs"]
#[expect(dead_code, reason = "the test `interrupts` uses the rest")]
mod test_cluster;

mod kind;
mod other_objects;
mod outcome;
mod plan;
mod served;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use other_objects::OtherObjects;
use outcome::{Baseline, Counts};
use serde_json::json;
use served::{Place, Served};
use test_cluster::environment;

fn main() -> std::process::ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let trials = vec![
        Trial::test("the_same_seed_gives_the_same_actions", || {
            (0..20).for_each(plan::assert_replays);
            Ok(())
        }),
        soak("served", || Ok(()), soak_served),
        soak("kind", || test_cluster::kubelet().map(drop), kind::soak),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A trial that runs for `SOAK_MINUTES`.
fn soak(name: &str, missing: fn() -> Result<(), String>, run: fn(u64, Duration)) -> Trial {
    Trial::ignorable_test(name, move || {
        let Some(minutes) = environment("SOAK_MINUTES") else {
            return Ok::<_, Failed>(Completion::ignored_with("SOAK_MINUTES sets its duration"));
        };
        if let Err(why) = missing() {
            return Ok(Completion::ignored_with(why));
        }
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let seed = environment("SOAK_SEED").unwrap_or_else(now);
        println!("SOAK_SEED={seed}");
        run(seed, Duration::from_secs(60 * minutes));
        Ok(Completion::Completed)
    })
}

fn soak_served(seed: u64, length: Duration) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let place = Place::new();
    let faults = plan::server_faults(seed, length);
    let served = Served::start(&place, seed, &faults);
    let nodes = ["v1-32-worker", "v1-31-worker"];
    let container = json!({"name": "c", "image": "agnhost:2.52", "command": ["sleep", "infinity"]});
    let other_objects = runtime.block_on(OtherObjects::create(&served.kubeconfig, &nodes, &container));
    let began = Instant::now();
    let (mut counts, baseline) = (Counts::default(), Baseline::read());
    let mut number = 0;
    while began.elapsed() < length {
        number += 1;
        let actions = plan::round(seed, number);
        let ended: Vec<_> = std::thread::scope(|scope| {
            let perform = |(index, action)| {
                println!("round {number}, {action}");
                let name = format!("{number}-{index}");
                let (place, kubeconfig) = (&place, &served.kubeconfig);
                scope.spawn(move || served::perform(place, kubeconfig, action, &name))
            };
            let running: Vec<_> = actions.iter().enumerate().map(perform).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let faults = outcome::timed(&faults, served.started);
        for (action, ended) in actions.iter().zip(&ended) {
            counts.add(action, ended, &baseline, &faults);
        }
        runtime.block_on(other_objects.assert_untouched());
    }
    // Faults of the cluster end before.
    std::thread::sleep(Duration::from_secs(30));
    collect(&place, &served.kubeconfig);
    let left = runtime.block_on(other_objects.leftovers());
    assert!(left.is_empty(), "left in the cluster after gc: {left:?}");
    let untouched = runtime.block_on(other_objects.assert_untouched());
    served.stop();
    assert!(place.leftovers().is_empty(), "left on this machine: {:?}", place.leftovers());
    counts.print_unexplained();
    println!("{number} rounds in {:.0} s: {counts}", began.elapsed().as_secs_f64());
    println!("0 objects left, {untouched} objects of others untouched");
}

/// Collects the leftovers, for a minute: the Lease of a killed run counts for some time.
fn collect(place: &Place, kubeconfig: &str) {
    let gc = || {
        let mut gc = place.command(env!("CARGO_BIN_EXE_evictlab"));
        let output = gc.args(["gc", "--backend", "existing", "--kubeconfig", kubeconfig]).output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        print!("{text}");
        (output.status.success() && !text.contains("left alone"), text)
    };
    let began = Instant::now();
    loop {
        let (is_done, text) = gc();
        if is_done {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{text}");
        std::thread::sleep(Duration::from_secs(2));
    }
}
