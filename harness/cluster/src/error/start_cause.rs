//! Reasons why a kubelet does not start, from the lines of its log.

use std::fmt;

/// Maximum length of an error in a report, in characters.
const MAX_ERROR: usize = 400;

/// A reason that users can remove.
struct KnownCause {
    /// Texts in lower case. A line of the log that contains all of them states the reason.
    texts: &'static [&'static str],
    help: &'static str,
}

/// Help for too few inotify instances. kind names the same value:
/// <https://kind.sigs.k8s.io/docs/user/known-issues/#pod-errors-due-to-too-many-open-files>.
const INOTIFY_INSTANCES: &str = "raise the number of inotify instances on the Docker host: `sudo sysctl fs.inotify.max_user_instances=512`";

/// Help for a kubelet configuration that the kubelet rejects.
const CONFIGURATION: &str = "correct the KubeletConfiguration in the file of --kind-config";

/// The well-known reasons; the first one that matches a line applies.
static KNOWN_CAUSES: [KnownCause; 14] = [
    // inotify_add_watch returns ENOSPC at the limit (man 2 inotify_add_watch).
    KnownCause {
        texts: &["inotify_add_watch", "no space left on device"],
        help: "raise the number of inotify watches on the Docker host: `sudo sysctl fs.inotify.max_user_watches=524288`",
    },
    KnownCause { texts: &["inotify", "too many open files"], help: INOTIFY_INSTANCES },
    KnownCause { texts: &["fsnotify", "too many open files"], help: INOTIFY_INSTANCES },
    KnownCause {
        texts: &["failed to allocate manager object", "too many open files"],
        help: INOTIFY_INSTANCES,
    },
    // pkg/kubelet/apis/config/validation/validation_linux.go; since 1.35 by default.
    KnownCause {
        texts: &["configured to not run on a host using cgroup v1"],
        help: "set `failCgroupV1: false` in a KubeletConfiguration patch in the file of --kind-config, or use a host with cgroup v2",
    },
    // pkg/kubelet/cm/container_manager_linux.go.
    KnownCause {
        texts: &["running with swap on is not supported"],
        help: "set `failSwapOn: false` in a KubeletConfiguration patch in the file of --kind-config, or turn swap off on the Docker host: `sudo swapoff -a`",
    },
    // cmd/kubelet/app/server.go, pkg/kubelet/kubeletconfig/configfiles.
    KnownCause { texts: &["failed to load kubelet config file"], help: CONFIGURATION },
    KnownCause { texts: &["failed to validate kubelet configuration"], help: CONFIGURATION },
    KnownCause { texts: &["failed to run kubelet", "invalid configuration"], help: CONFIGURATION },
    KnownCause {
        texts: &["failed to parse kubelet flag"],
        help: "correct `kubeletExtraArgs` in the file of --kind-config",
    },
    KnownCause {
        texts: &["no space left on device"],
        help: "free space on the disk of the Docker host; `docker system df` shows what Docker uses",
    },
    KnownCause {
        texts: &["containerd.sock", "connect:"],
        help: "containerd does not run in the node; `docker exec NODE journalctl -u containerd` prints its log",
    },
    KnownCause {
        texts: &["containerd.sock", "unknown service runtime.v1"],
        help: "containerd in the node has no CRI plugin; use another node image or correct `containerdConfigPatches`",
    },
    // Docker in a user namespace, or in a container of LXC.
    KnownCause {
        texts: &["open /dev/kmsg"],
        help: "the node has no access to /dev/kmsg; set the feature gate KubeletInUserNamespace in the file of --kind-config",
    },
];

/// The reason why a kubelet does not start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StartCause {
    /// The error in the words of its log.
    pub(crate) error: String,
    /// Instruction, if the reason is well known.
    pub(crate) help: Option<&'static str>,
}

impl StartCause {
    /// Reads the log of a kubelet, oldest line first: the newest line that states a well-known
    /// reason, else the last error, else the last line. `None` if the log is empty.
    pub(crate) fn of_log(log: &str) -> Option<Self> {
        let known = |line: &&str| !is_info(line) && known_cause(line).is_some();
        let line = log.lines().rev().find(known).or_else(|| last_error(log))?;
        Some(Self { error: without_header(line), help: known_cause(line).map(|cause| cause.help) })
    }

    /// A reason without an instruction.
    pub(crate) fn unknown(error: String) -> Self {
        Self { error, help: None }
    }
}

impl fmt::Display for StartCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)?;
        self.help.map_or(Ok(()), |help| write!(f, "\nhelp: {help}"))
    }
}

fn known_cause(line: &str) -> Option<&'static KnownCause> {
    let line = line.to_lowercase();
    KNOWN_CAUSES.iter().find(|cause| cause.texts.iter().all(|text| line.contains(text)))
}

/// The last error of a log, else its last line that is not empty.
fn last_error(log: &str) -> Option<&str> {
    let lines = || log.lines().rev().filter(|line| !line.trim().is_empty());
    lines().find(|line| is_error(line)).or_else(|| lines().next())
}

/// The level of a line of klog, which begins with a header such as
/// `E0527 16:44:51.876371  453890 run.go:72] `.
fn klog_level(line: &str) -> Option<char> {
    let has_date = line.get(1..5).is_some_and(|date| date.bytes().all(|byte| byte.is_ascii_digit()));
    line.chars().next().filter(|level| has_date && "IWEF".contains(*level))
}

/// Returns whether a line is an information or a warning: the kubelet continues.
fn is_info(line: &str) -> bool {
    matches!(klog_level(line), Some('I' | 'W'))
}

/// Returns whether a line is an error or a fatal error of klog, a usage error, or a panic.
fn is_error(line: &str) -> bool {
    matches!(klog_level(line), Some('E' | 'F')) || line.starts_with("Error:") || line.starts_with("panic:")
}

/// The message of a line, without the header of klog.
fn without_header(line: &str) -> String {
    let message = line.split_once("] ").filter(|_| klog_level(line).is_some());
    let message = message.map_or(line, |(_, message)| message);
    let message = message.trim();
    match message.char_indices().nth(MAX_ERROR) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of real kubelets and of systemd in a node, with a word of the instruction.
    const REAL_LINES: [(&str, &str); 16] = [
        (
            r#"E0702 14:44:35.994664   42304 kubelet.go:1466] "Failed to start cAdvisor" err="inotify_init: too many open files""#,
            "fs.inotify.max_user_instances=512",
        ),
        (
            r#"E0702 14:44:35.994664   42304 file_linux.go:61] "Unable to read config path" err="unable to create inotify: too many open files" path="/etc/kubernetes/manifests""#,
            "fs.inotify.max_user_instances=512",
        ),
        (
            r#"E1123 14:47:21.372435   24479 dynamic_cafile_content.go:176] "Failed to watch CA file, will retry later" err="error creating fsnotify watcher: too many open files""#,
            "fs.inotify.max_user_instances=512",
        ),
        (
            "Failed to create control group inotify object: Too many open files",
            "fs.inotify.max_user_instances=512",
        ),
        ("Failed to allocate manager object: Too many open files", "fs.inotify.max_user_instances=512"),
        (
            r#"E0527 16:44:51.876371  453890 kubelet.go:1414] "Failed to start cAdvisor" err="inotify_add_watch /sys/fs/cgroup/cpu,cpuacct: no space left on device""#,
            "fs.inotify.max_user_watches=524288",
        ),
        (
            r#"E1121 10:00:00.000000     211 run.go:72] "command failed" err="failed to validate kubelet configuration, error: kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release, path: &TypeMeta{Kind:,APIVersion:,}""#,
            "failCgroupV1: false",
        ),
        (
            r#"E1215 01:35:15.919309    8470 run.go:72] "command failed" err="failed to run Kubelet: running with swap on is not supported, please disable swap or set --fail-swap-on flag to false""#,
            "swapoff -a",
        ),
        (
            r#"E0616 11:44:20.127561   22166 server.go:206] "Failed to load kubelet config file" err="failed to load Kubelet config file /var/lib/kubelet/config.yaml, error failed to decode: no kind \"Config\" is registered for version \"v1\" in scheme \"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme/scheme.go:32\"" path="/var/lib/kubelet/config.yaml""#,
            "correct the KubeletConfiguration",
        ),
        (
            r#"E0827 08:12:01.000000     917 run.go:74] "command failed" err="failed to run Kubelet: invalid configuration: cgroup-root [\"kubelet\"] doesn't exist""#,
            "correct the KubeletConfiguration",
        ),
        (
            r#"E0823 13:53:14.926448    8691 run.go:72] "command failed" err="failed to parse kubelet flag: unknown flag: --improve-speed""#,
            "kubeletExtraArgs",
        ),
        (
            r#"E0110 21:30:25.764493   42304 run.go:72] "command failed" err="failed to run Kubelet: could not create pod logs directory \"/var/log/pods\": mkdir /var/log/pods: no space left on device""#,
            "free space on the disk",
        ),
        (
            r#"E1213 21:56:03.283105    9794 run.go:74] "command failed" err="failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \"unix:///run/containerd/containerd.sock\": rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: no such file or directory\"""#,
            "journalctl -u containerd",
        ),
        (
            r#"E0403 22:58:14.000000     300 run.go:74] "command failed" err="failed to run Kubelet: failed to create kubelet: open /dev/kmsg: no such file or directory""#,
            "KubeletInUserNamespace",
        ),
        (
            r#"E0403 22:58:14.000000     300 run.go:74] "command failed" err="failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \"unix:///run/containerd/containerd.sock\": rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService""#,
            "no CRI plugin",
        ),
        (
            r#"E0403 22:58:14.000000     300 run.go:72] "command failed" err="failed to validate kubelet configuration, error: [invalid configuration: imageGCHighThresholdPercent 101 must be between 0 and 100, inclusive], path: &TypeMeta{Kind:,APIVersion:,}""#,
            "correct the KubeletConfiguration",
        ),
    ];

    #[test]
    fn well_known_reasons_have_instructions() {
        for (line, instruction) in REAL_LINES {
            // systemd writes after the exit of the kubelet.
            let log = format!(
                "I0702 14:44:35.994000   42304 server.go:440] \"Kubelet version\" kubeletVersion=\"v1.36.2\"\n{line}\nkubelet.service: Main process exited, code=exited, status=1/FAILURE"
            );
            let cause = StartCause::of_log(&log).unwrap();
            assert!(cause.help.is_some_and(|help| help.contains(instruction)), "{line}\n{cause}");
            assert!(line.ends_with(&cause.error), "{cause}");
        }
    }

    #[test]
    fn every_well_known_reason_has_a_real_line() {
        for cause in &KNOWN_CAUSES {
            let mut found = REAL_LINES.iter().filter_map(|(line, _)| known_cause(line));
            assert!(found.any(|found| std::ptr::eq(found, cause)), "{:?}", cause.texts);
        }
    }

    #[test]
    fn other_reasons_are_the_last_error() {
        let rows = [
            (
                "E0410 03:04:21.1   14756 run.go:72] \"first\"\nE0410 03:04:21.238395   14756 run.go:72] \"command failed\" err=\"failed to construct kubelet dependencies: unable to load client CA file\"\nI0410 03:04:21.3   14756 x.go:1] later",
                "\"command failed\" err=\"failed to construct kubelet dependencies: unable to load client CA file\"",
            ),
            (
                "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\n",
                "panic: runtime error: index out of range",
            ),
            ("exec /usr/bin/kubelet: exec format error\n", "exec /usr/bin/kubelet: exec format error"),
            (
                "W0403 22:58:14.000000     300 manager.go:256] Could not configure a source for OOM detection, disabling OOM events: open /dev/kmsg: no such file or directory\nE0403 22:58:15.000000     300 x.go:1] \"later\"",
                "\"later\"",
            ),
            // Not the header of klog.
            ("Error: a [list] of things", "Error: a [list] of things"),
        ];
        for (log, error) in rows {
            assert_eq!(StartCause::of_log(log), Some(StartCause::unknown(error.to_owned())), "{log}");
        }
        assert_eq!(StartCause::of_log("\n"), None);
        let long = StartCause::of_log(&format!("Error: {}", "ä".repeat(5000))).unwrap();
        assert_eq!(long.error.chars().count(), MAX_ERROR + 1);
    }
}
