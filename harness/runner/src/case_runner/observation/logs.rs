//! Logs of a pod's containers.

use std::collections::BTreeMap;
use std::pin::pin;

use evictlab_cluster::api_error_message;
use evictlab_evidence::{EvidenceSource, LiveState, MissingEvidence, Observations, RecordedPod};
use evictlab_rules::quantity::MIB;
use futures::{AsyncBufRead, AsyncReadExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::{Api, Client};

use crate::case_runner::observation::read_budget::ReadBudget;

/// Maximum size of a log, in bytes.
const MAX_CONTAINER_LOG_BYTES: u64 = 4 * MIB;
/// Maximum size of all logs of a case, in bytes.
const MAX_CASE_BYTES: u64 = 64 * MIB;
/// Beginnings of errors that a kubelet sends instead of a log: it has begun its response, with the
/// status 200, before it looks for the container (kubernetes/kubernetes#142258).
const KUBELET_ERRORS: [&str; 2] =
    ["unable to retrieve container logs for ", "failed to try resolving symlinks in path "];

/// The logs of containers by pod and container.
type Logs = BTreeMap<String, BTreeMap<String, String>>;

/// Reads the logs of a case, up to a limit of each log and of all logs. Logs that cannot be read,
/// or not completely, are missing evidence, until a later reading succeeds.
pub(crate) struct LogReader<'a> {
    /// Client of the API server.
    pub client: &'a Client,
    /// The case's namespace.
    pub namespace: &'a str,
    /// Time for the readings.
    pub budget: &'a mut ReadBudget,
    /// The case's observations.
    pub observations: &'a mut Observations,
}

impl LogReader<'_> {
    /// Reads the log of each container of a pod, as a step of the case requires.
    pub(crate) async fn read_pod(&mut self, name: &str, live: &LiveState) {
        match live.pods.get(name) {
            Some(pod) => {
                for container in pod.container_names() {
                    self.read_log(pod, container).await;
                }
            }
            None => record_gone_pod(self.observations, name, live),
        }
    }

    /// Reads the logs at the end of the case that no step has read.
    pub(crate) async fn read_unread(&mut self, live: &LiveState) {
        for pod in live.pods.values() {
            for container in unread(&self.observations.container_logs, pod) {
                self.read_log(pod, &container).await;
            }
        }
        let created = self.observations.pods_created.iter().map(|pod| pod.case_name().to_owned());
        let is_gone = |pod: &String| {
            !live.pods.contains_key(pod) && !self.observations.container_logs.contains_key(pod)
        };
        for pod in created.filter(is_gone).collect::<Vec<_>>() {
            record_gone_pod(self.observations, &pod, live);
        }
    }

    async fn read_log(&mut self, pod: &RecordedPod, container: &str) {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), self.namespace);
        let (most, cut) = limit(&self.observations.container_logs);
        let params = LogParams { container: Some(container.to_owned()), ..LogParams::default() };
        let read = async {
            let log = api.log_stream(pod.name(), &params).await.map_err(|error| api_error_message(&error))?;
            read_start(log, most).await.map_err(|error| error.to_string())
        };
        let answer = match self.budget.read(read).await {
            Ok((text, _)) if is_kubelet_error(&text) => Err(text),
            Ok((text, is_complete)) => Ok((text, (!is_complete).then_some(cut))),
            Err(error) => Err(error),
        };
        record_log(self.observations, pod.case_name(), container, answer);
    }
}

/// A log with the note that it was cut, or the cause why it was not read.
type LogAnswer = Result<(String, Option<String>), String>;

/// Records the last reading of a log. It replaces what was recorded as missing before; a log that
/// was read earlier stays.
fn record_log(observations: &mut Observations, pod: &str, container: &str, answer: LogAnswer) {
    let source = EvidenceSource::Log { pod: pod.to_owned(), container: container.to_owned() };
    observations.missing.retain(|missing| missing.source != source);
    let cause = match answer {
        Ok((text, cut)) => {
            let logs = observations.container_logs.entry(pod.to_owned()).or_default();
            logs.insert(container.to_owned(), text);
            cut
        }
        Err(cause) => Some(cause),
    };
    observations.missing.extend(cause.map(|cause| MissingEvidence::new(source, cause)));
}

/// Records the logs of a pod that does not exist as missing: those of the containers of its last
/// version or, if none was observed, of `*`.
fn record_gone_pod(observations: &mut Observations, name: &str, live: &LiveState) {
    let gone = live.gone.iter().rev().chain(&observations.pods_created).find(|pod| pod.case_name() == name);
    let containers: Vec<String> = match gone {
        Some(pod) => pod.container_names().map(str::to_owned).collect(),
        None => vec!["*".to_owned()],
    };
    for container in containers {
        record_log(observations, name, &container, Err("the pod did not exist any more".to_owned()));
    }
}

/// Returns the containers of a pod without a log.
fn unread(logs: &Logs, pod: &RecordedPod) -> Vec<String> {
    let read = logs.get(pod.case_name());
    let is_unread = |container: &&str| read.is_none_or(|read| !read.contains_key(*container));
    pod.container_names().filter(is_unread).map(str::to_owned).collect()
}

/// Returns whether a text is an error of the kubelet, which does not end its line, and not a log.
fn is_kubelet_error(text: &str) -> bool {
    !text.contains('\n') && KUBELET_ERRORS.iter().any(|beginning| text.starts_with(beginning))
}

/// Returns the maximum size of the next log in bytes, and the note for a longer one.
fn limit(logs: &Logs) -> (u64, String) {
    let read: usize = logs.values().flat_map(BTreeMap::values).map(String::len).sum();
    match MAX_CASE_BYTES.saturating_sub(read as u64) {
        room if room < MAX_CONTAINER_LOG_BYTES => {
            (room, format!("it was cut: the logs of the case have more than {} MiB", MAX_CASE_BYTES >> 20))
        }
        _ => (MAX_CONTAINER_LOG_BYTES, format!("it was cut after {} MiB", MAX_CONTAINER_LOG_BYTES >> 20)),
    }
}

/// Reads at most `max` bytes of a log. Returns whether that is all of it.
async fn read_start(log: impl AsyncBufRead, max: u64) -> std::io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    pin!(log).take(max + 1).read_to_end(&mut bytes).await?;
    let is_complete = bytes.len() as u64 <= max;
    if !is_complete {
        bytes.pop();
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), is_complete))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evictlab_evidence::Recorded;
    use futures::stream::TryStreamExt;
    use futures::{io::repeat, stream};
    use serde_json::json;

    fn pod(name: &str, containers: &[&str]) -> RecordedPod {
        let containers: Vec<_> = containers.iter().map(|name| json!({"name": name})).collect();
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": containers}});
        Recorded::decode(pod).unwrap()
    }

    fn missing(observations: &Observations) -> Vec<String> {
        observations.missing.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_last_reading_of_a_log_counts() {
        let read = |text: &str| -> LogAnswer { Ok((text.to_owned(), None)) };
        let cut = |text: &str| -> LogAnswer { Ok((text.to_owned(), Some("it was cut".to_owned()))) };
        let failed = || -> LogAnswer { Err("refused".to_owned()) };
        let refused = "logs/web/a not collected: refused";
        let rows = [
            (vec![failed()], None, &[refused][..]),
            (vec![failed(), read("one")], Some("one"), &[]),
            (vec![cut("on"), read("one")], Some("one"), &[]),
            (vec![read("one"), cut("tw")], Some("tw"), &["logs/web/a not collected: it was cut"]),
            (vec![read("one"), failed()], Some("one"), &[refused]),
            (vec![failed(), failed()], None, &[refused]),
            (vec![read("")], Some(""), &[]),
        ];
        for (answers, text, expected) in rows {
            let mut observations = Observations::default();
            record_log(&mut observations, "web", "b", failed());
            let about = format!("{answers:?}");
            answers.into_iter().for_each(|answer| record_log(&mut observations, "web", "a", answer));
            let log = observations.container_logs.get("web").and_then(|logs| logs.get("a"));
            assert_eq!(log.map(String::as_str), text, "{about}");
            let other = "logs/web/b not collected: refused";
            assert_eq!(missing(&observations), [&[other], expected].concat(), "{about}");
            let unread = unread(&observations.container_logs, &pod("web", &["a", "b"]));
            assert_eq!(unread.contains(&"a".to_owned()), text.is_none(), "{about}");
        }
    }

    #[test]
    fn logs_of_a_pod_that_does_not_exist_are_missing() {
        let mut live = LiveState::new();
        live.record_pod_gone(1.0, pod("gone", &["a", "b"]));
        let rows = [
            ("gone", &["logs/gone/a", "logs/gone/b"][..]),
            ("created", &["logs/created/c"]),
            ("unknown", &["logs/unknown/*"]),
        ];
        for (name, sources) in rows {
            let created = vec![pod("created", &["c"])];
            let mut observations = Observations { pods_created: created, ..Observations::default() };
            record_gone_pod(&mut observations, name, &live);
            let expected =
                sources.iter().map(|of| format!("{of} not collected: the pod did not exist any more"));
            assert_eq!(missing(&observations), expected.collect::<Vec<_>>());
            assert!(observations.container_logs.is_empty(), "an empty log is a log");
        }
    }

    #[test]
    fn an_error_of_the_kubelet_is_not_a_log() {
        let rows = [
            ("unable to retrieve container logs for containerd://b91ca08d41b0", true),
            ("failed to try resolving symlinks in path \"/var/log/pods/a/b/0.log\": no such file", true),
            ("unable to retrieve container logs for containerd://b91ca08d41b0\n", false),
            ("received SIGTERM\n", false),
            ("", false),
        ];
        for (text, is_error) in rows {
            assert_eq!(is_kubelet_error(text), is_error, "{text:?}");
        }
    }

    #[test]
    fn all_logs_of_a_case_have_a_limit() {
        let of_pods = |count: usize, size: u64| -> Logs {
            let log = || BTreeMap::from([("c".to_owned(), ".".repeat(size as usize))]);
            (0..count).map(|pod| (format!("pod-{pod}"), log())).collect()
        };
        for (count, size, most) in
            [(0, 0, 4 * MIB), (15, 4 * MIB, 4 * MIB), (7, 9 * MIB, MIB), (16, 4 * MIB, 0)]
        {
            let (limit, note) = limit(&of_pods(count, size));
            assert_eq!((limit, note.ends_with("64 MiB")), (most, most < 4 * MIB), "{count} logs: {note}");
        }
    }

    #[tokio::test]
    async fn reads_logs_up_to_a_limit() {
        for (log, start, is_complete) in [("four", "four", true), ("five!", "five", false), ("", "", true)] {
            assert_eq!(read_start(log.as_bytes(), 4).await.unwrap(), (start.to_owned(), is_complete));
        }
        // A log without an end is not read further.
        let endless = futures::io::BufReader::new(repeat(b'.'));
        assert_eq!(read_start(endless, 1 << 20).await.unwrap().0.len(), 1 << 20);
        let broken = stream::iter([Ok("a"), Err(std::io::Error::other("reset"))]).into_async_read();
        assert!(read_start(broken, 4).await.is_err());
    }
}
