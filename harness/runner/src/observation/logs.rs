//! Logs of a pod's containers.

use std::collections::BTreeMap;
use std::pin::pin;

use evictlab_evidence::{EvidenceSource, MissingEvidence, Observations, RecordedPod};
use evictlab_rules::quantity::MIB;
use futures::{AsyncBufRead, AsyncReadExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::{Api, Client};

use crate::observation::read_budget::ReadBudget;

/// Maximum size of a log, in bytes.
const MAX_LOG_BYTES: u64 = 4 * MIB;
/// Maximum size of all logs of a case, in bytes.
const MAX_CASE_BYTES: u64 = 64 * MIB;

/// The logs of containers by pod and container.
type Logs = BTreeMap<String, BTreeMap<String, String>>;

/// Reads the log of each container of a pod, up to a limit of each log and of all logs of the case.
/// Logs that cannot be read, or not completely, are missing evidence.
pub(crate) async fn read_logs(
    client: &Client,
    namespace: &str,
    pod: &RecordedPod,
    budget: &mut ReadBudget,
    observations: &mut Observations,
) {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let logs = &mut observations.container_logs;
    logs.insert(pod.case_name().to_owned(), BTreeMap::new());
    for container in pod.container_names().map(str::to_owned) {
        let (most, cut) = limit(logs);
        let params = LogParams { container: Some(container.clone()), ..LogParams::default() };
        let read = async {
            let log = api.log_stream(pod.name(), &params).await.map_err(|error| error.to_string())?;
            read_start(log, most).await.map_err(|error| error.to_string())
        };
        let log = budget.read(read).await;
        let source = |container| EvidenceSource::Log { pod: pod.case_name().to_owned(), container };
        match log {
            Ok((log, is_complete)) => {
                if !is_complete {
                    observations.missing.push(MissingEvidence::new(source(container.clone()), cut));
                }
                logs.entry(pod.case_name().to_owned()).or_default().insert(container, log);
            }
            Err(error) => observations.missing.push(MissingEvidence::new(source(container), error)),
        }
    }
}

/// Returns the maximum size of the next log in bytes, and the note for a longer one.
fn limit(logs: &Logs) -> (u64, String) {
    let read: usize = logs.values().flat_map(BTreeMap::values).map(String::len).sum();
    match MAX_CASE_BYTES.saturating_sub(read as u64) {
        room if room < MAX_LOG_BYTES => {
            (room, format!("it was cut: the logs of the case have more than {} MiB", MAX_CASE_BYTES >> 20))
        }
        _ => (MAX_LOG_BYTES, format!("it was cut after {} MiB", MAX_LOG_BYTES >> 20)),
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
    use futures::stream::TryStreamExt;
    use futures::{io::repeat, stream};

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
