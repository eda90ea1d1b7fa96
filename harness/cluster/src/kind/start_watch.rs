//! Watches the nodes of a cluster until they are ready, and reports why kubelets do not start.
//!
//! Without a report, a run would wait for minutes: kubeadm waits four minutes for a
//! kubelet that exits at every start.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use futures::future::join_all;
use kube::Client;
use tokio::time::Instant;

use super::containers::{containers, is_control_plane, is_worker};
use crate::docker::{Container, Docker};
use crate::error::{StartCause, StartProblem, StartState};
use crate::node::ready_messages;

/// Interval of the checks. A kubelet that exits at every start has restarted [`MIN_RESTARTS`] times
/// at the third check, less than 30 s after its first exit.
const CHECK_INTERVAL: Duration = Duration::from_secs(8);

/// Number of restarts by systemd from which a kubelet is one that does not start.
const MIN_RESTARTS: u32 = 2;

/// Time without a restart after which a kubelet is one that runs.
const STABLE_AFTER: Duration = Duration::from_secs(30);

/// Time that nodes have to become ready after kind has exited: they wait for their pod network.
const READY_AFTER: Duration = Duration::from_secs(20);

/// Number of lines of a log that are read.
const LOG_LINES: &str = "300";

/// Prints the number of restarts of the kubelet and the recent lines of its log. The kubelet of
/// kind's node images restarts after a second.
const KUBELET_STATE: &str = r#"
systemctl show kubelet --property NRestarts --value
journalctl --unit kubelet --lines "$1" --since=-30s --output cat --no-pager
"#;

/// A problem of one node.
type NodeProblem = (String, StartState, StartCause);

/// State of a node according to its container.
enum NodeLog {
    /// The end of the log of a container that exited.
    Exited(String),
    /// Number of restarts and the recent log of a kubelet.
    Kubelet(u32, String),
}

/// Condition `Ready` of a node that is not ready.
enum ReadyState {
    /// The API server was not asked, or did not answer.
    Unknown,
    /// The node is not registered.
    NotRegistered,
    /// The message of the condition, which may be empty.
    NotReady(String),
}

/// Watches the nodes of a cluster that is being created or opened.
pub struct StartWatch<'a> {
    docker: &'a Docker,
    cluster: &'a str,
    restarts: Restarts,
    reported: BTreeSet<(String, StartState, Option<&'static str>)>,
}

impl<'a> StartWatch<'a> {
    /// Creates a watch for the cluster with this name.
    pub fn new(docker: &'a Docker, cluster: &'a str) -> Self {
        Self { docker, cluster, restarts: Restarts::default(), reported: BTreeSet::new() }
    }

    /// Name of the cluster.
    pub(super) fn cluster(&self) -> &str {
        self.cluster
    }

    /// Passes each new problem to `warning` until the future is dropped. With a client, nodes that
    /// run a kubelet and do not become ready in time have a problem, too.
    pub(super) async fn report(&mut self, client: Option<&Client>, warning: &dyn Fn(&str)) -> Infallible {
        let began = Instant::now();
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let mut found = self.find(client, false).await;
            found.retain(|(node, state, cause)| {
                let is_due = *state != StartState::NotReady || began.elapsed() >= READY_AFTER;
                is_due && self.reported.insert((node.clone(), *state, cause.help))
            });
            group(found).iter().for_each(|problem| warning(&problem.to_string()));
        }
    }

    /// Returns the problems of all nodes. With a client, all nodes that are not ready have one.
    /// Docker errors are ignored: the creation of the cluster reports them.
    pub async fn problems(&mut self, client: Option<&Client>) -> Vec<StartProblem> {
        group(self.find(client, true).await)
    }

    async fn find(&mut self, client: Option<&Client>, is_final: bool) -> Vec<NodeProblem> {
        let mut nodes = containers(self.docker, self.cluster).await.unwrap_or_default();
        // The load balancer of several control planes has neither systemd nor a kubelet.
        nodes.retain(|node| is_worker(node) || is_control_plane(node));
        let messages = match client {
            Some(client) => ready_messages(client).await.ok(),
            None => None,
        };
        if let Some(messages) = &messages {
            nodes.retain(|node| messages.get(&node.name).is_none_or(Option::is_some));
        }
        let logs = join_all(nodes.iter().map(|node| read_log(self.docker, node))).await;
        let found = nodes.into_iter().zip(logs).filter_map(|(node, log)| {
            let ready = match &messages {
                None => ReadyState::Unknown,
                Some(messages) => match messages.get(&node.name).cloned().flatten() {
                    None => ReadyState::NotRegistered,
                    Some(message) => ReadyState::NotReady(message),
                },
            };
            let (state, cause) = self.restarts.problem(&node.name, log?, ready, is_final)?;
            Some((node.name, state, cause))
        });
        found.collect()
    }
}

/// The restarts of the kubelets: number, and time at which it was seen to change; `None` before
/// the first change.
#[derive(Default)]
struct Restarts(BTreeMap<String, (u32, Option<Instant>)>);

impl Restarts {
    /// Returns the problem of a node. `is_final`: no later call observes more restarts.
    fn problem(
        &mut self,
        node: &str,
        log: NodeLog,
        ready: ReadyState,
        is_final: bool,
    ) -> Option<(StartState, StartCause)> {
        let (number, log) = match log {
            NodeLog::Exited(log) => return Some((StartState::Exited, StartCause::of_log(&log)?)),
            NodeLog::Kubelet(number, log) => (number, log),
        };
        let cause = StartCause::of_log(&log);
        if self.is_crashing(node, number, is_final) {
            return Some((StartState::Crashing, cause?));
        }
        let cause = match (ready, cause) {
            (ReadyState::Unknown, _) => return None,
            (_, Some(cause)) if cause.help.is_some() => cause,
            (ReadyState::NotReady(message), _) if !message.is_empty() => StartCause::unknown(message),
            (_, cause) => cause?,
        };
        Some((StartState::NotReady, cause))
    }

    /// Returns whether the kubelet of a node was seen to restart a short time ago. The restarts
    /// before the first call may be old; they count if no later call observes more.
    fn is_crashing(&mut self, node: &str, number: u32, is_final: bool) -> bool {
        let (before, changed) = self.0.get(node).copied().unzip();
        let changed = match before {
            Some(before) if before == number => changed.flatten(),
            Some(_) => Some(Instant::now()),
            None => None,
        };
        self.0.insert(node.to_owned(), (number, changed));
        let is_recent = match (before, changed) {
            (None, _) => is_final,
            (Some(_), changed) => changed.is_some_and(|changed| changed.elapsed() < STABLE_AFTER),
        };
        number >= MIN_RESTARTS && is_recent
    }
}

/// Reads the log of a node; `None` if Docker fails or the node has not booted.
async fn read_log(docker: &Docker, node: &Container) -> Option<NodeLog> {
    if !node.running {
        let log = docker.log_tail(&node.id, LOG_LINES).await.ok()?;
        return Some(NodeLog::Exited(log));
    }
    let output = docker.run(&node.id, &["sh", "-c", KUBELET_STATE, "kubelet-state", LOG_LINES]).await.ok()?;
    let (restarts, log) = output.split_once('\n')?;
    Some(NodeLog::Kubelet(restarts.trim().parse().ok()?, log.to_owned()))
}

/// Groups nodes with the same problem.
fn group(found: Vec<NodeProblem>) -> Vec<StartProblem> {
    let mut groups: BTreeMap<(StartState, StartCause), Vec<String>> = BTreeMap::new();
    for (node, state, cause) in found {
        groups.entry((state, cause)).or_default().push(node);
    }
    let groups = groups.into_iter().map(|((state, cause), mut nodes)| {
        nodes.sort();
        StartProblem::new(nodes, state, cause)
    });
    groups.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ClusterError;
    use crate::error::KindError;

    const INOTIFY: &str = r#"E0702 14:44:35.994664   42304 kubelet.go:1466] "Failed to start cAdvisor" err="inotify_init: too many open files""#;

    /// The text of a problem that two nodes have.
    fn text(problem: Option<(StartState, StartCause)>) -> String {
        let of_both = |(state, cause): (StartState, StartCause)| {
            let nodes = ["b", "a"].map(|node| (node.to_owned(), state, cause.clone()));
            group(nodes.to_vec())[0].to_string()
        };
        problem.map_or_else(String::new, of_both)
    }

    #[tokio::test(start_paused = true)]
    async fn a_kubelet_that_exits_again_and_again_does_not_start() {
        let mut restarts = Restarts::default();
        let mut look = |number| {
            let log = NodeLog::Kubelet(number, INOTIFY.to_owned());
            text(restarts.problem("a", log, ReadyState::Unknown, false))
        };
        assert_eq!(look(1), "", "kubeadm restarts it, too");
        let reported = "a, b: the kubelet exits at every start: \"Failed to start cAdvisor\" err=\"inotify_init: too many open files\"\nhelp: raise the number of inotify instances on the Docker host: `sudo sysctl fs.inotify.max_user_instances=512`";
        assert_eq!(look(2), reported);
        tokio::time::advance(STABLE_AFTER - Duration::from_secs(1)).await;
        assert_eq!(look(2), reported);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(look(2), "", "it runs");
        assert_eq!(look(3), reported);
    }

    #[test]
    fn earlier_restarts_count_only_at_the_end() {
        let of_first_look = |is_final| {
            let log = NodeLog::Kubelet(2, INOTIFY.to_owned());
            let problem = Restarts::default().problem("a", log, ReadyState::Unknown, is_final);
            problem.map(|(state, _)| state)
        };
        assert_eq!(of_first_look(false), None, "they may be old");
        assert_eq!(of_first_look(true), Some(StartState::Crashing));
    }

    #[test]
    fn a_running_kubelet_of_a_node_that_is_not_ready() {
        let look = |log: &str, ready| {
            text(Restarts::default().problem("a", NodeLog::Kubelet(0, log.to_owned()), ready, false))
        };
        let other = "E0702 14:44:35.994664   42304 x.go:1] \"Unable to register node\"";
        let network = || ReadyState::NotReady("cni plugin not initialized".to_owned());
        let not_ready = "a, b: the node is not ready: ";
        assert_eq!(look(other, ReadyState::Unknown), "", "kind is creating it");
        assert_eq!(look(other, ReadyState::NotRegistered), format!("{not_ready}\"Unable to register node\""));
        assert_eq!(look(other, network()), format!("{not_ready}cni plugin not initialized"));
        assert!(look(INOTIFY, network()).contains("inotify_init"), "a well-known reason is more exact");
        assert_eq!(look("", ReadyState::NotRegistered), "", "its log is empty");
    }

    #[test]
    fn a_container_that_exits() {
        let log = "Failed to create control group inotify object: Too many open files\nFailed to allocate manager object: Too many open files\n[!!!!!!] Failed to allocate manager object.\nExiting PID 1...\n";
        let exited = text(Restarts::default().problem(
            "a",
            NodeLog::Exited(log.to_owned()),
            ReadyState::Unknown,
            false,
        ));
        let start = "a, b: the container of the node exited: Failed to allocate manager object: Too many open files\nhelp: raise";
        assert!(exited.starts_with(start), "{exited}");
        // Docker is still starting it.
        let starting = NodeLog::Exited(String::new());
        assert_eq!(text(Restarts::default().problem("a", starting, ReadyState::Unknown, false)), "");
    }

    #[test]
    fn problems_are_part_of_the_final_error_and_of_the_decision_to_try_again() {
        let with = |log: &str| {
            let output = "timed out waiting for the condition".to_owned();
            let failed = ClusterError::Kind(KindError::Failed { command: "create".to_owned(), output });
            let log = NodeLog::Kubelet(2, log.to_owned());
            let problem = Restarts::default().problem("a", log, ReadyState::Unknown, true);
            let found: Vec<_> =
                problem.into_iter().map(|(state, cause)| ("a".to_owned(), state, cause)).collect();
            failed.with_problems(group(found))
        };
        let [none, unknown, known] = ["", "Error: why", INOTIFY].map(with);
        assert!(none.is_slow_host() && unknown.is_slow_host(), "the host may be slow");
        assert!(!known.is_slow_host(), "a second attempt has the same limit");
        assert_eq!(none.to_string(), "failed to run `kind create`:\ntimed out waiting for the condition");
        assert_eq!(unknown.to_string(), format!("{none}\na: the kubelet exits at every start: Error: why"));
        assert!(known.to_string().contains("inotify_init") && known.to_string().contains("\nhelp: raise"));
    }
}
