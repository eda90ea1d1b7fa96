//! A recording done again by the model.

use std::time::Duration;

use evictlab_embedded::options::Options;
use evictlab_embedded::registry::{self, Create, Update};
use evictlab_embedded::store::Kind;
use evictlab_embedded::time::Time;
use evictlab_embedded::world::World;
use evictlab_rules::invariant::evicted_events;
use serde_json::Value;

use super::recording::Recording;

/// What the model came to.
pub struct Replayed {
    pub pods: Vec<Value>,
    pub events: Vec<Value>,
    pub log: Vec<String>,
}

impl Replayed {
    /// What the Evicted events say.
    pub fn messages(&self) -> Vec<&str> {
        let evicted = self.events.iter().filter(|event| event["reason"] == "Evicted");
        evicted.filter_map(|event| event["message"].as_str()).collect()
    }
}

const NAMESPACE: &str = "default";
/// How often the replay looks whether something is to be done.
const TURN: Duration = Duration::from_millis(100);

/// Makes the node, configures its kubelet, creates the pods, and watches for as long as the recording did, or until as many pods were
/// evicted.
pub fn replay(recording: &Recording, seed: u64) -> Replayed {
    let options = Options::new(seed, "2026-01-01T00:00:00Z".parse().unwrap(), vec![recording.node()]);
    let mut world = World::new(options).unwrap();
    let mut now = Time::ZERO;
    let mut run = |world: &mut World, length: Duration| {
        let end = now + length;
        while now < end {
            now = (now + TURN).min(end);
            world.run(now);
        }
    };
    run(&mut world, Duration::from_secs(15));
    world.with(|_, nodes, ctx| {
        let node = nodes.get_mut(&recording.node).unwrap();
        node.kubelet.configure(&recording.kubelet_config_overrides, recording.fast_housekeeping(), ctx);
    });
    run(&mut world, Duration::from_secs(5));
    let begun = world.now;
    for pod in &recording.pods_created {
        world
            .with(|_, _, ctx| registry::create(ctx, Kind::Pod, NAMESPACE, as_asked(pod), Create::default()))
            .unwrap();
    }
    let mut ephemeral = recording.ephemeral();
    let wanted = victims(&recording.pods_final, &recording.events);
    let patience = Duration::from_secs_f64(recording.length() * 2.0 + 60.0);
    let unharmed = Duration::from_secs_f64(recording.length());
    loop {
        run(&mut world, TURN);
        ephemeral.retain(|(pod, container)| !added(&mut world, pod, container));
        let watched = world.now.since(begun);
        let pods = pods(&world);
        let over =
            pods.iter().filter(|pod| matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")));
        let evicted = victims(over, &events(&world));
        if watched >= patience || (wanted == 0 && watched >= unharmed) || (wanted > 0 && evicted >= wanted) {
            break;
        }
    }
    // What follows an eviction is told within moments.
    run(&mut world, Duration::from_secs(2));
    let log = world.nodes[&recording.node].kubelet.log.since(begun).map(str::to_owned).collect();
    Replayed { pods: pods(&world), events: events(&world), log }
}

/// How many of these pods have an Evicted event.
fn victims<'a>(pods: impl IntoIterator<Item = &'a Value>, events: &[Value]) -> usize {
    let evicted = evicted_events(events);
    pods.into_iter().filter(|pod| evicted.iter().any(|event| pod["metadata"]["uid"] == *event.uid)).count()
}

fn events(world: &World) -> Vec<Value> {
    world.store.list(Kind::Event, Some(NAMESPACE)).map(|event| Value::clone(event)).collect()
}

fn pods(world: &World) -> Vec<Value> {
    world.store.list(Kind::Pod, Some(NAMESPACE)).map(|pod| Value::clone(pod)).collect()
}

/// Adds an ephemeral container once every container of its pod runs.
fn added(world: &mut World, pod: &str, container: &Value) -> bool {
    let Some(object) = world.store.get(Kind::Pod, NAMESPACE, pod).map(|object| Value::clone(object)) else {
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
    world
        .with(|_, _, ctx| {
            registry::update_ephemeral_containers(ctx, NAMESPACE, pod, object, Update::default())
        })
        .unwrap();
    true
}

/// The pod as somebody asked for it: what the API server wrote into it comes off.
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
