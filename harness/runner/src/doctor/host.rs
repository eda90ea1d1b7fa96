//! What the Docker host is, and whether that will do.

use bollard::models::{SystemInfo, SystemInfoCgroupVersionEnum};
use evictlab_rules::KubeletVersion;

use super::probe::Told;
use super::{About, Check};
use crate::schedule::{BUDGET, RESERVE};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// What a memory case takes of the host: the distance to its threshold and what its containers use besides.
const CASE: u64 = 416 * MIB;
/// What a cluster takes of the host before any case.
const CLUSTER: u64 = GIB;
/// Under this kind's nodes run out of disk before long.
const DISK_LEAST: u64 = 3 * GIB;
/// Node images, case images and the nodes' own layers fit.
const DISK_ENOUGH: u64 = 10 * GIB;
/// <https://kind.sigs.k8s.io/docs/user/known-issues/#pod-errors-due-to-too-many-open-files>
const INSTANCES: u64 = 512;
const WATCHES: u64 = 524_288;
/// Docker 20.10, the first with private cgroup namespaces, which kind asks for.
const OLDEST_API: (usize, usize) = (1, 41);

/// Which daemon it is, and whether kind can use it.
pub fn daemon(host: &str, info: &SystemInfo, api: (usize, usize)) -> Check {
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
            About::Docker,
            format!("{found}; it runs no Linux containers"),
            "Switch Docker to Linux containers.",
        );
    }
    if api < OLDEST_API {
        return Check::fail(
            About::Docker,
            format!("{found}; kind needs 20.10 or newer"),
            "Install a newer Docker: https://docs.docker.com/engine/install/",
        );
    }
    Check::ok(About::Docker, found)
}

/// The cgroups, for these kubelets.
pub fn cgroup(info: &SystemInfo, kubelets: &[KubeletVersion]) -> Check {
    let driver = info.cgroup_driver.map_or_else(|| "unknown".to_owned(), |driver| driver.to_string());
    let rootless =
        info.security_options.iter().flatten().any(|option| option.split(',').any(|o| o == "name=rootless"));
    match info.cgroup_version {
        Some(SystemInfoCgroupVersionEnum::_1) if rootless => Check::fail(
            About::Cgroup,
            format!("cgroup v1, driver {driver}, and Docker runs rootless, which kind can use on v2 only"),
            "Boot the host with systemd.unified_cgroup_hierarchy=1, or run Docker as root.",
        ),
        Some(SystemInfoCgroupVersionEnum::_1) => {
            let new: Vec<String> =
                kubelets.iter().filter(|version| version.at_least(35)).map(ToString::to_string).collect();
            let here = if new.is_empty() { String::new() } else { format!(" ({})", new.join(", ")) };
            Check::warn(
                About::Cgroup,
                format!("cgroup v1, driver {driver}; the kernel notifies the kubelet of memory pressure"),
                format!(
                    "Nothing now: kubelets from 1.35 on{here} refuse v1 unless failCgroupV1 is false, which evictlab sets. kind will drop v1; move the host to v2 in time."
                ),
            )
        }
        Some(SystemInfoCgroupVersionEnum::_2) => Check::ok(
            About::Cgroup,
            format!("cgroup v2, driver {driver}; the kubelet polls for memory pressure every 10 s"),
        ),
        _ => Check::unknown(About::Cgroup, "Docker does not say which version it has", "Update Docker."),
    }
}

/// The inotify limits.
pub fn inotify(told: &Told) -> Check {
    let (Some(instances), Some(watches)) = (told.inotify_instances, told.inotify_watches) else {
        return Check::unknown(About::Inotify, "the Docker host shows no fs.inotify limits", "");
    };
    let found = format!("max_user_instances {instances}, max_user_watches {watches}");
    let low = [
        ("fs.inotify.max_user_instances", instances, INSTANCES),
        ("fs.inotify.max_user_watches", watches, WATCHES),
    ];
    let raise: Vec<String> = low
        .iter()
        .filter(|(_, has, wants)| has < wants)
        .map(|(name, _, wants)| format!("{name}={wants}"))
        .collect();
    match raise.is_empty() {
        true => Check::ok(About::Inotify, found),
        false => Check::warn(
            About::Inotify,
            format!("{found}; clusters of several nodes may fail with \"too many open files\""),
            format!("On the Docker host: sysctl {}", raise.join(" ")),
        ),
    }
}

/// The memory, for a cluster that runs a memory case on each of so many kubelets at once.
pub fn memory(told: &Told, total: Option<u64>, kubelets: usize) -> Check {
    let Some(available) = told.memory_available else {
        return Check::unknown(About::Memory, "the Docker host shows no MemAvailable", "");
    };
    let of_total = total.map(|total| format!(" of {}", mib(total))).unwrap_or_default();
    let found = format!("{} available{of_total}", mib(available));
    let one = RESERVE + CLUSTER + CASE;
    let all = RESERVE + CLUSTER + (CASE * kubelets.max(1) as u64).min(BUDGET);
    let parts = format!(
        "{} stay free, a cluster takes about {}, a memory case {}",
        mib(RESERVE),
        mib(CLUSTER),
        mib(CASE)
    );
    let free = "Free memory on the Docker host, or give its virtual machine more";
    match available {
        enough if enough >= all => Check::ok(About::Memory, found),
        little if little >= one => Check::warn(
            About::Memory,
            format!("{found}; {} are good for {kubelets} kubelets at once: {parts}", mib(all)),
            format!("{free}; until then cases on several nodes may be refused."),
        ),
        _ => Check::fail(
            About::Memory,
            format!("{found}, {} are needed: {parts}", mib(one)),
            format!("{free}; cases that do not fit are refused."),
        ),
    }
}

/// The free space of Docker's data.
pub fn disk(told: &Told, root: Option<&str>) -> Check {
    let Some(free) = told.disk_free else {
        return Check::unknown(About::Disk, "the container's file system shows no free space", "");
    };
    let found = format!("{} free for Docker's data ({})", mib(free), root.unwrap_or("place unknown"));
    let advice = "Make room on the Docker host: `docker system df` shows what takes it.";
    match free {
        free if free < DISK_LEAST => {
            Check::fail(About::Disk, format!("{found}, at least {} are needed", mib(DISK_LEAST)), advice)
        }
        free if free < DISK_ENOUGH => Check::warn(
            About::Disk,
            format!("{found}; a node image takes about 1 GiB, and {} are good", mib(DISK_ENOUGH)),
            advice,
        ),
        _ => Check::ok(About::Disk, found),
    }
}

/// `2464 MiB`, `18.4 GiB`.
fn mib(bytes: u64) -> String {
    match bytes {
        large if large >= 10 * GIB => format!("{:.1} GiB", large as f64 / GIB as f64),
        small => format!("{} MiB", small / MIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;
    use SystemInfoCgroupVersionEnum::{_1, _2};

    #[track_caller]
    fn is(check: &Check, state: State, says: &str) {
        let text = format!("{} | {}", check.found, check.advice.clone().unwrap_or_default());
        assert!(check.state == state && text.contains(says), "{check:?} is not {state} with {says:?}");
        assert_eq!(check.state == State::Ok, check.advice.is_none(), "{check:?}");
    }

    #[test]
    fn the_daemon_must_run_linux_and_be_new_enough() {
        for (os, api, state, says) in [
            (
                "linux",
                (1, 41),
                State::Ok,
                "Docker 20.10.24 (API 1.41) at unix:///d.sock, storage driver overlay2",
            ),
            ("linux", (1, 40), State::Fail, "needs 20.10"),
            ("windows", (1, 51), State::Fail, "Linux containers"),
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
    fn cgroups_of_both_versions_will_do() {
        for (version, rootless, kubelets, state, says) in [
            (Some(_2), false, &["v1.36.2"][..], State::Ok, "cgroup v2"),
            (Some(_2), true, &[], State::Ok, "cgroup v2"),
            (Some(_1), false, &["v1.32.13"], State::Warn, "kubelets from 1.35 on refuse v1"),
            (
                Some(_1),
                false,
                &["v1.32.13", "v1.35.0", "v1.36.2"],
                State::Warn,
                "1.35 on (v1.35.0, v1.36.2) refuse v1",
            ),
            (Some(_1), true, &[], State::Fail, "rootless"),
            (None, false, &[], State::Unknown, "not checked"),
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
    fn low_inotify_limits_are_told_with_the_command() {
        for (instances, watches, state, says) in [
            (512, 524_288, State::Ok, "max_user_instances 512"),
            (511, 524_288, State::Warn, "sysctl fs.inotify.max_user_instances=512"),
            (
                128,
                8192,
                State::Warn,
                "sysctl fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=524288",
            ),
        ] {
            let told = Told {
                inotify_instances: Some(instances),
                inotify_watches: Some(watches),
                ..Told::default()
            };
            is(&inotify(&told), state, says);
        }
    }

    #[test]
    fn memory_must_do_for_a_cluster_a_case_and_the_reserve() {
        for (available, kubelets, state, says) in [
            (2464, 0, State::Ok, "2464 MiB available of 24.0 GiB"),
            (2464, 1, State::Ok, ""),
            (2463, 1, State::Fail, "2464 MiB are needed"),
            (2464, 2, State::Warn, "2880 MiB are good for 2 kubelets"),
            (2880, 2, State::Ok, ""),
            // Cases never take more than their budget together.
            (3328, 9, State::Ok, ""),
        ] {
            let told = Told { memory_available: Some(available * MIB), ..Told::default() };
            is(&memory(&told, Some(24 * GIB), kubelets), state, says);
        }
    }

    #[test]
    fn disk_must_have_room() {
        for (free, state) in [
            (3 * GIB - 1, State::Fail),
            (3 * GIB, State::Warn),
            (10 * GIB - 1, State::Warn),
            (10 * GIB, State::Ok),
        ] {
            let told = Told { disk_free: Some(free), ..Told::default() };
            is(&disk(&told, Some("/var/lib/docker")), state, "free for Docker's data (/var/lib/docker)");
        }
    }

    #[test]
    fn what_was_not_told_is_not_guessed() {
        let nothing = Told::default();
        for check in [inotify(&nothing), memory(&nothing, None, 1), disk(&nothing, None)] {
            assert_eq!(check.state, State::Unknown, "{check:?}");
        }
    }
}
