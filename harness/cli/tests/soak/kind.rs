//! Soak of a kept kind cluster: runs of the backend kind on its worker, guests on its control plane,
//! signals, and collections.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::collect;
use crate::laboratory::{Laboratory, Run};
use crate::outcome::{Baseline, Counts};
use crate::plan::{Random, round_of_guests, signal_name};
use crate::served::{Place, perform};
use crate::strangers::Strangers;

/// Image of the containers of the guests.
const GUEST_IMAGE: &str = "registry.k8s.io/e2e-test-images/agnhost:2.52";

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
    let has_guests = load_guest_image(&control_plane);
    let (place, mut counts, baseline) = (Place::new(), Counts::default(), Baseline::read());
    let (mut interrupts, mut kills, mut completed) = (0, 0, 0);
    let span = duration_of_a_run(&laboratory);
    println!("a run takes {:.0} s", span.as_secs_f64());
    let began = Instant::now();
    let mut number = 0;
    while began.elapsed() < length {
        number += 1;
        let mut random = Random::new(seed, number);
        let (signal, moment, collects) = (random.below(5), random.below(1000), random.below(1000));
        let [moment, collects] = [moment, collects].map(|per_mille| span.mul_f64(per_mille as f64 / 1000.0));
        let signal = match signal {
            0 => None,
            1 | 2 => Some(Signal::KILL),
            3 => Some(Signal::INT),
            _ => Some(Signal::TERM),
        };
        let name = signal.map_or("no signal", signal_name);
        let stated = format!("{name} after {:.1} s", moment.as_secs_f64());
        println!("round {number}: {stated}, gc after {:.1} s", collects.as_secs_f64());
        let guests = round_of_guests(seed, number);
        let guests = if has_guests { guests } else { Vec::new() };
        let (mut run, ended) = std::thread::scope(|scope| {
            let perform = |(index, action)| {
                println!("round {number}, {action}");
                let (place, kubeconfig) = (&place, kubeconfig.trim());
                scope.spawn(move || perform(place, kubeconfig, action, &format!("{number}-{index}")))
            };
            let running: Vec<_> = guests.iter().enumerate().map(perform).collect();
            let run = run_on_worker(&laboratory, signal, moment, collects);
            let ended: Vec<_> = running.into_iter().map(|thread| thread.join().unwrap()).collect();
            (run, ended)
        });
        let status = run.wait();
        match (signal, status.code()) {
            (Some(Signal::KILL), None) => kills += 1,
            (Some(_), Some(130)) => interrupts += 1,
            // A signal before its handler is installed.
            (Some(_), None) if !run.has_begun() => interrupts += 1,
            (_, Some(0)) => completed += 1,
            _ => panic!("{stated}: {status}\n{}", run.output()),
        }
        for (action, ended) in guests.iter().zip(&ended) {
            counts.add(action, ended, &baseline, &[]);
        }
        runtime.block_on(strangers.assert_untouched());
    }
    laboratory.gc();
    collect(&place, kubeconfig.trim());
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
    assert!(place.leftovers().is_empty(), "left on this machine: {:?}", place.leftovers());
    counts.print_unexplained();
    println!("{number} rounds on the worker: {completed} completed, {interrupts} interrupts, {kills} kills");
    println!("guests on the control plane: {counts}");
    println!("0 objects left, {untouched} objects of others untouched");
}

/// Starts a run on the kept cluster, collects beside it, and ends it by a signal.
fn run_on_worker(
    laboratory: &Laboratory,
    signal: Option<Signal>,
    moment: Duration,
    collects: Duration,
) -> Run {
    let mut run = laboratory.run_on_kept();
    if collects < moment {
        run.wait_until(collects.as_secs_f64());
        laboratory.gc();
    }
    run.wait_until(moment.as_secs_f64());
    if let Some(signal) = signal {
        run.send(signal);
    }
    run.wait();
    run
}

/// Loads the image of guests into a node. Returns false, and says so, if Docker does not have it.
fn load_guest_image(node: &str) -> bool {
    let saved = Command::new("docker").args(["save", GUEST_IMAGE]).output().unwrap();
    if !saved.status.success() {
        println!("no guests: Docker does not have {GUEST_IMAGE}");
        return false;
    }
    let import = ["exec", "--interactive", node, "ctr", "--namespace", "k8s.io", "images", "import", "-"];
    let mut import =
        Command::new("docker").args(import).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(&saved.stdout).unwrap();
    assert!(import.wait().unwrap().success(), "{node} does not take {GUEST_IMAGE}");
    true
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
    let listed = Command::new("docker").args(list).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed
        .lines()
        .find(|name| name.contains("/pause:"))
        .unwrap_or_else(|| panic!("no pause image: {listed}"))
        .to_owned()
}
