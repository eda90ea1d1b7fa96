//! Logs of a pod's containers.

use std::collections::BTreeMap;
use std::pin::pin;

use evictlab_evidence::{EvidenceSource, MissingEvidence, RecordedPod};
use evictlab_rules::quantity::MIB;
use futures::{AsyncBufRead, AsyncReadExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::{Api, Client};

/// Maximum size of a log, in bytes.
const MAX_LOG_BYTES: u64 = 4 * MIB;

/// Logs of a pod's containers.
#[derive(Default)]
pub(crate) struct ContainerLogs {
    /// The logs by container name.
    pub(crate) logs: BTreeMap<String, String>,
    /// Each log that could not be read, or not completely.
    pub(crate) missing: Vec<MissingEvidence>,
}

/// Reads the log of each container of a pod, up to a limit.
pub(crate) async fn container_logs(client: &Client, namespace: &str, pod: &RecordedPod) -> ContainerLogs {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut read = ContainerLogs::default();
    for container in pod.container_names().map(str::to_owned) {
        let params = LogParams { container: Some(container.clone()), ..LogParams::default() };
        let log = match api.log_stream(pod.name(), &params).await {
            Ok(log) => read_start(log, MAX_LOG_BYTES).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let source = |container| EvidenceSource::Log { pod: pod.case_name().to_owned(), container };
        match log {
            Ok((log, is_complete)) => {
                if !is_complete {
                    let cause = format!("it was cut after {} MiB", MAX_LOG_BYTES >> 20);
                    read.missing.push(MissingEvidence::new(source(container.clone()), cause));
                }
                read.logs.insert(container, log);
            }
            Err(error) => read.missing.push(MissingEvidence::new(source(container), error)),
        }
    }
    read
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
