//! Evidence that could not be collected.

use std::fmt;
use std::str::FromStr;

use evictlab_case::expression::{Expression, Variable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A source of evidence that was not read, or not completely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingEvidence {
    /// The source, such as `kubeletLog` or `objects/deployments/web`.
    #[schemars(with = "String")]
    pub source: EvidenceSource,
    /// The cause.
    pub cause: String,
}

/// Sources of evidence. The serialized form is the text, such as `objects/deployments/web`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum EvidenceSource {
    /// The pods at the end of the case.
    Pods,
    /// The end of the pod with this name.
    Pod(String),
    /// The complete histories of the pods.
    PodHistory,
    /// The complete history of the node.
    NodeHistory,
    /// The events.
    Events,
    /// The node at the end of the case.
    Node,
    /// The Summaries.
    Summary,
    /// The kubelet's log.
    KubeletLog,
    /// The kubelet's counter of evictions.
    Metrics,
    /// An object of the case.
    Object {
        /// Plural name of the object's kind in lower case, such as `deployments`.
        resource: String,
        /// Name of the object.
        name: String,
    },
    /// The log of a container.
    Log {
        /// Name of the pod.
        pod: String,
        /// Name of the container.
        container: String,
    },
}

/// A text that does not name a source of evidence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown source of evidence {0:?}")]
pub struct UnknownSource(String);

impl MissingEvidence {
    /// Returns the missing source with its cause.
    pub fn new(source: EvidenceSource, cause: impl fmt::Display) -> Self {
        Self { source, cause: cause.to_string() }
    }
}

impl EvidenceSource {
    /// Returns whether the value of an expression depends on this source.
    pub fn affects(&self, expression: &Expression) -> bool {
        let reads =
            |variables: &[Variable]| variables.iter().any(|variable| expression.references(*variable));
        let reads_key = |variable: Variable, name: &str| expression.keys_read(variable).contains(name);
        match self {
            Self::Pods => reads(&[Variable::Pods, Variable::PodList]),
            Self::Pod(name) => {
                reads(&[Variable::PodList])
                    || reads_key(Variable::Pods, name)
                    || reads_key(Variable::History, name)
            }
            Self::PodHistory => reads(&[Variable::History]),
            Self::NodeHistory => reads(&[Variable::NodeHistory]),
            Self::Events => reads(&[Variable::Events, Variable::Evictions]),
            Self::Node => reads(&[Variable::Images, Variable::Node]),
            Self::Summary => reads(&[Variable::PodStats, Variable::Samples, Variable::Stats]),
            Self::KubeletLog => reads(&[Variable::KubeletLog]),
            Self::Metrics => reads(&[Variable::Counted, Variable::Metrics]),
            Self::Object { name, .. } => reads_key(Variable::Objects, name),
            Self::Log { pod, container } => {
                let read = expression.keys_read_of(Variable::Logs, pod);
                // `*` stands for all containers of a pod that was never observed.
                read.contains(container) || container == "*" && reads_key(Variable::Logs, pod)
            }
        }
    }
}

impl fmt::Display for MissingEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} not collected: {}", self.source, self.cause)
    }
}

impl fmt::Display for EvidenceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods => f.write_str("pods"),
            Self::Pod(name) => write!(f, "pods/{name}"),
            Self::PodHistory => f.write_str("history"),
            Self::NodeHistory => f.write_str("nodeHistory"),
            Self::Events => f.write_str("events"),
            Self::Node => f.write_str("node"),
            Self::Summary => f.write_str("summary"),
            Self::KubeletLog => f.write_str("kubeletLog"),
            Self::Metrics => f.write_str("metrics"),
            Self::Object { resource, name } => write!(f, "objects/{resource}/{name}"),
            Self::Log { pod, container } => write!(f, "logs/{pod}/{container}"),
        }
    }
}

impl FromStr for EvidenceSource {
    type Err = UnknownSource;

    fn from_str(text: &str) -> Result<Self, UnknownSource> {
        let parts: Vec<&str> = text.split('/').collect();
        Ok(match parts.as_slice() {
            ["pods"] => Self::Pods,
            ["pods", name] => Self::Pod((*name).to_owned()),
            ["history"] => Self::PodHistory,
            ["nodeHistory"] => Self::NodeHistory,
            ["events"] => Self::Events,
            ["node"] => Self::Node,
            ["summary"] => Self::Summary,
            ["kubeletLog"] => Self::KubeletLog,
            ["metrics"] => Self::Metrics,
            ["objects", resource, name] => {
                Self::Object { resource: (*resource).to_owned(), name: (*name).to_owned() }
            }
            ["logs", pod, container] => {
                Self::Log { pod: (*pod).to_owned(), container: (*container).to_owned() }
            }
            _ => return Err(UnknownSource(text.to_owned())),
        })
    }
}

impl From<EvidenceSource> for String {
    fn from(source: EvidenceSource) -> Self {
        source.to_string()
    }
}

impl TryFrom<String> for EvidenceSource {
    type Error = UnknownSource;

    fn try_from(text: String) -> Result<Self, UnknownSource> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_affects_the_expressions_that_read_it() {
        let rows = [
            ("pods", "podList.size()", true),
            ("pods", "history.web", false),
            ("pods/web", "pods.web.status.phase", true),
            ("pods/web", "pods.db.status.phase", false),
            ("pods/web", "podList.all(p, p.status.phase == 'Failed')", true),
            ("history", "history.web.size()", true),
            ("nodeHistory", "node.status", false),
            ("nodeHistory", "nodeHistory.size()", true),
            ("events", "events.size()", true),
            ("events", "evictions.map(e, e.pod)", true),
            ("node", "node.status", true),
            ("summary", "stats.web.el1", true),
            ("summary", "podStats.web.memory", true),
            ("kubeletLog", "kubeletLog.size()", true),
            ("metrics", "counted", true),
            ("metrics", "metrics.kubelet_preemptions", true),
            ("objects/deployments/web", "objects.web.status", true),
            ("objects/deployments/web", "objects.db.status", false),
            ("logs/web/el1", "logs.web.el1", true),
            ("logs/web/el1", "logs.web['el1']", true),
            ("logs/web/el1", "logs.web.el2", false),
            ("logs/web/el1", "logs.web.size()", true),
            ("logs/web/el1", "logs.exists(pod, logs[pod].el2 == '')", true),
            ("logs/web/el1", "logs.db.el1", false),
            ("logs/web/*", "logs.web.el2", true),
            ("logs/web/*", "logs.db.el2", false),
        ];
        for (source, expression, affects) in rows {
            let parsed: EvidenceSource = source.parse().unwrap();
            assert_eq!(parsed.to_string(), source);
            assert_eq!(parsed.affects(&expression.parse().unwrap()), affects, "{source}: {expression}");
        }
        assert!("pod".parse::<EvidenceSource>().is_err());
    }
}
