//! Replay of a recording by the model.

use std::time::Duration;

use crate::apiserver::{self, FieldValidation};
use crate::options::ClusterOptions;
use crate::resource::Kind;
use crate::sim::SimTime;
use crate::simulation::Simulation;
use evictlab_rules::evicted_events;
use serde_json::Value;

use super::recording::Recording;

/// Outcome of a replay.
pub(super) struct Replayed {
    pub pods: Vec<Value>,
    pub events: Vec<Value>,
    pub log: Vec<String>,
}

impl Replayed {
    /// Returns the messages of the `Evicted` events.
    pub(super) fn messages(&self) -> Vec<&str> {
        let evicted = self.events.iter().filter(|event| event["reason"] == "Evicted");
        evicted.filter_map(|event| event["message"].as_str()).collect()
    }
}

const NAMESPACE: &str = "default";
/// Time step of the replay.
const TURN: Duration = Duration::from_millis(100);

/// Creates the node and the pods, and runs until the end of the recording or until the recorded
/// number of pods was evicted.
pub(super) fn replay(recording: &Recording, seed: u64) -> Replayed {
    let options = ClusterOptions::new(seed, "2026-01-01T00:00:00Z".parse().unwrap(), vec![recording.node()]);
    let mut simulation = Simulation::new(options).unwrap();
    let mut now = SimTime::ZERO;
    let mut run = |simulation: &mut Simulation, length: Duration| {
        let end = now + length;
        while now < end {
            now = (now + TURN).min(end);
            simulation.run(now);
        }
    };
    run(&mut simulation, Duration::from_secs(15));
    simulation.with(|_, nodes, ctx| {
        let node = nodes.get_mut(&recording.node).unwrap();
        node.kubelet.configure(&recording.kubelet_config_overrides, recording.housekeeping(), ctx);
    });
    run(&mut simulation, Duration::from_secs(5));
    let begun = simulation.now;
    for pod in &recording.pods_created {
        simulation
            .with_context(|ctx| {
                apiserver::create(ctx, Kind::Pod, NAMESPACE, as_asked(pod), FieldValidation::default())
            })
            .unwrap();
    }
    let mut ephemeral = recording.ephemeral();
    let wanted = victims(&recording.pods_final, &recording.events);
    let patience = Duration::from_secs_f64(recording.length() * 2.0 + 60.0);
    let unharmed = Duration::from_secs_f64(recording.length());
    loop {
        run(&mut simulation, TURN);
        ephemeral.retain(|(pod, container)| !added(&mut simulation, pod, container));
        let watched = simulation.now.since(begun);
        let pods = pods(&simulation);
        let over =
            pods.iter().filter(|pod| matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")));
        let evicted = victims(over, &events(&simulation));
        if watched >= patience || (wanted == 0 && watched >= unharmed) || (wanted > 0 && evicted >= wanted) {
            break;
        }
    }
    // Events and statuses follow an eviction within moments.
    run(&mut simulation, Duration::from_secs(2));
    let log = simulation.nodes[&recording.node].kubelet.log.since(begun).map(str::to_owned).collect();
    Replayed { pods: pods(&simulation), events: events(&simulation), log }
}

/// Returns the number of pods with an `Evicted` event.
fn victims<'a>(pods: impl IntoIterator<Item = &'a Value>, events: &[Value]) -> usize {
    let evicted = evicted_events(events);
    pods.into_iter().filter(|pod| evicted.iter().any(|event| pod["metadata"]["uid"] == *event.uid)).count()
}

fn events(simulation: &Simulation) -> Vec<Value> {
    simulation.store.list(Kind::Event, Some(NAMESPACE)).map(|event| Value::clone(event)).collect()
}

fn pods(simulation: &Simulation) -> Vec<Value> {
    simulation.store.list(Kind::Pod, Some(NAMESPACE)).map(|pod| Value::clone(pod)).collect()
}

/// Adds an ephemeral container once all containers of its pod run. Returns whether it was added.
fn added(simulation: &mut Simulation, pod: &str, container: &Value) -> bool {
    let Some(object) = simulation.store.get(Kind::Pod, NAMESPACE, pod).map(|object| Value::clone(object))
    else {
        return false;
    };
    let statuses = object["status"]["containerStatuses"].as_array().cloned().unwrap_or_default();
    if statuses.is_empty() || statuses.iter().any(|status| status["state"]["running"].is_null()) {
        return false;
    }
    let mut object = object;
    match object["spec"]["ephemeralContainers"].as_array_mut() {
        Some(all) => all.push(container.clone()),
        None => object["spec"]["ephemeralContainers"] = serde_json::json!([container]),
    }
    simulation
        .with_context(|ctx| {
            apiserver::update_ephemeral_containers(ctx, NAMESPACE, pod, object, FieldValidation::default())
        })
        .unwrap();
    true
}

/// Returns the pod as it was submitted, without fields that the API server sets.
fn as_asked(created: &Value) -> Value {
    let mut pod = created.clone();
    let fields = pod.as_object_mut().unwrap();
    fields.remove("status");
    let metadata = fields["metadata"].as_object_mut().unwrap();
    for field in ["uid", "creationTimestamp", "resourceVersion", "generation", "managedFields"] {
        metadata.remove(field);
    }
    metadata["namespace"] = NAMESPACE.into();
    pod
}
