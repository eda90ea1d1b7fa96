//! Soak of a kept kind cluster: runs of the backend kind on its worker, others of the backend
//! existing on its control plane, signals, and collections.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::collect;
use crate::other_objects::OtherObjects;
use crate::outcome::{Baseline, Counts};
use crate::plan::{WorkerPlan, round_of_existing};
use crate::served::{Place, perform};
use crate::test_cluster::{Run, TestCluster};

/// Image of the containers on the control plane.
const POD_IMAGE: &str = "registry.k8s.io/e2e-test-images/agnhost:2.52";

/// Runs, interrupts and kills runs until the time is over.
pub fn soak(seed: u64, length: Duration) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let test_cluster = TestCluster::new();
    test_cluster.create();
    let settings = test_cluster.settings();
    let kubeconfig = test_cluster.evictlab(&["cluster", "kubeconfig", &test_cluster.cluster]);
    let control_plane = format!("{}-control-plane", test_cluster.cluster);
    // An image that is in every node image; the tag depends on the version.
    let container = json!({"name": "c", "image": pause_image(&control_plane), "imagePullPolicy": "Never"});
    let other_objects =
        runtime.block_on(OtherObjects::create(kubeconfig.trim(), &[control_plane.as_str()], &container));
    let has_image = load_image_of_pods(&control_plane);
    let (place, mut counts, baseline) = (Place::new(), Counts::default(), Baseline::read());
    let (mut interrupts, mut kills, mut completed) = (0, 0, 0);
    let run_duration = duration_of_a_run(&test_cluster);
    println!("a run takes {:.0} s", run_duration.as_secs_f64());
    let began = Instant::now();
    let mut number = 0;
    while began.elapsed() < length {
        number += 1;
        let plan = WorkerPlan::new(seed, number, run_duration);
        println!("round {number}: {plan}");
        let existing = round_of_existing(seed, number);
        let existing = if has_image { existing } else { Vec::new() };
        let (mut run, ended) = std::thread::scope(|scope| {
            let perform = |(index, action)| {
                println!("round {number}, {action}");
                let (place, kubeconfig) = (&place, kubeconfig.trim());
                scope.spawn(move || perform(place, kubeconfig, action, &format!("{number}-{index}")))
            };
            let running: Vec<_> = existing.iter().enumerate().map(perform).collect();
            let run = run_on_worker(&test_cluster, &plan);
            let ended: Vec<_> = running.into_iter().map(|thread| thread.join().unwrap()).collect();
            (run, ended)
        });
        match end_of(&mut run, plan.signal) {
            Some(RunEnd::Killed) => kills += 1,
            Some(RunEnd::Interrupted) => interrupts += 1,
            Some(RunEnd::Completed) => completed += 1,
            None => panic!("{plan}: {}\n{}", run.wait(), run.output()),
        }
        for (action, ended) in existing.iter().zip(&ended) {
            counts.add(action, ended, &baseline, &[]);
        }
        runtime.block_on(other_objects.assert_untouched());
    }
    test_cluster.gc();
    collect(&place, kubeconfig.trim());
    let left = runtime.block_on(leftovers_after_deletion(&other_objects));
    assert!(left.is_empty(), "left in the cluster after gc: {left:?}");
    assert_eq!(test_cluster.settings(), settings, "the kubelet is configured as before");
    let untouched = runtime.block_on(other_objects.assert_untouched());
    test_cluster.evictlab(&["cluster", "delete", &test_cluster.cluster]);
    test_cluster.assert_nothing_is_left();
    assert!(place.leftovers().is_empty(), "left on this machine: {:?}", place.leftovers());
    counts.print_unexplained();
    println!("{number} rounds on the worker: {completed} completed, {interrupts} interrupts, {kills} kills");
    println!("runs on the control plane: {counts}");
    println!("0 objects left, {untouched} objects of others untouched");
}

/// The API server removes deleted namespaces within seconds.
async fn leftovers_after_deletion(other_objects: &OtherObjects) -> Vec<String> {
    for _ in 0..60 {
        if other_objects.leftovers().await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    other_objects.leftovers().await
}

enum RunEnd {
    Killed,
    Interrupted,
    Completed,
}

/// Returns the end of a run that got this signal; `None` if it ended in another way.
fn end_of(run: &mut Run, signal: Option<Signal>) -> Option<RunEnd> {
    match (signal, run.wait().code()) {
        (Some(Signal::KILL), None) => Some(RunEnd::Killed),
        (Some(_), Some(130)) => Some(RunEnd::Interrupted),
        // A signal before its handler is installed.
        (Some(_), None) if !run.has_begun() => Some(RunEnd::Interrupted),
        (_, Some(0)) => Some(RunEnd::Completed),
        _ => None,
    }
}

/// Starts a run on the kept cluster, collects beside it, ends it by the signal, and waits for it.
fn run_on_worker(test_cluster: &TestCluster, plan: &WorkerPlan) -> Run {
    let mut run = test_cluster.run_on_kept();
    if plan.gc_at < plan.signal_at {
        run.wait_until(plan.gc_at.as_secs_f64());
        test_cluster.gc();
    }
    run.wait_until(plan.signal_at.as_secs_f64());
    if let Some(signal) = plan.signal {
        run.send(signal);
    }
    run.wait();
    run
}

/// Loads the image of pods into a node. Returns false, and says so, if Docker does not have it.
fn load_image_of_pods(node: &str) -> bool {
    let saved = Command::new("docker").args(["save", POD_IMAGE]).output().unwrap();
    if !saved.status.success() {
        println!("no runs on the control plane: Docker does not have {POD_IMAGE}");
        return false;
    }
    let import = ["exec", "--interactive", node, "ctr", "--namespace", "k8s.io", "images", "import", "-"];
    let mut import =
        Command::new("docker").args(import).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(&saved.stdout).unwrap();
    assert!(import.wait().unwrap().success(), "{node} does not take {POD_IMAGE}");
    true
}

/// Returns the duration of a run, within which the signals are sent.
fn duration_of_a_run(test_cluster: &TestCluster) -> Duration {
    let began = Instant::now();
    let mut run = test_cluster.run_on_kept();
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
