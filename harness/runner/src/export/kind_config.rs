//! The kind configuration of an exported case.

use serde_json::{Map, Value, json};

use super::Machine;
use super::signal::{beforehand, flag, of_each_node};
use super::workers::{Cluster, Worker};
use crate::case::{Case, LoadedCase, Pressure};
use crate::tune;

/// The file's text.
///
/// # Errors
/// The case's own fields are no YAML.
pub fn kind_config(
    loaded: &LoadedCase,
    cluster: &Cluster<'_>,
    machine: &Machine,
) -> Result<String, serde_yaml::Error> {
    let case = &loaded.case;
    let workers: String = cluster.workers.iter().map(worker).collect();
    let of_all = json!(of_all_kubelets(case, cluster, machine));
    let of_workers = json!({"nodeRegistration": {"kubeletExtraArgs": of_workers(case, machine)}});
    Ok(format!(
        "\
# The cluster for evictlab's case {id}. kind 0.32 or newer takes it as it is.
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
  image: {image}
{workers}kubeadmConfigPatches:
# For all kubelets.
- |
  kind: KubeletConfiguration
{of_all}# For the workers. A map and no apiVersion: kind fits it to every version of kubeadm.
{threshold}- |
  kind: JoinConfiguration
{of_workers}",
        id = loaded.id(),
        image = cluster.group.control_plane,
        of_all = indented(&of_all)?,
        of_workers = indented(&of_workers)?,
        threshold = case.pressure.as_ref().map(|pressure| remark(pressure, machine)).unwrap_or_default(),
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

/// What a run sets on every node, and the case's own fields.
fn of_all_kubelets(case: &Case, cluster: &Cluster<'_>, machine: &Machine) -> Map<String, Value> {
    let mut config = tune::base(machine.cgroup_v1);
    config.extend(tune::at_boot(&cluster.group.version, machine.cgroup_v1));
    config.extend(case.kubelet_config.clone());
    config
}

/// Fresh container statistics, and the threshold.
fn of_workers(case: &Case, machine: &Machine) -> Map<String, Value> {
    let mut flags = Map::from_iter([("housekeeping-interval".to_owned(), json!("1s"))]);
    if let Some(pressure) = &case.pressure {
        let signal = pressure.signal.as_str();
        flags.insert(flag(pressure).to_owned(), json!(format!("{signal}<{}", beforehand(pressure, machine))));
        if let Some(grace) = pressure.soft_grace {
            let grace = humantime::format_duration(grace.get());
            flags.insert("eviction-soft-grace-period".to_owned(), json!(format!("{signal}={grace}")));
        }
    }
    flags
}

/// What the threshold is good for.
fn remark(pressure: &Pressure, machine: &Machine) -> String {
    let so_far = match of_each_node(pressure.signal) {
        true => format!("is for a machine with {}Mi of memory", machine.memory >> 20),
        false => "is never met".to_owned(),
    };
    format!("# {} as it is here {so_far}: run.sh sets it anew from what each worker has.\n", flag(pressure))
}

/// A value as YAML, as far to the right as the text of a patch stands.
fn indented(value: &Value) -> Result<String, serde_yaml::Error> {
    Ok(serde_yaml::to_string(value)?.lines().map(|line| format!("  {line}\n")).collect())
}
