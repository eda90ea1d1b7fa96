//! The variables of expressions, during a case and after it.

use std::sync::OnceLock;

use cel::common::value::CowVal;
use cel::context::VariableResolver;
use evictlab_case::expression::{CelValue, Variable};
use evictlab_rules::message::{EvictionMessage, Offender};
use evictlab_rules::{CgroupVersion, EvictedEvent, KubeletVersion, evicted_events};
use serde_json::{Map, Value, json};

use crate::cel_value::{borrowed, borrowed_list, cel_map, owned};
use crate::live_state::LiveState;
use crate::objects::{RecordedEvent, RecordedPod};
use crate::observations::Observations;
use crate::recorded::Recorded;
use crate::sample::PodsOfSample;

/// Evidence as the variables of expressions.
pub struct Scope<'a> {
    observations: &'a Observations,
    /// The state of a running case, with the time in seconds since its first pod was created.
    live: Option<(f64, &'a LiveState)>,
    /// Converted variables, in the order of [`Variable::ALL`]. Each is converted on first use: many
    /// expressions share a variable.
    values: [OnceLock<CelValue<'a>>; Variable::ALL.len()],
}

impl<'a> Scope<'a> {
    /// Returns the variables of a completed case.
    pub fn of(observations: &'a Observations) -> Self {
        Self { observations, live: None, values: Default::default() }
    }

    /// Returns the variables of a running case: pods, events and node come from `state`, observed
    /// `t` seconds after the first pod was created.
    pub fn live(observations: &'a Observations, t: f64, state: &'a LiveState) -> Self {
        Self { observations, live: Some((t, state)), values: Default::default() }
    }

    fn variable(&self, variable: Variable) -> CelValue<'a> {
        let seen = self.observations;
        let live = self.live.map(|(_, state)| state);
        match variable {
            Variable::Answers => owned(json!(seen.answers)),
            Variable::Cgroup => owned(json!(seen.cgroup.map_or("", CgroupVersion::as_str))),
            Variable::Configz => borrowed(seen.configz.json()),
            Variable::Counted => owned(json!(seen.evictions_counted)),
            Variable::Created => by_name(&mut seen.pods_created.iter()),
            Variable::Evictions => {
                let pods: Vec<&RecordedPod> = self.pods().collect();
                owned(evictions(live.map_or(&seen.events, |live| &live.events), &pods))
            }
            Variable::Events => documents(live.map_or(&seen.events, |live| &live.events)),
            Variable::History => {
                let history = live.map_or(&seen.pod_history, |live| &live.history);
                cel_map(history.iter().map(|(pod, entries)| (pod.as_str(), documents(entries))))
            }
            Variable::Images => owned(json!(live.map_or(&seen.images, |live| &live.images))),
            Variable::Kubelet => owned(json!(seen.kubelet_version)),
            Variable::KubeletLog => owned(json!(seen.kubelet_log)),
            Variable::Logs => owned(json!(seen.container_logs)),
            Variable::Metrics => owned(json!(seen.metrics)),
            Variable::Minor => {
                let version = seen.kubelet_version.parse::<KubeletVersion>().ok();
                owned(json!(version.map(|version| version.minor)))
            }
            Variable::Node => borrowed(live.map_or(&seen.node_object, |live| &live.node).json()),
            Variable::NodeHistory => documents(live.map_or(&seen.node_history, |live| &live.node_history)),
            Variable::Objects => {
                cel_map(seen.objects.iter().map(|(name, object)| (name.as_str(), borrowed(object))))
            }
            Variable::PodList => documents(self.pods()),
            Variable::Pods => by_name(&mut self.pods()),
            Variable::Samples => seen.samples.cel_list(),
            Variable::PodStats => {
                let latest: Option<PodsOfSample> = seen.samples.decode_last_as();
                owned(latest.map(|pods| pods.by_name(|name| self.case_name(name))).unwrap_or_default())
            }
            Variable::Stats => {
                let latest: Option<PodsOfSample> = seen.samples.decode_last_as();
                let by_pod = latest.map(|pods| pods.containers_by_pod(|name| self.case_name(name)));
                owned(by_pod.unwrap_or_default())
            }
            Variable::SummaryBefore => borrowed(seen.summary_before.json()),
            Variable::T => owned(json!(self.live.map(|(t, _)| t).or(seen.seconds))),
        }
    }

    /// Returns the name that the case uses for a pod, given the name of the object.
    fn case_name(&self, object: &str) -> String {
        self.pods().find(|pod| pod.name() == object).map_or(object, RecordedPod::case_name).to_owned()
    }

    /// Returns the latest version of every pod, deleted ones first.
    fn pods(&self) -> Box<dyn Iterator<Item = &'a RecordedPod> + 'a> {
        let seen = self.observations;
        match self.live {
            Some((_, state)) => Box::new(state.all_pods()),
            None => {
                let is_gone =
                    |gone: &&'a RecordedPod| !seen.pods_final.iter().any(|pod| pod.uid() == gone.uid());
                Box::new(seen.pods_gone.iter().filter(is_gone).chain(&seen.pods_final))
            }
        }
    }
}

impl VariableResolver for Scope<'_> {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        let variable = Variable::from_name(name)?;
        let value = self.values[variable as usize].get_or_init(|| self.variable(variable));
        Some(CowVal::Borrowed(&**value))
    }
}

fn by_name<'a>(pods: &mut dyn Iterator<Item = &'a RecordedPod>) -> CelValue<'a> {
    cel_map(pods.map(|pod| (pod.case_name(), borrowed(pod.json()))))
}

/// Returns the evictions in their order, without rejections at admission: `{pod, message,
/// annotations}`, and the content of the message, such as `resource` and `containers: {el1: {usage,
/// request}}`, in bytes or numbers.
fn evictions(events: &[RecordedEvent], pods: &[&RecordedPod]) -> Value {
    let events = evicted_events(events.iter().filter(|event| event.is_eviction()).map(Recorded::json));
    events.iter().map(|event| eviction(event, pods)).collect()
}

fn eviction(event: &EvictedEvent, pods: &[&RecordedPod]) -> Value {
    let pod = pods.iter().find(|pod| pod.uid() == Some(event.uid.as_str()));
    let pod = pod.map_or(event.pod.as_str(), |pod| pod.case_name());
    let mut fields = json!({"pod": pod, "message": event.message, "annotations": event.annotations});
    let parsed = event.message.parse::<EvictionMessage>().ok();
    let kind = parsed.as_ref().map_or("unknown", |message| message.kind().as_str());
    let content = match &parsed {
        Some(EvictionMessage::NodePressure(pressure)) => {
            let offender =
                |one: &Offender| json!({"usage": one.usage.value(), "request": one.request.value()});
            let containers: Map<String, Value> =
                pressure.containers.iter().map(|one| (one.name.clone(), offender(one))).collect();
            json!({
                "kind": kind,
                "resource": pressure.resource,
                "threshold": pressure.threshold.as_ref().map(|clause| clause.quantity.value()),
                "available": pressure.threshold.as_ref().map(|clause| clause.available.value()),
                "containers": containers,
            })
        }
        Some(EvictionMessage::EmptyDirLimit { volume, limit }) => {
            json!({"kind": kind, "volume": volume, "limit": limit.value()})
        }
        Some(EvictionMessage::PodLimit { limit }) => json!({"kind": kind, "limit": limit.value()}),
        Some(EvictionMessage::ContainerLimit { container, limit }) => {
            json!({"kind": kind, "container": container, "limit": limit.value()})
        }
        Some(EvictionMessage::Rejected { .. }) | None => json!({"kind": kind}),
    };
    if let (Some(fields), Value::Object(content)) = (fields.as_object_mut(), content) {
        fields.extend(content.into_iter().filter(|(_, value)| !value.is_null()));
    }
    fields
}

fn documents<'a, T: 'a>(recorded: impl IntoIterator<Item = &'a Recorded<T>>) -> CelValue<'a> {
    borrowed_list(recorded.into_iter().map(Recorded::json))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::history::{ConditionEntry, ContainerEntry, NodeHistoryEntry, NodeImage, PodHistoryEntry};
    use crate::metric::Metric;
    use crate::observations::{ApiAnswer, CommandOutput, StepAnswer};
    use crate::sample::{SampleDocument, reduce_summary};
    use evictlab_case::expression::{Expression, ExpressionError};
    use evictlab_rules::quantity::Quantity;
    use serde::de::DeserializeOwned;

    fn recorded<T: DeserializeOwned>(json: Value) -> Recorded<T> {
        Recorded::decode(json).unwrap()
    }

    fn value(text: &str) -> Result<Value, String> {
        let seen = Observations {
            kubelet_version: "v1.32.13".to_owned(),
            cgroup: Some(CgroupVersion::V2),
            pods_final: vec![recorded(json!({
                "metadata": {"name": "hog"},
                "spec": {"containers": [{"name": "a"}]},
                "status": {"phase": "Failed", "reason": "Evicted",
                    "conditions": [{"type": "Ready", "status": "False"}],
                    "containerStatuses": [{"name": "a", "restartCount": 0, "state": {"terminated": {"exitCode": 137}}}]},
            }))],
            events: vec![
                recorded(json!({"reason": "Evicted", "type": "Warning"})),
                recorded(json!({"reason": "Started"})),
            ],
            ..Observations::default()
        };
        let expression: Expression = text.parse().map_err(|error: ExpressionError| error.to_string())?;
        expression.value(&Scope::of(&seen)).map_err(|error| error.to_string())
    }

    #[test]
    fn statistics_are_of_the_pods_of_the_case_by_their_names() {
        let pod = |name: &str, annotation: &str, value: &str| {
            recorded(
                json!({"metadata": {"name": name, "annotations": {annotation: value}}, "spec": {"nodeName": "node"}}),
            )
        };
        let stats = |name: &str| json!({"podRef": {"name": name}, "containers": [{"name": "c", "memory": {"workingSetBytes": 5}}]});
        // A pod of another namespace, such as one of a repetition of the case.
        let other = json!({"podRef": {"name": "plain"}, "memory": {"workingSetBytes": 7}});
        let sample = json!({"t": 1, "pods": [stats("web-node"), stats("job-x7k2p"), stats("plain"), other]});
        let seen = Observations {
            pods_final: vec![
                pod("web-node", "kubernetes.io/config.mirror", "hash"),
                pod("job-x7k2p", evictlab_case::CASE_NAME_ANNOTATION, "job"),
            ],
            samples: [&sample].into_iter().collect(),
            ..Observations::default()
        };
        for pod in ["web", "job", "plain"] {
            for variable in [format!("stats['{pod}'].c"), format!("podStats['{pod}'].containers[0]")] {
                let expression: Expression = format!("{variable}.memory.workingSetBytes").parse().unwrap();
                assert_eq!(expression.value(&Scope::of(&seen)).unwrap(), json!(5), "{variable}");
            }
        }
        let names: Expression = "samples.map(s, s.pods.map(p, p.podRef.name))".parse().unwrap();
        let expected = json!([["web-node", "job-x7k2p", "plain"]]);
        assert_eq!(names.value(&Scope::of(&seen)).unwrap(), expected);
    }

    #[test]
    fn evaluates_expressions_over_observations() {
        let rows = [
            ("pods.hog.status.reason", json!("Evicted")),
            ("events.filter(e, e.reason == 'Evicted').size()", json!(1)),
            ("container(pods.hog, 'a').state.terminated.exitCode", json!(137)),
            ("condition(pods.hog, 'Ready').status", json!("False")),
            ("evicted(pods.hog) && !running(pods.hog)", json!(true)),
            ("quantity('1.5Gi') - quantity('512Mi')", json!(1073741824)),
            ("minor >= 32 && cgroup == 'v2'", json!(true)),
            ("has(pods.hog.status.message)", json!(false)),
        ];
        for (text, expected) in rows {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_pod_rejected_at_admission_is_not_evicted() {
        let rows = [
            ("The node was low on resource: memory. ", true),
            ("Pod was rejected: The node had condition: [MemoryPressure]. ", false),
            ("Pod The node had condition: [DiskPressure]. ", false),
        ];
        for (message, expected) in rows {
            let status = json!({"phase": "Failed", "reason": "Evicted", "message": message});
            let pod = recorded(json!({"metadata": {"name": "p"}, "status": status}));
            let seen = Observations { pods_final: vec![pod], ..Observations::default() };
            let expression: Expression = "evicted(pods.p)".parse().unwrap();
            assert_eq!(expression.value(&Scope::of(&seen)).unwrap(), expected, "{message}");
        }
    }

    #[test]
    fn evictions_are_in_their_order_and_have_the_content_of_their_messages() {
        let message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. \
            Container el1 was using 300Mi, request is 1Mi, has larger consumption of memory. ";
        let event = |pod: &str, nanos: &str, message: &str| {
            recorded(json!({
                "metadata": {"name": format!("{pod}.{nanos}"), "annotations": {"starved_resource": "memory"}},
                "reason": "Evicted", "message": message, "involvedObject": {"kind": "Pod", "name": pod},
            }))
        };
        let events = vec![
            event(
                "second",
                "18a0000000000002",
                "Container el1 exceeded its local ephemeral storage limit \"1Mi\". ",
            ),
            event("rejected", "18a0000000000000", "The node had condition: [MemoryPressure]. "),
            event("first", "18a0000000000001", message),
        ];
        let seen = Observations { events, ..Observations::default() };
        let value = |text: &str| text.parse::<Expression>().unwrap().value(&Scope::of(&seen)).unwrap();
        assert_eq!(value("evictions.map(e, e.pod)"), json!(["first", "second"]));
        assert_eq!(value("evictions[0].containers.el1"), json!({"usage": 300 << 20, "request": 1 << 20}));
        assert_eq!(value("[evictions[0].resource, evictions[0].kind]"), json!(["memory", "node-pressure"]));
        assert_eq!(value("evictions[0].threshold - evictions[0].available"), json!(20 << 20));
        assert_eq!(value("evictions[1].limit"), json!(1 << 20));
        assert_eq!(value("evictions[0].annotations.starved_resource"), json!("memory"));
    }

    #[test]
    fn a_pod_runs_when_its_containers_and_sidecars_run() {
        let runs = |running: &[&str]| {
            let status = |name: &str| {
                let state = if running.contains(&name) { "running" } else { "waiting" };
                json!({"name": name, "state": {state: {}}})
            };
            let pod = json!({
                "metadata": {"name": "p"},
                "spec": {
                    "initContainers": [{"name": "init"}, {"name": "sidecar", "restartPolicy": "Always"}],
                    "containers": [{"name": "main"}],
                },
                "status": {
                    "initContainerStatuses": [status("init"), status("sidecar")],
                    "containerStatuses": [status("main")],
                },
            });
            let seen = Observations { pods_final: vec![recorded(pod)], ..Observations::default() };
            let expression: Expression = "running(pods.p)".parse().unwrap();
            expression.value(&Scope::of(&seen)).unwrap()
        };
        assert_eq!(runs(&["sidecar", "main"]), true);
        for running in [&["main"][..], &["sidecar"], &["init", "main"], &[]] {
            assert_eq!(runs(running), false, "{running:?}");
        }
    }

    #[test]
    fn reports_mistakes_in_expressions() {
        let mistakes = [
            "pods.hog.",
            "podz.hog",
            "events.all(e, f.reason == 'x')",
            "evictd(pods.hog)",
            "pods.dog.status",
        ];
        let errors = mistakes.map(|text| format!("{text}\n  {}\n", value(text).unwrap_err()));
        insta::assert_snapshot!(errors.join("\n"));
    }

    /// Returns the expressions that read each field of a value.
    fn paths_of_value(value: &Value, path: &str) -> Vec<String> {
        match value {
            Value::Object(fields) if !fields.is_empty() => fields
                .iter()
                .flat_map(|(name, value)| paths_of_value(value, &format!("{path}['{name}']")))
                .collect(),
            Value::Array(items) if !items.is_empty() => {
                items.iter().flat_map(|item| paths_of_value(item, &format!("{path}[0]"))).collect()
            }
            _ => vec![path.to_owned()],
        }
    }

    /// Returns the expressions that read each field of a JSON Schema, which is part of `root`.
    fn paths_of_schema(schema: &Value, root: &Value, path: &str) -> Vec<String> {
        let mut paths = vec![path.to_owned()];
        if let Some(reference) = schema["$ref"].as_str() {
            let definition = root.pointer(reference.trim_start_matches('#')).unwrap();
            paths.extend(paths_of_schema(definition, root, path));
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            paths.extend(paths_of_schema(field, root, &format!("{path}['{name}']")));
        }
        if schema["items"].is_object() {
            paths.extend(paths_of_schema(&schema["items"], root, &format!("{path}[0]")));
        }
        for alternative in schema["anyOf"].as_array().into_iter().flatten() {
            paths.extend(paths_of_schema(alternative, root, path));
        }
        paths
    }

    /// Returns a sample with all statistics that a sample keeps.
    fn complete_sample() -> Value {
        let (memory, fs) = (json!({"workingSetBytes": 1}), json!({"usedBytes": 1}));
        let summary = json!({
            "node": {
                "systemContainers": [{"name": "pods", "memory": memory}], "memory": memory, "fs": fs,
                "runtime": {"imageFs": fs, "containerFs": fs}, "rlimit": {"maxpid": 1},
            },
            "pods": [{
                "podRef": {"name": "p", "namespace": "n", "uid": "u"}, "memory": memory,
                "process_stats": {"process_count": 1}, "ephemeral-storage": fs,
                "volume": [{"name": "data", "usedBytes": 1}],
                "containers": [{"name": "c", "startTime": "t", "memory": memory, "rootfs": fs, "logs": fs}],
            }],
        });
        let summary = serde_json::value::to_raw_value(&summary).unwrap();
        json!(reduce_summary(1.0, &summary, "n").unwrap())
    }

    /// Returns evictions with every kind of message.
    fn evictions_of_all_kinds() -> Vec<RecordedEvent> {
        let limit: Quantity = "1Mi".parse().unwrap();
        let pressure = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. \
            Container c was using 300Mi, request is 1Mi, has larger consumption of memory. ";
        let limits = [
            EvictionMessage::EmptyDirLimit { volume: "data".to_owned(), limit: limit.clone() },
            EvictionMessage::PodLimit { limit: limit.clone() },
            EvictionMessage::ContainerLimit { container: "c".to_owned(), limit },
        ];
        let messages = limits.iter().map(ToString::to_string).chain([pressure.to_owned(), "?".to_owned()]);
        let event = |message: String| {
            let object = json!({"kind": "Pod", "name": "p"});
            recorded(json!({"reason": "Evicted", "message": message, "involvedObject": object}))
        };
        messages.map(event).collect()
    }

    /// Returns observations with all fields of every variable whose form evictlab defines.
    fn complete_observations() -> Observations {
        let conditions = BTreeMap::from([("Ready".to_owned(), ConditionEntry::default())]);
        let containers = BTreeMap::from([("c".to_owned(), ContainerEntry::default())]);
        let entry = PodHistoryEntry { conditions: conditions.clone(), containers, ..Default::default() };
        let of_node = NodeHistoryEntry { conditions, ..Default::default() };
        let metric = Metric { labels: BTreeMap::new(), value: 1.0, increase: 1.0 };
        Observations {
            answers: BTreeMap::from([
                ("evicted".to_owned(), StepAnswer::Api(ApiAnswer::default())),
                ("listed".to_owned(), StepAnswer::Command(CommandOutput::default())),
            ]),
            events: evictions_of_all_kinds(),
            images: vec![NodeImage::default()],
            metrics: BTreeMap::from([("kubelet_evictions".to_owned(), vec![metric])]),
            pod_history: BTreeMap::from([("p".to_owned(), vec![Recorded::of(entry).unwrap()])]),
            node_history: vec![Recorded::of(of_node).unwrap()],
            samples: [complete_sample()].iter().collect(),
            summary_before: recorded(json!({"node": {}, "pods": []})),
            ..Observations::default()
        }
    }

    /// The checker of cases has a copy of the fields of all variables: it must accept every field
    /// that an expression can read.
    #[test]
    fn lint_knows_the_fields_of_all_variables() {
        let seen = complete_observations();
        let scope = Scope::of(&seen);
        let mut paths = BTreeSet::new();
        for name in Variable::ALL.map(Variable::as_str) {
            let value = name.parse::<Expression>().unwrap().value(&scope).unwrap();
            paths.extend(paths_of_value(&value, name));
        }
        let schema = schemars::schema_for!(SampleDocument).to_value();
        paths.extend(paths_of_schema(&schema, &schema, "samples[0]"));
        for path in [
            "answers['listed']['stdout']",
            "evictions[0]['containers']['c']['usage']",
            "evictions[0]['volume']",
            "history['p'][0]['containers']['c']['exitCode']",
            "samples[0]['pods'][0]['process_stats']",
            "samples[0]['pods'][0]['volume'][0]['usedBytes']",
            "stats['p']['c']['rootfs']['usedBytes']",
        ] {
            assert!(paths.contains(path), "{path}: {paths:?}");
        }
        for path in paths {
            let case = format!(
                "name: a\nabout: b\nuntil: \"{path} == 1\"\n\
                pods:\n- metadata: {{name: p}}\n  spec: {{containers: [{{name: c, image: agnhost:2.52}}]}}\n\
                do: [{{evict: p, answer: evicted}}, {{exec: {{pod: p, command: [ls]}}, answer: listed}}]\n\
                expect: {{evicted: []}}\n"
            );
            let read = evictlab_case::parse("s", "s/a.yaml", "a.yaml", case.as_bytes());
            assert!(read.is_ok(), "{path}: {}", read.unwrap_err());
        }
    }
}
