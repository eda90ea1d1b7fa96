//! What a check came to.

use std::fmt;

use serde::Serialize;

/// What was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// The embedded cluster.
    Embedded,
    /// The daemon: whether it answers, and which it is.
    Docker,
    /// The `docker` command, which kind uses.
    DockerCommand,
    /// The `kind` command.
    Kind,
    /// The cgroups of the Docker host.
    Cgroup,
    /// Whether a privileged container runs there.
    Privileged,
    /// Its inotify limits.
    Inotify,
    /// Its free memory.
    Memory,
    /// The free space where Docker keeps its data.
    Disk,
    /// The node images that are there, or the one of an asked kubelet.
    NodeImage,
}

/// How a check stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Ok,
    /// A run may go well, or not for long.
    Warn,
    /// No run can go well.
    Fail,
    /// It could not be found out.
    Unknown,
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What.
    pub about: About,
    /// How it stands.
    pub state: State,
    /// What was found, in one line.
    pub found: String,
    /// What to do about it; none where there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// Everything that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Whether a run can go well: nothing failed.
    pub fit: bool,
    /// The checks, in the order in which a person would go about them.
    pub checks: Vec<Check>,
}

impl Check {
    pub(super) fn ok(about: About, found: impl Into<String>) -> Self {
        Self { about, state: State::Ok, found: found.into(), advice: None }
    }

    pub(super) fn warn(about: About, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { about, state: State::Warn, found: found.into(), advice: Some(advice.into()) }
    }

    pub(super) fn fail(about: About, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { about, state: State::Fail, found: found.into(), advice: Some(advice.into()) }
    }

    /// `advice` may be empty where another check tells it.
    pub(super) fn unknown(about: About, why: impl fmt::Display, advice: &str) -> Self {
        let advice = Some(advice.to_owned()).filter(|advice| !advice.is_empty());
        Self { about, state: State::Unknown, found: format!("not checked: {why}"), advice }
    }

    /// An error of ours: its first line says what was found, the rest what to do.
    pub(super) fn error(about: About, error: &dyn fmt::Display) -> Self {
        let text = error.to_string();
        let (found, advice) = text.split_once('\n').unwrap_or((&text, ""));
        let advice = Some(advice.replace('\n', " ")).filter(|advice| !advice.is_empty());
        Self { about, state: State::Fail, found: found.to_owned(), advice }
    }
}

impl Diagnosis {
    /// What these checks come to. What could not be found out makes nobody unfit.
    pub fn of(checks: Vec<Check>) -> Self {
        Self { fit: checks.iter().all(|check| check.state != State::Fail), checks }
    }
}

impl fmt::Display for About {
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

impl fmt::Display for State {
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
    fn only_a_failure_makes_unfit() {
        let fit = |checks: &[Check]| Diagnosis::of(checks.to_vec()).fit;
        let warn = Check::warn(About::Disk, "little", "make room");
        let unknown = Check::unknown(About::Memory, "no image", "");
        assert!(fit(&[Check::ok(About::Docker, "there"), warn.clone(), unknown]));
        assert!(!fit(&[warn, Check::error(About::Kind, &"too old\nInstall\na newer one")]));
    }

    #[test]
    fn an_error_is_taken_apart() {
        let check = Check::error(About::Kind, &"too old\nInstall\na newer one");
        assert_eq!(check, Check::fail(About::Kind, "too old", "Install a newer one"));
    }
}
