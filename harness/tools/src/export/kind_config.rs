//! The kind configuration of an exported case.

use serde_json::{Map, Value, json};

use super::cluster::{ExportCluster, Worker};
use super::comment::comment;
use super::host_info::HostInfo;
use super::signal::{flag, initial_threshold, is_per_node};
use evictlab_case::{Case, LoadedCase, Pressure};
use evictlab_cluster::{OLDEST_KIND, kubelet_config};
use evictlab_rules::format_go_duration;

/// Returns the text of the file.
///
/// # Errors
///
/// Fields of the case cannot be written as YAML.
pub(crate) fn kind_config(
    loaded: &LoadedCase,
    cluster: &ExportCluster<'_>,
    host: &HostInfo,
) -> Result<String, serde_yaml::Error> {
    let case = &loaded.case;
    let workers: String = cluster.workers.iter().map(worker).collect();
    let of_all = json!(common_config(case, cluster, host));
    let of_workers = json!({"nodeRegistration": {"kubeletExtraArgs": worker_flags(case, host)}});
    Ok(format!(
        "\
{head}kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
  image: {image}
{workers}kubeadmConfigPatches:
# For all kubelets.
- |
  kind: KubeletConfiguration
{of_all}# For the workers. A map without apiVersion: kind converts it for every version of kubeadm.
{threshold}- |
  kind: JoinConfiguration
{of_workers}",
        head = comment(&format!(
            "The cluster for the evictlab case {}. Requires kind {}.{} or newer.",
            loaded.id(),
            OLDEST_KIND.major,
            OLDEST_KIND.minor
        )),
        image = cluster.group.control_plane,
        of_all = indented(&of_all)?,
        of_workers = indented(&of_workers)?,
        threshold =
            case.pressure.as_ref().map(|pressure| threshold_comment(pressure, host)).unwrap_or_default(),
    ))
}

fn worker(worker: &Worker<'_>) -> String {
    let Worker { node, kubelet, .. } = worker;
    let mount = worker.binary().map(|file| {
        format!(
            "  extraMounts:\n  - {{hostPath: ./{file}, containerPath: /usr/bin/kubelet, readOnly: true}}\n"
        )
    });
    let mount = mount.unwrap_or_default();
    format!("- role: worker # {node}, kubelet {}\n  image: {}\n{mount}", kubelet.version, kubelet.image)
}

/// Returns the configuration of every node in a run, and the fields of the case.
fn common_config(case: &Case, cluster: &ExportCluster<'_>, host: &HostInfo) -> Map<String, Value> {
    let mut config = kubelet_config::base(host.cgroup);
    config.extend(kubelet_config::at_boot(&cluster.group.version, host.cgroup));
    config.extend(case.kubelet_config.clone());
    config
}

/// Returns the flags of workers: short intervals of container statistics, and the threshold.
fn worker_flags(case: &Case, host: &HostInfo) -> Map<String, Value> {
    let mut flags = Map::from_iter([("housekeeping-interval".to_owned(), json!("1s"))]);
    if let Some(pressure) = &case.pressure {
        let signal = pressure.signal.as_str();
        flags.insert(
            flag(pressure).to_owned(),
            json!(format!("{signal}<{}", initial_threshold(pressure, host))),
        );
        if let Some(grace) = pressure.soft_grace {
            let grace = format_go_duration(grace.get());
            flags.insert("eviction-soft-grace-period".to_owned(), json!(format!("{signal}={grace}")));
        }
    }
    flags
}

/// Returns a comment about the threshold.
fn threshold_comment(pressure: &Pressure, host: &HostInfo) -> String {
    let validity = if is_per_node(pressure.signal) {
        format!("is for a machine with {}Mi of memory", host.memory >> 20)
    } else {
        "is never met".to_owned()
    };
    format!(
        "# This {} {validity}: run.sh computes it from the available amount of each worker.\n",
        flag(pressure)
    )
}

/// Formats a value as YAML with the indentation of a patch.
fn indented(value: &Value) -> Result<String, serde_yaml::Error> {
    Ok(serde_yaml::to_string(value)?.lines().map(|line| format!("  {line}\n")).collect())
}
