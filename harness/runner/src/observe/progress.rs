//! Where a watched case stands: what was seen so far, whether it moves, and whether it is over.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::history;
use super::statuses::statuses;

const MIB: u64 = 1024 * 1024;

/// What a case waits for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The pods that are to be evicted.
    pub evicted: Vec<String>,
    /// What a known bug of this kubelet evicts instead.
    pub instead: Option<Vec<String>>,
    /// Pod name to the containers that the Summary is to list.
    pub summary: BTreeMap<String, Vec<String>>,
    /// An ephemeral container is to be refused.
    pub refusal: bool,
    /// Whether what the case states as its end holds, where it states one.
    pub until: Option<bool>,
    /// Whether steps are left to be done.
    pub steps_left: bool,
}

/// Why watching ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything that was waited for was seen, or all that a known bug leaves to see.
    Outcome,
    /// A pod that was to be evicted ended otherwise.
    Died(String),
    /// A pod that something is waited of cannot start.
    Stuck,
    /// Nothing moved any more.
    Stalled,
}

/// What was seen of a case so far.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The pods as they are, by name.
    pub pods: BTreeMap<String, Value>,
    /// The events, by uid, in order of arrival.
    pub events: Vec<Value>,
    /// What each pod went through, by name.
    pub history: BTreeMap<String, Vec<Value>>,
    /// The node as it is.
    pub node: Value,
    /// What it went through.
    pub node_history: Vec<Value>,
    /// Pods that are gone, as they last were.
    pub gone: Vec<Value>,
    moved: Instant,
    fingerprint: String,
    settled: Option<Instant>,
    stuck: Option<Instant>,
}

impl Watched {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self {
            pods: BTreeMap::new(),
            events: Vec::new(),
            history: BTreeMap::new(),
            node: Value::Null,
            node_history: Vec::new(),
            gone: Vec::new(),
            moved: Instant::now(),
            fingerprint: String::new(),
            settled: None,
            stuck: None,
        }
    }

    /// Takes in a pod as it is now.
    pub fn pod(&mut self, t: f64, pod: Value) {
        let name = history::name_of(&pod);
        history::add(self.history.entry(name.clone()).or_default(), history::of_pod(t, &pod, false));
        self.pods.insert(name, pod);
    }

    /// Takes in that a pod is gone; what it last was stays known.
    pub fn pod_gone(&mut self, t: f64, pod: Value) {
        let name = history::name_of(&pod);
        history::add(self.history.entry(name.clone()).or_default(), history::of_pod(t, &pod, true));
        self.pods.remove(&name);
        self.gone.retain(|gone| gone["metadata"]["uid"] != pod["metadata"]["uid"]);
        self.gone.push(pod);
    }

    /// Takes in the node as it is now.
    pub fn node(&mut self, t: f64, node: Value) {
        history::add(&mut self.node_history, history::of_node(t, &node));
        self.node = node;
    }

    /// The pods, those that are gone first.
    pub fn all_pods(&self) -> impl Iterator<Item = &Value> {
        self.gone.iter().chain(self.pods.values())
    }

    /// Something moves that is not seen here, such as a step that waits for its time.
    pub fn goes_on(&mut self) {
        self.moved = Instant::now();
    }

    /// Takes in an event; a counted-up one replaces itself.
    pub fn event(&mut self, event: Value) {
        let uid = |event: &Value| event["metadata"]["uid"].clone();
        match self.events.iter_mut().find(|known| uid(known) == uid(&event)) {
            Some(known) => *known = event,
            None => self.events.push(event),
        }
    }

    /// The pods that are evicted, by their status.
    pub fn evicted(&self) -> Vec<&str> {
        let evicted = |pod: &&Value| pod["status"]["reason"] == "Evicted";
        self.pods.values().filter(evicted).filter_map(|pod| pod["metadata"]["name"].as_str()).collect()
    }

    /// Whether every container that a pod starts with runs: regular ones and sidecars, once its init containers are done.
    pub fn runs(&self, pod: &str) -> bool {
        let Some(pod) = self.pods.get(pod) else { return false };
        let wanted = pod["spec"]["containers"].as_array().map_or(0, Vec::len);
        let statuses = pod["status"]["containerStatuses"].as_array();
        let running = |status: &&Value| !status["state"]["running"].is_null();
        wanted > 0 && statuses.is_some_and(|statuses| statuses.iter().filter(running).count() == wanted)
    }

    /// How long it took from the creation of these pods until a container of one of them had started.
    pub fn first_start(&self, created: &[Map<String, Value>]) -> Option<Duration> {
        let names = created.iter().filter_map(|pod| pod["metadata"]["name"].as_str());
        let started = |container: &Value| container["state"] != "waiting";
        let first = |name: &str| {
            let mut all = self.history.get(name)?.iter();
            all.find(|entry| entry["containers"].as_object().is_some_and(|of| of.values().any(started)))
        };
        let seconds = names.filter_map(first).filter_map(|entry| entry["t"].as_f64());
        Duration::try_from_secs_f64(seconds.reduce(f64::min)?).ok()
    }

    /// Whether the case is over. `news` is whether anything was told since the last time, `latest` the last sample; `patience` is how long nothing may move, `quiet` how long to look on after
    /// all that a known bug leaves to see.
    pub fn ended(
        &mut self,
        wanted: &Wanted,
        news: bool,
        latest: Option<&Value>,
        refused: bool,
        (patience, quiet): (Duration, Duration),
    ) -> Option<Ended> {
        let now = Instant::now();
        if news {
            let fingerprint = self.fingerprint(latest);
            if fingerprint != self.fingerprint {
                (self.fingerprint, self.moved) = (fingerprint, now);
            }
        }
        if wanted.steps_left || wanted.until == Some(false) {
            return (now - self.moved >= patience).then_some(Ended::Stalled);
        }
        if wanted.until == Some(true) {
            return Some(Ended::Outcome);
        }
        if self.all_evicted(&wanted.evicted) && self.listed(wanted, latest) && refused == wanted.refusal {
            // The last event may be on its way still, and duplicates follow within a moment.
            let told = wanted.evicted.iter().all(|pod| self.told(pod));
            let since = *self.settled.get_or_insert(now);
            if told && now - since >= Duration::from_millis(500) || now - since >= quiet {
                return Some(Ended::Outcome);
            }
            return None;
        }
        if let Some(dead) = wanted.evicted.iter().find_map(|pod| self.died(pod)) {
            return Some(Ended::Died(dead));
        }
        if let Some(instead) = &wanted.instead
            && instead != &wanted.evicted
            && !instead.is_empty()
            && self.all_evicted(instead)
        {
            let since = *self.settled.get_or_insert(now);
            return (now - since >= quiet).then_some(Ended::Outcome);
        }
        match wanted.evicted.iter().chain(wanted.summary.keys()).any(|pod| self.is_stuck(pod)) {
            true if now - *self.stuck.get_or_insert(now) >= quiet => return Some(Ended::Stuck),
            true => {}
            false => self.stuck = None,
        }
        (now - self.moved >= patience).then_some(Ended::Stalled)
    }

    /// Evicted, and every container of it has ended.
    fn all_evicted(&self, pods: &[String]) -> bool {
        pods.iter().all(|name| {
            self.pods
                .get(name)
                .is_some_and(|pod| pod["status"]["reason"] == "Evicted" && pod["status"]["phase"] == "Failed")
        })
    }

    fn listed(&self, wanted: &Wanted, latest: Option<&Value>) -> bool {
        wanted.summary.iter().all(|(pod, containers)| {
            let pods = latest.and_then(|sample| sample["pods"].as_array()).into_iter().flatten();
            let listed = pods
                .filter(|listed| listed["podRef"]["name"] == pod.as_str())
                .flat_map(|listed| listed["containers"].as_array().into_iter().flatten());
            let names: Vec<&str> = listed.filter_map(|container| container["name"].as_str()).collect();
            containers.iter().all(|container| names.contains(&container.as_str()))
        })
    }

    fn told(&self, pod: &str) -> bool {
        self.events.iter().any(|event| event["reason"] == "Evicted" && event["involvedObject"]["name"] == pod)
    }

    /// Whether a container of a pod has an image that the kubelet cannot have. It asks again and again, but images are brought before the
    /// pods, so that nothing will have changed: only what was in the air has a moment to settle.
    fn is_stuck(&self, name: &str) -> bool {
        const WITHOUT_IMAGE: [&str; 4] =
            ["ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName"];
        let Some(status) = self.pods.get(name).map(|pod| &pod["status"]) else { return false };
        let mut containers = ["initContainerStatuses", "containerStatuses"]
            .into_iter()
            .flat_map(|list| status[list].as_array().into_iter().flatten());
        containers.any(|container| {
            container["state"]["waiting"]["reason"].as_str().is_some_and(|why| WITHOUT_IMAGE.contains(&why))
        })
    }

    /// How a pod ended that the kubelet did not evict.
    fn died(&self, name: &str) -> Option<String> {
        let status = &self.pods.get(name)?["status"];
        let phase = status["phase"].as_str()?;
        if status["reason"] == "Evicted" || !["Failed", "Succeeded"].contains(&phase) {
            return None;
        }
        let reason = status["reason"].as_str().map(|reason| format!(" ({reason})")).unwrap_or_default();
        Some(format!("pod {name} ended as {phase}{reason} and was not evicted"))
    }

    /// A text that changes whenever the case moves: containers that start and end, memory and disk that fill, events.
    fn fingerprint(&self, latest: Option<&Value>) -> String {
        let mut text = String::new();
        for (name, pod) in &self.pods {
            let status = &pod["status"];
            text += &format!("{name} {} {};", status["phase"], status["reason"]);
            for container in statuses(status) {
                let state = container["state"].as_object().and_then(|state| state.keys().next());
                text += &format!("{} {state:?} {};", container["name"], container["restartCount"]);
            }
        }
        text += &format!(
            "{} events, {} of the node, {} gone;",
            self.events.len(),
            self.node_history.len(),
            self.gone.len()
        );
        let size = |value: &Value, field: &str, unit: u64| value[field].as_u64().unwrap_or(0) / unit;
        let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
        let mut used: Vec<String> = Vec::new();
        for pod in latest.and_then(|sample| sample["pods"].as_array()).into_iter().flatten() {
            let Some(containers) = pod["containers"].as_array() else { continue };
            let pod_name = name(&pod["podRef"]);
            used.extend(containers.iter().map(|container| {
                format!(
                    "{pod_name}/{} {} {} {};",
                    name(container),
                    size(&container["memory"], "workingSetBytes", 4 * MIB),
                    size(&container["rootfs"], "usedBytes", MIB),
                    size(&container["logs"], "usedBytes", MIB)
                )
            }));
            used.push(format!("{pod_name} {};", size(&pod["ephemeral-storage"], "usedBytes", 4 * MIB)));
        }
        // The kubelet lists pods and containers in an order of chance.
        used.sort();
        text += &used.concat();
        text
    }
}

impl Default for Watched {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TIMES: (Duration, Duration) = (Duration::from_secs(40), Duration::from_secs(12));

    fn pod(name: &str, phase: &str, reason: Option<&str>) -> Value {
        json!({"metadata": {"name": name}, "status": {"phase": phase, "reason": reason}})
    }

    fn wanted(evicted: &[&str], instead: Option<&[&str]>) -> Wanted {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Wanted { evicted: names(evicted), instead: instead.map(names), ..Default::default() }
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_the_event_or_a_while_after_the_status() {
        let wanted = wanted(&["a"], None);
        let mut watched = Watched::new();
        watched.pod(0.0, pod("a", "Running", None));
        assert_eq!(watched.ended(&wanted, true, None, false, TIMES), None);
        watched.pod(0.0, pod("a", "Failed", Some("Evicted")));
        assert_eq!(watched.ended(&wanted, true, None, false, TIMES), None, "its event may come still");
        let mut told = watched.clone();
        told.event(json!({"metadata": {"uid": "1"}, "reason": "Evicted", "involvedObject": {"name": "a"}}));
        pass(1).await;
        assert_eq!(told.ended(&wanted, true, None, false, TIMES), Some(Ended::Outcome));
        assert_eq!(watched.ended(&wanted, true, None, false, TIMES), None);
        pass(12).await;
        assert_eq!(watched.ended(&wanted, true, None, false, TIMES), Some(Ended::Outcome));
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_a_pod_dies_otherwise() {
        let mut watched = Watched::new();
        watched.pod(0.0, pod("a", "Failed", None));
        let died = "pod a ended as Failed and was not evicted".to_owned();
        assert_eq!(watched.ended(&wanted(&["a"], None), true, None, false, TIMES), Some(Ended::Died(died)));
    }

    #[tokio::test(start_paused = true)]
    async fn it_looks_on_after_what_a_bug_leaves_to_see() {
        let wanted = wanted(&["hog", "control"], Some(&["control"]));
        let mut watched = Watched::new();
        watched.pod(0.0, pod("hog", "Running", None));
        watched.pod(0.0, pod("control", "Failed", Some("Evicted")));
        assert_eq!(watched.ended(&wanted, true, None, false, TIMES), None);
        pass(13).await;
        assert_eq!(watched.ended(&wanted, true, None, false, TIMES), Some(Ended::Outcome));
    }

    #[tokio::test(start_paused = true)]
    async fn it_lasts_as_long_as_memory_grows() {
        let wanted = wanted(&["a"], None);
        let mut watched = Watched::new();
        watched.pod(0.0, pod("a", "Running", None));
        let sample =
            |mib: u64| json!({"pods": [{"containers": [{"memory": {"workingSetBytes": mib * MIB}}]}]});
        for mib in (0..200).step_by(8) {
            assert_eq!(watched.ended(&wanted, true, Some(&sample(mib)), false, TIMES), None);
            pass(39).await;
        }
        assert_eq!(watched.ended(&wanted, true, Some(&sample(192)), false, TIMES), None);
        pass(40).await;
        assert_eq!(watched.ended(&wanted, true, Some(&sample(193)), false, TIMES), Some(Ended::Stalled));
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_soon_where_a_pod_has_no_image_and_not_for_a_hiccup() {
        let wanted = wanted(&["a"], None);
        let waiting = |reason: &str| {
            let mut pod = pod("a", "Pending", None);
            pod["status"]["containerStatuses"] =
                json!([{"name": "c", "state": {"waiting": {"reason": reason}}}]);
            pod
        };
        let mut watched = Watched::new();
        for (reason, seconds, ended) in [
            ("ContainerCreating", 0, None),
            ("ErrImagePull", 10, None),
            ("ContainerCreating", 10, None),
            ("ErrImagePull", 1, None),
            ("ImagePullBackOff", 11, None),
            ("ErrImageNeverPull", 1, Some(Ended::Stuck)),
        ] {
            pass(seconds).await;
            watched.pod(0.0, waiting(reason));
            assert_eq!(watched.ended(&wanted, true, None, false, TIMES), ended, "{reason}");
        }
    }

    #[test]
    fn the_first_container_of_the_cases_own_pods_tells_how_quick_the_node_is() {
        let of = |name: &str, state: &str| {
            let mut pod = pod(name, "Pending", None);
            pod["status"]["initContainerStatuses"] = json!([{"name": "i", "state": {state: {}}}]);
            pod
        };
        let created = ["a", "b"].map(|name| pod(name, "", None).as_object().cloned().unwrap());
        let mut watched = Watched::new();
        watched.pod(0.1, of("static", "running"));
        watched.pod(0.2, of("a", "waiting"));
        assert_eq!(watched.first_start(&created), None);
        watched.pod(1.5, of("b", "terminated"));
        watched.pod(2.5, of("a", "running"));
        assert_eq!(watched.first_start(&created), Some(Duration::from_millis(1500)));
        assert_eq!(watched.first_start(&created[..1]), Some(Duration::from_millis(2500)));
    }

    #[test]
    fn a_counted_up_event_replaces_itself() {
        let mut watched = Watched::new();
        watched.event(json!({"metadata": {"uid": "1"}, "count": 1}));
        watched.event(json!({"metadata": {"uid": "2"}, "count": 1}));
        watched.event(json!({"metadata": {"uid": "1"}, "count": 2}));
        assert_eq!(watched.events.len(), 2);
        assert_eq!(watched.events[0]["count"], 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_order_of_a_summary_is_no_progress() {
        let wanted = wanted(&["a"], None);
        let mut watched = Watched::new();
        watched.pod(0.0, pod("a", "Running", None));
        let container = |name: &str, mib: u64| json!({"name": name, "rootfs": {"usedBytes": mib * MIB}});
        let (hog, idle) = (container("hog", 40), container("idle", 0));
        let sample =
            |containers: &[&Value]| json!({"pods": [{"podRef": {"name": "a"}, "containers": containers}]});
        assert_eq!(watched.ended(&wanted, true, Some(&sample(&[&hog, &idle])), false, TIMES), None);
        pass(40).await;
        assert_eq!(
            watched.ended(&wanted, true, Some(&sample(&[&idle, &hog])), false, TIMES),
            Some(Ended::Stalled)
        );
    }
}
