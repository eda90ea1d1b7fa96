//! A worker's container. The node keeps its own files beside the changed ones, so that whoever finds a node that a dead run left tuned can
//! put it back.

use evictlab_embedded::fault::Fault;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::Docker;
use crate::cluster::{Machine, NodeError};
use crate::tune::TuneError;

/// The kubelet's configuration file in a kind node.
const CONFIG: &str = "/var/lib/kubelet/config.yaml";
/// Where a kubelet that kubeadm set up looks for static pods.
const STATIC_PODS: &str = "/etc/kubernetes/manifests";
/// Where systemd finds more flags for the kubelet.
const FLAGS: &str = "/etc/default/kubelet";
/// The node's own files, as they were before the harness came.
const ORIGINALS: [(&str, &str); 2] =
    [(CONFIG, "/var/lib/kubelet/config.yaml.evictlab"), (FLAGS, "/etc/default/kubelet.evictlab")];
/// Fresh container statistics: cAdvisor's own interval is 10 s and more (`cmd/kubelet/app/options/globalflags_linux.go`).
const HOUSEKEEPING: &str = "--housekeeping-interval=1s";

/// A kind node: a container of the node's name.
#[derive(Clone, Debug)]
pub(super) struct KindMachine {
    pub node: String,
    pub docker: Docker,
}

impl Machine for KindMachine {
    fn configure<'a>(&'a self, changes: &'a Map<String, Value>) -> LocalBoxFuture<'a, Result<(), TuneError>> {
        async move {
            let [own_config, own_flags] = self.keep_originals().await?;
            let config = |problem: String| TuneError::Config {
                node: self.node.clone(),
                file: CONFIG.to_owned(),
                problem,
            };
            let mut changed: Value =
                serde_yaml::from_slice(&own_config).map_err(|error| config(error.to_string()))?;
            let fields = changed.as_object_mut().ok_or_else(|| config("it is not a mapping".to_owned()))?;
            merge(fields, changes);
            let changed = serde_yaml::to_string(&changed).map_err(|error| config(error.to_string()))?;
            let flags = with_flag(&String::from_utf8_lossy(&own_flags));
            self.write_file(CONFIG, 0o600, changed.as_bytes()).await?;
            self.write_file(FLAGS, 0o644, flags.as_bytes()).await?;
            Ok(self.restart_kubelet().await?)
        }
        .boxed_local()
    }

    fn has_fresh_statistics(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>> {
        async {
            let running = self.run(&["sh", "-c", "tr '\\0' ' ' < /proc/$(pidof kubelet)/cmdline"]).await?;
            Ok(running.contains(HOUSEKEEPING))
        }
        .boxed_local()
    }

    fn put_back(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>> {
        async {
            // Copied and renamed, with its mode: what is cut off here leaves whole files, and the originals go last.
            let back = ORIGINALS.map(|(path, original)| {
                format!(
                    "if [ -e {original} ]; then cp -p {original} {path}.new && mv {path}.new {path} && echo back; fi"
                )
            });
            if self.run(&["sh", "-ec", &back.join("\n")]).await?.is_empty() {
                return Ok(false);
            }
            self.restart_kubelet().await?;
            Ok(true)
        }
        .boxed_local()
    }

    fn settle(&self) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        async {
            // A write of a run that was cut off may have come late.
            let same = ORIGINALS.map(|(path, original)| {
                format!("if [ -e {original} ]; then cmp {original} {path} && rm {original}; fi")
            });
            self.run(&["sh", "-ec", &same.join("\n")]).await.map(drop)
        }
        .boxed_local()
    }

    fn kubelet_log(&self, since: Timestamp) -> LocalBoxFuture<'_, Result<Option<Vec<String>>, NodeError>> {
        async move {
            let since = format!("@{}", since.as_second());
            let command = ["journalctl", "-u", "kubelet", "--no-pager", "-o", "cat", "--since", &since];
            let log = self.run(&command).await?;
            Ok(Some(log.lines().map(str::to_owned).collect()))
        }
        .boxed_local()
    }

    fn last_words(&self) -> LocalBoxFuture<'_, Result<String, NodeError>> {
        let command = ["journalctl", "-u", "kubelet", "-n", "5", "-o", "cat", "--no-pager"];
        async move { self.run(&command).await }.boxed_local()
    }

    fn host_memory(&self) -> LocalBoxFuture<'_, Result<u64, NodeError>> {
        async {
            let meminfo = self.run(&["cat", "/proc/meminfo"]).await?;
            available(&meminfo).ok_or_else(|| NodeError::Answer {
                doing: "/proc/meminfo",
                node: self.node.clone(),
                problem: "it has no MemAvailable".to_owned(),
            })
        }
        .boxed_local()
    }

    fn limit_memory(&self, bytes: Option<u64>) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        async move { Ok(self.docker.limit_memory(&self.node, bytes).await?) }.boxed_local()
    }

    fn pause(&self, paused: bool) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        async move { Ok(self.docker.pause(&self.node, paused).await?) }.boxed_local()
    }

    fn static_pods<'a>(&'a self, pods: &'a [Value]) -> LocalBoxFuture<'a, Result<(), NodeError>> {
        async move {
            self.run(&["sh", "-c", &format!("rm -f {STATIC_PODS}/evictlab-*.yaml")]).await?;
            for (place, pod) in pods.iter().enumerate() {
                let path = format!("{STATIC_PODS}/evictlab-{place}.yaml");
                self.write_file(&path, 0o600, pod.to_string().as_bytes()).await?;
            }
            Ok(())
        }
        .boxed_local()
    }

    fn arm(&self, _: &[Fault], _: &str) -> Result<(), NodeError> {
        Err(NodeError::Real(self.node.clone()))
    }
}

impl KindMachine {
    /// The node's own files: those kept earlier, else those in place, which are kept now.
    async fn keep_originals(&self) -> Result<[Vec<u8>; 2], NodeError> {
        let keep = ORIGINALS.map(|(path, original)| {
            format!("[ -e {path} ] || : > {path}; [ -e {original} ] || {{ cp -p {path} {original}.new && mv {original}.new {original}; }}")
        });
        self.run(&["sh", "-ec", &keep.join("\n")]).await?;
        let mut own: [Vec<u8>; 2] = Default::default();
        for ((_, original), own) in ORIGINALS.into_iter().zip(&mut own) {
            *own = self.docker.read_file(&self.node, original).await?.unwrap_or_default();
        }
        Ok(own)
    }

    /// Puts a file into the node.
    async fn write_file(&self, path: &str, mode: u32, bytes: &[u8]) -> Result<(), NodeError> {
        Ok(self.docker.write_file(&self.node, path, mode, bytes).await?)
    }

    /// Runs a command in the node; an exit status other than 0 is an error.
    async fn run(&self, command: &[&str]) -> Result<String, NodeError> {
        Ok(self.docker.run(&self.node, command).await?)
    }

    /// Restarts the kubelet; returns when the old one is gone. Pods stay.
    async fn restart_kubelet(&self) -> Result<(), NodeError> {
        // The reset clears systemd's count of starts: cases restart the kubelet more often than its limit allows.
        self.run(&["sh", "-c", "systemctl reset-failed kubelet; systemctl restart kubelet"]).await.map(drop)
    }
}

/// `MemAvailable` of a `/proc/meminfo`, in bytes.
pub fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Maps are merged key by key, everything else is replaced.
fn merge(into: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (key, value) in changes {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(changes)) => merge(into, changes),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The lines of `/etc/default/kubelet` with the housekeeping flag in `KUBELET_EXTRA_ARGS`.
fn with_flag(own: &str) -> String {
    const VARIABLE: &str = "KUBELET_EXTRA_ARGS=";
    let mut lines: Vec<String> = own.lines().map(str::to_owned).collect();
    match lines.iter_mut().find(|line| line.starts_with(VARIABLE)) {
        Some(line) => {
            let flags = line[VARIABLE.len()..].trim_matches('"').trim();
            *line = format!("{VARIABLE}{}", format!("{flags} {HOUSEKEEPING}").trim());
        }
        None => lines.push(format!("{VARIABLE}{HOUSEKEEPING}")),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_flag_joins_those_that_are_there() {
        let rows = [
            ("", "KUBELET_EXTRA_ARGS=--housekeeping-interval=1s\n"),
            (
                "A=b\nKUBELET_EXTRA_ARGS=--runtime-cgroups=/x",
                "A=b\nKUBELET_EXTRA_ARGS=--runtime-cgroups=/x --housekeeping-interval=1s\n",
            ),
            ("KUBELET_EXTRA_ARGS=\"--a --b\"\n", "KUBELET_EXTRA_ARGS=--a --b --housekeeping-interval=1s\n"),
            ("KUBELET_EXTRA_ARGS=\n", "KUBELET_EXTRA_ARGS=--housekeeping-interval=1s\n"),
        ];
        for (own, with) in rows {
            assert_eq!(with_flag(own), with, "{own:?}");
        }
    }

    #[test]
    fn maps_are_merged_and_the_rest_replaced() {
        let mut own = json!({"evictionHard": {"nodefs.available": "0%"}, "clusterDNS": ["a"], "x": 1});
        let changes = json!({"evictionHard": {"memory.available": "1Gi"}, "clusterDNS": ["b"]});
        merge(own.as_object_mut().unwrap(), changes.as_object().unwrap());
        assert_eq!(
            own,
            json!({"evictionHard": {"nodefs.available": "0%", "memory.available": "1Gi"}, "clusterDNS": ["b"], "x": 1})
        );
    }
}
