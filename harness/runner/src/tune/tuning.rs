//! The change itself. The node keeps its own files beside the changed ones, so that whoever finds a node that a dead run
//! left tuned can put it back.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::{Difference, differences};
use crate::cluster::{Node, NodeError};
use crate::wait::{self, Probe, Stalled};

/// The kubelet's configuration file in a kind node.
const CONFIG: &str = "/var/lib/kubelet/config.yaml";
/// Where systemd finds more flags for the kubelet.
const FLAGS: &str = "/etc/default/kubelet";
/// The node's own files, as they were before the harness came.
const ORIGINALS: [(&str, &str); 2] =
    [(CONFIG, "/var/lib/kubelet/config.yaml.evictlab"), (FLAGS, "/etc/default/kubelet.evictlab")];
/// Fresh container statistics: cAdvisor's own interval is 10 s and more (`cmd/kubelet/app/options/globalflags_linux.go`).
const HOUSEKEEPING: &str = "--housekeeping-interval=1s";

/// How long a restarted kubelet may show no change before it is given up.
const PATIENCE: Duration = Duration::from_secs(90);

/// A node could not be tuned or put back.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// It could not be reached.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// Its configuration is no YAML mapping.
    #[error("{CONFIG} on node {node} is no KubeletConfiguration: {problem}")]
    Config {
        /// The node.
        node: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The kubelet does not come back, or not with what it was given.
    #[error(
        "the kubelet on node {node} does not run with what it was given: {stalled}\nIts last words:\n{log}"
    )]
    NotInForce {
        /// The node.
        node: String,
        /// What was last seen.
        stalled: Stalled,
        /// The end of its log.
        log: String,
    },
}

/// A node that was tuned.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The whole configuration in force, from `configz`.
    pub configz: Value,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// Gives the node's kubelet its own configuration with these fields changed, restarts it, and reads back what is in force. Maps are merged,
/// everything else is replaced. What an earlier call changed is gone: every call starts from the node's own files.
pub async fn tune(node: &Node, changes: &Map<String, Value>) -> Result<Tuned, TuneError> {
    let began = Instant::now();
    let own = keep_originals(node).await?;
    let config = |problem: String| TuneError::Config { node: node.name.clone(), problem };
    let [own_config, own_flags] = own;
    let mut changed: Value =
        serde_yaml::from_slice(&own_config).map_err(|error| config(error.to_string()))?;
    let fields = changed.as_object_mut().ok_or_else(|| config("it is not a mapping".to_owned()))?;
    merge(fields, changes);
    let changed = serde_yaml::to_string(&changed).map_err(|error| config(error.to_string()))?;
    let flags = with_flag(&String::from_utf8_lossy(&own_flags));
    node.write_file(CONFIG, 0o600, changed.as_bytes()).await?;
    node.write_file(FLAGS, 0o644, flags.as_bytes()).await?;
    node.restart_kubelet().await?;
    let configz = in_force(node, changes).await?;
    Ok(Tuned { configz, seconds: began.elapsed().as_secs_f64() })
}

/// Whether the node's kubelet runs with these fields and with quick housekeeping already, as one made from our own kind configuration does.
pub async fn in_shape(node: &Node, fields: &Map<String, Value>) -> Result<bool, TuneError> {
    if !differences(fields, &node.configz().await?).is_empty() {
        return Ok(false);
    }
    let running = node.run(&["sh", "-c", "tr '\\0' ' ' < /proc/$(pidof kubelet)/cmdline"]).await?;
    Ok(running.contains(HOUSEKEEPING))
}

/// Puts the node's own files back and restarts its kubelet. Nothing is done where nothing was changed.
pub async fn restore(node: &Node) -> Result<bool, TuneError> {
    // Copied and renamed, with its mode: what is cut off here leaves whole files, and the originals go last.
    let back = ORIGINALS.map(|(path, original)| {
        format!(
            "if [ -e {original} ]; then cp -p {original} {path}.new && mv {path}.new {path} && echo back; fi"
        )
    });
    if node.run(&["sh", "-ec", &back.join("\n")]).await?.is_empty() {
        return Ok(false);
    }
    node.restart_kubelet().await?;
    in_force(node, &Map::new()).await?;
    // A write of a run that was cut off may have come late.
    let same = ORIGINALS.map(|(path, original)| {
        format!("if [ -e {original} ]; then cmp {original} {path} && rm {original}; fi")
    });
    node.run(&["sh", "-ec", &same.join("\n")]).await?;
    Ok(true)
}

/// The node's own files: those kept earlier, else those in place, which are kept now.
async fn keep_originals(node: &Node) -> Result<[Vec<u8>; 2], TuneError> {
    let keep = ORIGINALS.map(|(path, original)| {
        format!("[ -e {path} ] || : > {path}; [ -e {original} ] || {{ cp -p {path} {original}.new && mv {original}.new {original}; }}")
    });
    node.run(&["sh", "-ec", &keep.join("\n")]).await?;
    let mut own: [Vec<u8>; 2] = Default::default();
    for ((_, original), own) in ORIGINALS.into_iter().zip(&mut own) {
        *own = node.read_file(original).await?.unwrap_or_default();
    }
    Ok(own)
}

/// Asks `configz` until it shows the changes, and until the Summary answers: the new kubelet serves its configuration before it has
/// looked at its containers. The kubelet is new: what answers is what runs.
async fn in_force(node: &Node, changes: &Map<String, Value>) -> Result<Value, TuneError> {
    let asked = wait::until(PATIENCE, Duration::from_millis(100), async || match node.configz().await {
        Err(error) => Probe::Pending(error.to_string()),
        Ok(configz) => match differences(changes, &configz) {
            none if none.is_empty() => Probe::Done(configz),
            some => Probe::Pending(listed(&some)),
        },
    })
    .await;
    match asked {
        Ok(configz) => Ok(configz),
        Err(stalled) => {
            let command = ["journalctl", "-u", "kubelet", "-n", "5", "-o", "cat", "--no-pager"];
            let log = node.run(&command).await?;
            Err(TuneError::NotInForce { node: node.name.clone(), stalled, log })
        }
    }
}

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
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
