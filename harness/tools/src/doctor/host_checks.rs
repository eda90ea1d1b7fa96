//! Checks of the Docker host.

use bollard::models::{SystemInfo, SystemInfoCgroupVersionEnum};
use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::{GIB, MIB};

use super::check::{Check, CheckSubject};
use super::host_probe::HostFacts;
use evictlab_cluster::HOST_RESERVE;
use evictlab_runner::HOST_BUDGET;

/// Memory of a memory case: the distance to its threshold and the usage of its containers.
const CASE_MEMORY: u64 = 416 * MIB;
/// Memory of a cluster before any case.
const CLUSTER_MEMORY: u64 = GIB;
/// Below this, nodes of kind soon run out of disk.
const MIN_DISK: u64 = 3 * GIB;
/// Enough for node images, case images and the layers of the nodes.
const RECOMMENDED_DISK: u64 = 10 * GIB;
/// <https://kind.sigs.k8s.io/docs/user/known-issues/#pod-errors-due-to-too-many-open-files>
const RECOMMENDED_INSTANCES: u64 = 512;
const RECOMMENDED_WATCHES: u64 = 524_288;
/// Docker 20.10, the first with private cgroup namespaces, which kind requests.
const MIN_API_VERSION: (usize, usize) = (1, 41);

/// Checks the version of the daemon.
pub(crate) fn daemon(host: &str, info: &SystemInfo, api: (usize, usize)) -> Check {
    let text = |field: &Option<String>| field.clone().unwrap_or_else(|| "unknown".to_owned());
    let found = format!(
        "Docker {} (API {}.{}) at {host}, storage driver {}, {} CPUs, {}",
        text(&info.server_version),
        api.0,
        api.1,
        text(&info.driver),
        info.ncpu.unwrap_or(0),
        text(&info.operating_system),
    );
    if info.os_type.as_deref().is_some_and(|os| os != "linux") {
        return Check::fail(
            CheckSubject::Docker,
            format!("{found}; it does not run Linux containers"),
            "Switch Docker to Linux containers.",
        );
    }
    if api < MIN_API_VERSION {
        return Check::fail(
            CheckSubject::Docker,
            format!("{found}; kind needs 20.10 or newer"),
            "Install a newer Docker: https://docs.docker.com/engine/install/",
        );
    }
    Check::ok(CheckSubject::Docker, found)
}

/// Checks the cgroup version for these kubelets.
pub(crate) fn cgroup(info: &SystemInfo, kubelets: &[KubeletVersion]) -> Check {
    let driver = info.cgroup_driver.map_or_else(|| "unknown".to_owned(), |driver| driver.to_string());
    let rootless =
        info.security_options.iter().flatten().any(|option| option.split(',').any(|o| o == "name=rootless"));
    match info.cgroup_version {
        Some(SystemInfoCgroupVersionEnum::_1) if rootless => Check::fail(
            CheckSubject::Cgroup,
            format!("cgroup v1, driver {driver}, and rootless Docker, which kind supports only on v2"),
            "Boot the host with systemd.unified_cgroup_hierarchy=1, or run Docker as root.",
        ),
        Some(SystemInfoCgroupVersionEnum::_1) => {
            let new: Vec<String> =
                kubelets.iter().filter(|version| version.at_least(35)).map(ToString::to_string).collect();
            let here = if new.is_empty() { String::new() } else { format!(" ({})", new.join(", ")) };
            Check::warn(
                CheckSubject::Cgroup,
                format!("cgroup v1, driver {driver}; the kernel notifies the kubelet of memory pressure"),
                format!(
                    "No action now: kubelets from 1.35{here} reject v1 unless failCgroupV1 is false, which evictlab sets. kind will drop v1: plan to move the host to v2."
                ),
            )
        }
        Some(SystemInfoCgroupVersionEnum::_2) => Check::ok(
            CheckSubject::Cgroup,
            format!("cgroup v2, driver {driver}; the kubelet polls for memory pressure every 10 s"),
        ),
        _ => Check::unknown(
            CheckSubject::Cgroup,
            "Docker does not report the cgroup version",
            "Update Docker.",
        ),
    }
}

/// Checks the inotify limits.
pub(crate) fn inotify(facts: &HostFacts) -> Check {
    let (Some(instances), Some(watches)) = (facts.inotify_instances, facts.inotify_watches) else {
        return Check::unknown(CheckSubject::Inotify, "the Docker host has no fs.inotify limits", "");
    };
    let found = format!("max_user_instances {instances}, max_user_watches {watches}");
    let low = [
        ("fs.inotify.max_user_instances", instances, RECOMMENDED_INSTANCES),
        ("fs.inotify.max_user_watches", watches, RECOMMENDED_WATCHES),
    ];
    let raise: Vec<String> = low
        .iter()
        .filter(|(_, has, wants)| has < wants)
        .map(|(name, _, wants)| format!("{name}={wants}"))
        .collect();
    if raise.is_empty() {
        Check::ok(CheckSubject::Inotify, found)
    } else {
        Check::warn(
            CheckSubject::Inotify,
            format!("{found}; clusters of several nodes may fail with \"too many open files\""),
            format!("On the Docker host: sysctl {}", raise.join(" ")),
        )
    }
}

/// Checks the memory for a cluster that runs a memory case on each kubelet in parallel.
pub(crate) fn memory(facts: &HostFacts, total: Option<u64>, kubelets: usize) -> Check {
    let Some(available) = facts.memory_available else {
        return Check::unknown(CheckSubject::Memory, "the Docker host has no MemAvailable", "");
    };
    let of_total = total.map(|total| format!(" of {}", format_bytes(total))).unwrap_or_default();
    let found = format!("{} available{of_total}", format_bytes(available));
    let one = HOST_RESERVE + CLUSTER_MEMORY + CASE_MEMORY;
    let all = HOST_RESERVE + CLUSTER_MEMORY + (CASE_MEMORY * kubelets.max(1) as u64).min(HOST_BUDGET);
    let parts = format!(
        "{} reserve, about {} for a cluster, {} for a memory case",
        format_bytes(HOST_RESERVE),
        format_bytes(CLUSTER_MEMORY),
        format_bytes(CASE_MEMORY)
    );
    let free = "Free memory on the Docker host, or give its virtual machine more";
    match available {
        enough if enough >= all => Check::ok(CheckSubject::Memory, found),
        little if little >= one => Check::warn(
            CheckSubject::Memory,
            format!(
                "{found}; {} recommended for {kubelets} kubelets in parallel: {parts}",
                format_bytes(all)
            ),
            format!("{free}; otherwise cases on several nodes may be rejected."),
        ),
        _ => Check::fail(
            CheckSubject::Memory,
            format!("{found}, {} required: {parts}", format_bytes(one)),
            format!("{free}; cases that do not fit are rejected."),
        ),
    }
}

/// Checks the free space for Docker's data.
pub(crate) fn disk(facts: &HostFacts, root: Option<&str>) -> Check {
    let Some(free) = facts.disk_free else {
        return Check::unknown(
            CheckSubject::Disk,
            "the free space of the container's file system is unknown",
            "",
        );
    };
    let found =
        format!("{} free for Docker's data ({})", format_bytes(free), root.unwrap_or("directory unknown"));
    let remedy = "Free disk space on the Docker host: `docker system df` shows its usage.";
    match free {
        free if free < MIN_DISK => Check::fail(
            CheckSubject::Disk,
            format!("{found}, at least {} required", format_bytes(MIN_DISK)),
            remedy,
        ),
        free if free < RECOMMENDED_DISK => Check::warn(
            CheckSubject::Disk,
            format!(
                "{found}; a node image takes about 1 GiB, {} recommended",
                format_bytes(RECOMMENDED_DISK)
            ),
            remedy,
        ),
        _ => Check::ok(CheckSubject::Disk, found),
    }
}

/// Formats bytes as `2464 MiB` or `18.4 GiB`.
fn format_bytes(bytes: u64) -> String {
    match bytes {
        large if large >= 10 * GIB => format!("{:.1} GiB", large as f64 / GIB as f64),
        small => format!("{} MiB", small / MIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::CheckState;
    use SystemInfoCgroupVersionEnum::{_1, _2};

    #[track_caller]
    fn is(check: &Check, state: CheckState, says: &str) {
        let text = format!("{} | {}", check.finding, check.remedy.clone().unwrap_or_default());
        assert!(check.state == state && text.contains(says), "{check:?} is not {state} with {says:?}");
        assert_eq!(check.state == CheckState::Ok, check.remedy.is_none(), "{check:?}");
    }

    #[test]
    fn requires_a_recent_daemon_with_linux_containers() {
        for (os, api, state, says) in [
            (
                "linux",
                (1, 41),
                CheckState::Ok,
                "Docker 20.10.24 (API 1.41) at unix:///d.sock, storage driver overlay2",
            ),
            ("linux", (1, 40), CheckState::Fail, "needs 20.10"),
            ("windows", (1, 51), CheckState::Fail, "Linux containers"),
        ] {
            let info = SystemInfo {
                server_version: Some("20.10.24".to_owned()),
                driver: Some("overlay2".to_owned()),
                os_type: Some(os.to_owned()),
                ..Default::default()
            };
            is(&daemon("unix:///d.sock", &info, api), state, says);
        }
    }

    #[test]
    fn accepts_both_cgroup_versions() {
        for (version, rootless, kubelets, state, says) in [
            (Some(_2), false, &["v1.36.2"][..], CheckState::Ok, "cgroup v2"),
            (Some(_2), true, &[], CheckState::Ok, "cgroup v2"),
            (Some(_1), false, &["v1.32.13"], CheckState::Warn, "kubelets from 1.35 reject v1"),
            (
                Some(_1),
                false,
                &["v1.32.13", "v1.35.0", "v1.36.2"],
                CheckState::Warn,
                "1.35 (v1.35.0, v1.36.2) reject v1",
            ),
            (Some(_1), true, &[], CheckState::Fail, "rootless"),
            (None, false, &[], CheckState::Unknown, "not checked"),
        ] {
            let security = if rootless { "name=rootless" } else { "name=seccomp,profile=default" };
            let info = SystemInfo {
                cgroup_version: version,
                security_options: Some(vec![security.to_owned()]),
                ..Default::default()
            };
            let kubelets: Vec<KubeletVersion> = kubelets.iter().map(|text| text.parse().unwrap()).collect();
            is(&cgroup(&info, &kubelets), state, says);
        }
    }

    #[test]
    fn reports_low_inotify_limits_with_the_command() {
        for (instances, watches, state, says) in [
            (512, 524_288, CheckState::Ok, "max_user_instances 512"),
            (511, 524_288, CheckState::Warn, "sysctl fs.inotify.max_user_instances=512"),
            (
                128,
                8192,
                CheckState::Warn,
                "sysctl fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=524288",
            ),
        ] {
            let facts = HostFacts {
                inotify_instances: Some(instances),
                inotify_watches: Some(watches),
                ..HostFacts::default()
            };
            is(&inotify(&facts), state, says);
        }
    }

    #[test]
    fn requires_memory_for_a_cluster_a_case_and_the_reserve() {
        for (available, kubelets, state, says) in [
            (2464, 0, CheckState::Ok, "2464 MiB available of 24.0 GiB"),
            (2464, 1, CheckState::Ok, ""),
            (2463, 1, CheckState::Fail, "2464 MiB required"),
            (2464, 2, CheckState::Warn, "2880 MiB recommended for 2 kubelets"),
            (2880, 2, CheckState::Ok, ""),
            // All cases together never use more than their budget.
            (3328, 9, CheckState::Ok, ""),
        ] {
            let facts = HostFacts { memory_available: Some(available * MIB), ..HostFacts::default() };
            is(&memory(&facts, Some(24 * GIB), kubelets), state, says);
        }
    }

    #[test]
    fn requires_free_disk_space() {
        for (free, state) in [
            (3 * GIB - 1, CheckState::Fail),
            (3 * GIB, CheckState::Warn),
            (10 * GIB - 1, CheckState::Warn),
            (10 * GIB, CheckState::Ok),
        ] {
            let facts = HostFacts { disk_free: Some(free), ..HostFacts::default() };
            is(&disk(&facts, Some("/var/lib/docker")), state, "free for Docker's data (/var/lib/docker)");
        }
    }

    #[test]
    fn missing_facts_are_unknown() {
        let nothing = HostFacts::default();
        for check in [inotify(&nothing), memory(&nothing, None, 1), disk(&nothing, None)] {
            assert_eq!(check.state, CheckState::Unknown, "{check:?}");
        }
    }
}
