//! Results of checks.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// The subject of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckSubject {
    /// The embedded cluster.
    Embedded,
    /// The Docker daemon: its connection and version.
    Docker,
    /// The `docker` command, which kind uses.
    DockerCommand,
    /// The `kind` command.
    Kind,
    /// The cgroup version of the Docker host.
    Cgroup,
    /// Privileged containers on the Docker host.
    Privileged,
    /// The inotify limits of the Docker host.
    Inotify,
    /// The available memory of the Docker host.
    Memory,
    /// The free space for Docker's data.
    Disk,
    /// The node images in Docker, or the image of a requested kubelet.
    NodeImage,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// No problem.
    Ok,
    /// A run may fail.
    Warn,
    /// A run on kind fails.
    Fail,
    /// The check was not possible.
    Unknown,
}

/// A check and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// The subject.
    pub subject: CheckSubject,
    /// The result.
    pub state: CheckState,
    /// The finding in one line.
    pub finding: String,
    /// The remedy; `None` if no action is necessary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The results of all checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// True if no check failed.
    pub fit: bool,
    /// The checks in the order of their dependencies.
    pub checks: Vec<Check>,
}

impl Check {
    pub(super) fn ok(subject: CheckSubject, finding: impl Into<String>) -> Self {
        Self { subject, state: CheckState::Ok, finding: finding.into(), remedy: None }
    }

    pub(super) fn warn(subject: CheckSubject, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { subject, state: CheckState::Warn, finding: finding.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn fail(subject: CheckSubject, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { subject, state: CheckState::Fail, finding: finding.into(), remedy: Some(remedy.into()) }
    }

    /// `remedy` may be empty if another check states it.
    pub(super) fn unknown(subject: CheckSubject, reason: impl fmt::Display, remedy: &str) -> Self {
        let remedy = Some(remedy.to_owned()).filter(|remedy| !remedy.is_empty());
        Self { subject, state: CheckState::Unknown, finding: format!("not checked: {reason}"), remedy }
    }

    /// Splits an error into its first line, the finding, and the remaining lines, the remedy.
    pub(super) fn error(subject: CheckSubject, error: &dyn fmt::Display) -> Self {
        let text = error.to_string();
        let (finding, remedy) = text.split_once('\n').unwrap_or((&text, ""));
        let remedy = remedy.strip_prefix("help: ").unwrap_or(remedy);
        let remedy = Some(remedy.replace('\n', " ")).filter(|remedy| !remedy.is_empty());
        Self { subject, state: CheckState::Fail, finding: finding.to_owned(), remedy }
    }
}

impl Diagnosis {
    /// Returns the diagnosis for these checks. A check that was not possible does not fail it.
    pub fn new(checks: Vec<Check>) -> Self {
        Self { fit: checks.iter().all(|check| check.state != CheckState::Fail), checks }
    }
}

impl fmt::Display for CheckSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Embedded => "embedded",
            Self::Docker => "docker",
            Self::DockerCommand => "docker command",
            Self::Kind => "kind",
            Self::Cgroup => "cgroup",
            Self::Privileged => "privileged",
            Self::Inotify => "inotify",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::NodeImage => "node image",
        })
    }
}

impl fmt::Display for CheckState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Unknown => "unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failed_checks_prevent_a_run() {
        let fit = |checks: &[Check]| Diagnosis::new(checks.to_vec()).fit;
        let warn = Check::warn(CheckSubject::Disk, "little", "make room");
        let unknown = Check::unknown(CheckSubject::Memory, "no image", "");
        assert!(fit(&[Check::ok(CheckSubject::Docker, "there"), warn.clone(), unknown]));
        assert!(!fit(&[warn, Check::error(CheckSubject::Kind, &"too old\nInstall\na newer one")]));
    }

    #[test]
    fn splits_errors_into_finding_and_remedy() {
        let check = Check::error(CheckSubject::Kind, &"too old\nInstall\na newer one");
        assert_eq!(check, Check::fail(CheckSubject::Kind, "too old", "Install a newer one"));
    }
}
