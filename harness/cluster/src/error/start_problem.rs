//! Nodes that do not become ready, with the reason.

use std::fmt;

use super::start_cause::StartCause;

/// State of nodes that do not become ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StartState {
    /// The container exited.
    Exited,
    /// The kubelet exits at every start.
    Crashing,
    /// The kubelet runs, but the node is not ready.
    NotReady,
}

impl fmt::Display for StartState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exited => "the container of the node exited",
            Self::Crashing => "the kubelet exits at every start",
            Self::NotReady => "the node is not ready",
        })
    }
}

/// Nodes that do not become ready for the same reason. Displayed in one line, with the instruction,
/// if the reason is well known, in a second one.
#[derive(Clone, Debug)]
pub struct StartProblem {
    nodes: Vec<String>,
    state: StartState,
    cause: StartCause,
}

impl StartProblem {
    pub(crate) fn new(nodes: Vec<String>, state: StartState, cause: StartCause) -> Self {
        Self { nodes, state, cause }
    }

    /// Returns whether the reason is well known and has an instruction: waiting does not help.
    pub fn is_known(&self) -> bool {
        self.cause.help.is_some()
    }
}

#[cfg(test)]
impl StartProblem {
    /// Returns a problem of two nodes.
    pub(crate) fn of_two_nodes() -> Self {
        let error = "\"Failed to start cAdvisor\" err=\"inotify_init: too many open files\"".to_owned();
        let help = Some("raise the number of inotify instances on the Docker host");
        let nodes = vec!["lab-worker".to_owned(), "lab-worker2".to_owned()];
        Self { nodes, state: StartState::Crashing, cause: StartCause { error, help } }
    }
}

impl fmt::Display for StartProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.nodes.join(", "), self.state, self.cause)
    }
}
