//! Soak of a kept kind cluster: runs of the backends kind and existing, signals, and collections.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::laboratory::Laboratory;
use crate::plan::{Random, signal_name};
use crate::strangers::Strangers;

/// Runs, interrupts and kills runs until the time is over.
pub fn soak(seed: u64, length: Duration) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let laboratory = Laboratory::new();
    laboratory.create();
    let settings = laboratory.settings();
    let kubeconfig = laboratory.evictlab(&["cluster", "kubeconfig", &laboratory.cluster]);
    let control_plane = format!("{}-control-plane", laboratory.cluster);
    // An image that is in every node image; the tag depends on the version.
    let container = json!({"name": "c", "image": pause_image(&control_plane), "imagePullPolicy": "Never"});
    let strangers =
        runtime.block_on(Strangers::create(kubeconfig.trim(), &[control_plane.as_str()], &container));
    let (mut interrupts, mut kills, mut completed) = (0, 0, 0);
    let span = duration_of_a_run(&laboratory);
    println!("a run takes {:.0} s", span.as_secs_f64());
    let began = Instant::now();
    let mut number = 0;
    while began.elapsed() < length {
        number += 1;
        let mut random = Random::new(seed, number);
        let (signal, moment, collects) = (random.below(5), random.below(1000), random.below(1000));
        let [moment, collects] =
            [moment, collects].map(|per_mille| span.as_secs_f64() * per_mille as f64 / 1000.0);
        let signal = match signal {
            0 => None,
            1 | 2 => Some(Signal::KILL),
            3 => Some(Signal::INT),
            _ => Some(Signal::TERM),
        };
        let name = signal.map_or("no signal", signal_name);
        println!("round {number}: {name} after {moment:.1} s, gc after {collects:.1} s");
        let mut run = laboratory.run_on_kept();
        if collects < moment {
            run.wait_until(collects);
            laboratory.gc();
        }
        run.wait_until(moment);
        if let Some(signal) = signal {
            run.send(signal);
        }
        let status = run.wait();
        match (signal, status.code()) {
            (Some(Signal::KILL), None) => kills += 1,
            (Some(_), Some(130)) => interrupts += 1,
            // A signal before its handler is installed.
            (Some(_), None) if !run.has_begun() => interrupts += 1,
            (_, Some(0)) => completed += 1,
            _ => panic!("{name} at {moment:.1} s: {status}\n{}", run.output()),
        }
        runtime.block_on(strangers.assert_untouched());
    }
    laboratory.gc();
    // The API server removes deleted namespaces within seconds.
    let mut left = runtime.block_on(strangers.leftovers());
    for _ in 0..60 {
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_secs(1));
        left = runtime.block_on(strangers.leftovers());
    }
    assert!(left.is_empty(), "left in the cluster after gc: {left:?}");
    assert_eq!(laboratory.settings(), settings, "the kubelet is configured as before");
    let untouched = runtime.block_on(strangers.assert_untouched());
    laboratory.evictlab(&["cluster", "delete", &laboratory.cluster]);
    laboratory.assert_nothing_is_left();
    println!("{number} rounds: {completed} completed, {interrupts} interrupts, {kills} kills");
    println!("0 objects left, {untouched} objects of others untouched");
}

/// Returns the duration of a run, within which the signals are sent.
fn duration_of_a_run(laboratory: &Laboratory) -> Duration {
    let began = Instant::now();
    let mut run = laboratory.run_on_kept();
    assert!(run.wait().success(), "{}", run.output());
    began.elapsed()
}

/// The image of pause containers in a node.
fn pause_image(node: &str) -> String {
    let list = ["exec", node, "ctr", "--namespace", "k8s.io", "images", "list", "--quiet"];
    let listed = std::process::Command::new("docker").args(list).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed
        .lines()
        .find(|name| name.contains("/pause:"))
        .unwrap_or_else(|| panic!("no pause image: {listed}"))
        .to_owned()
}
