//! Operations on the container of a worker. The original files are kept next to the changed ones,
//! so that any process can restore the node after a dead run.

use evictlab_api_types::merge_fields;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::kind_exec::{runc_exec, runc_problem};
use crate::docker::{Docker, ExecOutput};
use crate::images::{load_unpinned, load_unused, remove_unused};
use crate::node::error::{ConfigureError, NodeError};
use crate::probe::available_memory;

/// Maximum number of lines of the kubelet log to read: the last ones.
pub const MAX_KUBELET_LOG_LINES: usize = 50_000;
/// Path of the kubelet configuration.
const CONFIG: &str = "/var/lib/kubelet/config.yaml";
/// Directory of static pods.
const STATIC_PODS: &str = "/etc/kubernetes/manifests";
/// File with additional kubelet flags, which systemd reads.
const FLAGS: &str = "/etc/default/kubelet";
/// Changed files, and the backups of their original content.
const ORIGINALS: [(&str, &str); 2] =
    [(CONFIG, "/var/lib/kubelet/config.yaml.evictlab"), (FLAGS, "/etc/default/kubelet.evictlab")];
/// A file before it is moved to its place.
const STAGED_FILE: &str = "/kind/evictlab-file";
/// Restarts the kubelet. `reset-failed` clears systemd's start counter: cases restart the kubelet
/// more often than the start limit allows.
const RESTART: &str = "systemctl reset-failed kubelet || :; systemctl restart kubelet";
/// Writes files: arguments are the path, mode and content of each. A renamed file is complete.
const WRITE_FILES: &str = r#"while [ $# -gt 0 ]; do
  (umask 077; printf %s "$3" > "$1.new")
  chmod "$2" "$1.new"
  mv "$1.new" "$1"
  shift 3
done"#;
/// Flag for fresh container statistics. The default interval of cAdvisor is 10 s or more
/// (`cmd/kubelet/app/options/globalflags_linux.go`).
const HOUSEKEEPING: &str = "--housekeeping-interval=1s";

/// A kind node: the container with the name of the node.
#[derive(Clone, Debug)]
pub struct KindNode {
    pub(crate) node: String,
    pub(crate) docker: Docker,
    /// The kubelet's directory is on a file system of its own.
    pub(crate) own_disk: bool,
}

impl KindNode {
    pub(super) async fn configure(&self, changes: &Map<String, Value>) -> Result<(), ConfigureError> {
        let [original_config, original_flags] = self.back_up_originals().await?;
        let invalid = |problem: String| ConfigureError::InvalidConfig {
            node: self.node.clone(),
            file: CONFIG.to_owned(),
            problem,
        };
        let mut changed: Value = serde_saphyr::from_str(&original_config)
            .map_err(|error| invalid(error.without_snippet().to_string()))?;
        let fields = changed.as_object_mut().ok_or_else(|| invalid("not a mapping".to_owned()))?;
        merge_fields(fields, changes);
        let changed = serde_yaml::to_string(&changed).map_err(|error| invalid(error.to_string()))?;
        let flags = with_housekeeping_flag(&original_flags);
        // One command: each costs the host as much as a tenth of the kubelet's start.
        let script = format!("{WRITE_FILES}\n{RESTART}");
        self.run(&["sh", "-ec", &script, "sh", CONFIG, "600", &changed, FLAGS, "644", &flags]).await?;
        Ok(())
    }

    pub(super) async fn has_short_housekeeping_interval(&self) -> Result<bool, NodeError> {
        let running = self.run(&["sh", "-c", "tr '\\0' ' ' < /proc/$(pidof kubelet)/cmdline"]).await?;
        Ok(running.contains(HOUSEKEEPING))
    }

    pub(super) async fn restore_config(&self) -> Result<bool, NodeError> {
        // Copied with its mode and renamed: an interruption leaves complete files and the
        // backups.
        let restore = ORIGINALS.map(|(path, original)| {
            format!(
                "if [ -e {original} ]; then cp -p {original} {path}.new && mv {path}.new {path} && echo restored; fi"
            )
        });
        if self.run(&["sh", "-ec", &restore.join("\n")]).await?.is_empty() {
            return Ok(false);
        }
        self.restart_kubelet().await?;
        Ok(true)
    }

    pub(super) async fn confirm_restored(&self) -> Result<(), NodeError> {
        // A delayed write of an interrupted run may have changed the files again.
        let verify = ORIGINALS.map(|(path, original)| {
            format!("if [ -e {original} ]; then cmp {original} {path} && rm {original}; fi")
        });
        self.run(&["sh", "-ec", &verify.join("\n")]).await.map(drop)
    }

    pub(super) async fn kubelet_log(&self, since: Timestamp) -> Result<Vec<String>, NodeError> {
        let since = format!("@{}", since.as_second());
        let lines = MAX_KUBELET_LOG_LINES.to_string();
        let command =
            ["journalctl", "-u", "kubelet", "--no-pager", "-o", "cat", "-n", &lines, "--since", &since];
        let log = self.run(&command).await?;
        // A kubelet that starts pods writes lines: without any, the journal is not the kubelet's.
        if log.is_empty() {
            return Err(NodeError::InvalidResponse {
                operation: "read the kubelet log",
                node: self.node.clone(),
                problem: format!("the journal has no line of the unit kubelet since {since}"),
            });
        }
        Ok(log.lines().map(str::to_owned).collect())
    }

    pub(super) async fn log_tail(&self) -> Result<String, NodeError> {
        let command = ["journalctl", "-u", "kubelet", "-n", "5", "-o", "cat", "--no-pager"];
        self.run(&command).await
    }

    pub(super) async fn host_memory(&self) -> Result<u64, NodeError> {
        let meminfo = self.run(&["cat", "/proc/meminfo"]).await?;
        available_memory(&meminfo).ok_or_else(|| NodeError::InvalidResponse {
            operation: "read the available memory",
            node: self.node.clone(),
            problem: "/proc/meminfo has no MemAvailable".to_owned(),
        })
    }

    pub(super) async fn host_disk(&self) -> Result<u64, NodeError> {
        let output = self.run(&["df", "--output=avail", "-B1", "/kind"]).await?;
        let available = output.lines().last().and_then(|line| line.trim().parse().ok());
        available.ok_or_else(|| NodeError::InvalidResponse {
            operation: "read the available disk",
            node: self.node.clone(),
            problem: format!("unexpected output of df: {output:?}"),
        })
    }

    pub(super) async fn limit_memory(&self, bytes: Option<u64>) -> Result<(), NodeError> {
        Ok(self.docker.limit_memory(&self.node, bytes).await?)
    }

    pub(super) async fn set_paused(&self, paused: bool) -> Result<(), NodeError> {
        Ok(self.docker.set_paused(&self.node, paused).await?)
    }

    /// Runs a command in a container with the environment of its first process.
    pub(super) async fn exec(&self, container: &str, command: &[String]) -> Result<ExecOutput, NodeError> {
        let output = self.docker.exec(&self.node, &runc_exec(container, command)).await?;
        match runc_problem(&output) {
            Some(problem) => Err(NodeError::exec(container, command, problem)),
            None => Ok(output),
        }
    }

    pub(super) async fn load_image(&self, image: &str) -> Result<(), NodeError> {
        Ok(load_unpinned(&self.docker, &self.node, image).await?)
    }

    pub(super) async fn add_unused_image(&self, bytes: u64) -> Result<(), NodeError> {
        Ok(load_unused(&self.docker, &self.node, bytes).await?)
    }

    pub(super) async fn remove_unused_images(&self) -> Result<(), NodeError> {
        Ok(remove_unused(&self.docker, &self.node).await?)
    }

    pub(super) async fn create_static_pod(&self, name: &str, pod: &Value) -> Result<(), NodeError> {
        self.write_file(&static_pod_file(name), 0o600, pod.to_string().as_bytes()).await
    }

    pub(super) async fn delete_static_pod(&self, name: &str) -> Result<(), NodeError> {
        self.run(&["rm", "-f", &static_pod_file(name)]).await.map(drop)
    }

    pub(super) async fn delete_static_pods(&self) -> Result<(), NodeError> {
        self.run(&["sh", "-c", &format!("rm -f {}", static_pod_file("*"))]).await.map(drop)
    }

    /// Backs up the original files, unless a backup exists, and returns their content.
    async fn back_up_originals(&self) -> Result<[String; 2], NodeError> {
        let back_up = ORIGINALS.map(|(path, original)| {
            format!("[ -e {path} ] || : > {path}; [ -e {original} ] || {{ cp -p {path} {original}.new && mv {original}.new {original}; }}")
        });
        let [(_, config), (_, flags)] = ORIGINALS;
        let read = format!("cat {config}; printf '\\0'; cat {flags}");
        let originals = self.run(&["sh", "-ec", &format!("{}\n{read}", back_up.join("\n"))]).await?;
        let (config, flags) = originals.split_once('\0').ok_or_else(|| NodeError::InvalidResponse {
            operation: "read the original configuration of the kubelet",
            node: self.node.clone(),
            problem: "the output is not complete".to_owned(),
        })?;
        Ok([config.to_owned(), flags.to_owned()])
    }

    /// Writes a file of the node. Docker writes files of the container's image and volumes, below
    /// the node's own file system, so the file is moved from there.
    async fn write_file(&self, path: &str, mode: u32, bytes: &[u8]) -> Result<(), NodeError> {
        self.docker.write_file(&self.node, STAGED_FILE, mode, bytes).await?;
        self.run(&["mv", STAGED_FILE, path]).await.map(drop)
    }

    /// Runs a command in the node and returns its standard output.
    async fn run(&self, command: &[&str]) -> Result<String, NodeError> {
        Ok(self.docker.run(&self.node, command).await?)
    }

    /// Restarts the kubelet; returns when the old process has exited. Pods continue to run.
    pub(super) async fn restart_kubelet(&self) -> Result<(), NodeError> {
        self.run(&["sh", "-ec", RESTART]).await.map(drop)
    }
}

/// Returns the file of a static pod of a case; those of all for the name `*`.
fn static_pod_file(name: &str) -> String {
    format!("{STATIC_PODS}/evictlab-{name}.yaml")
}

/// Adds the housekeeping flag to `KUBELET_EXTRA_ARGS` in the content of `/etc/default/kubelet`.
fn with_housekeeping_flag(original: &str) -> String {
    const VARIABLE: &str = "KUBELET_EXTRA_ARGS=";
    let mut lines: Vec<String> = original.lines().map(str::to_owned).collect();
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

    #[test]
    fn adds_the_flag_to_existing_flags() {
        let rows = [
            ("", "KUBELET_EXTRA_ARGS=--housekeeping-interval=1s\n"),
            (
                "A=b\nKUBELET_EXTRA_ARGS=--runtime-cgroups=/x",
                "A=b\nKUBELET_EXTRA_ARGS=--runtime-cgroups=/x --housekeeping-interval=1s\n",
            ),
            ("KUBELET_EXTRA_ARGS=\"--a --b\"\n", "KUBELET_EXTRA_ARGS=--a --b --housekeeping-interval=1s\n"),
            ("KUBELET_EXTRA_ARGS=\n", "KUBELET_EXTRA_ARGS=--housekeeping-interval=1s\n"),
        ];
        for (original, expected) in rows {
            assert_eq!(with_housekeeping_flag(original), expected, "{original:?}");
        }
    }
}
