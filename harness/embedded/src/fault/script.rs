//! The script: a list of faults. Times count from when the script is armed: in a case, when its first pod is about to be created.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use super::Span;

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Events that the kubelet tells never reach the API server.
    EventLost(Event),
    /// Events reach the API server twice, as two objects.
    EventDoubled(Event),
    /// Events reach the API server later.
    EventLate(EventLate),
    /// Open watches are closed; whoever watches may begin again where he was.
    WatchClosed(Watch),
    /// Open watches end with 410: what was seen last is too old, and whoever watches must list again.
    WatchExpired(Watch),
    /// The API server answers with an error.
    ApiError(ApiError),
    /// The API server answers late.
    ApiSlow(ApiSlow),
    /// The kubelet is restarted: what it had in memory is gone, pods run on.
    KubeletRestart(Moment),
    /// The kernel kills the process that it would kill if the node's memory ran out.
    OomKill(Moment),
    /// The node cannot be reached: its kubelet tells nothing and answers nothing.
    NodeGone(While),
    /// The kubelet has no statistics of the pods.
    StatsMissing(StatsMissing),
}

/// Which events.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Event {
    /// Their reason, such as `Evicted`.
    #[serde(default = "evicted")]
    pub reason: String,
    /// How many of them; all, if it is not stated.
    #[serde(default)]
    pub times: Option<u32>,
}

/// Which events, and how late.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EventLate {
    /// Their reason, such as `Evicted`.
    #[serde(default = "evicted")]
    pub reason: String,
    /// By how much.
    pub by: Span,
}

/// Which watches, and when.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Watch {
    /// When.
    #[serde(default)]
    pub at: Span,
    /// What is watched, such as `events`; everything, if it is not stated.
    #[serde(default)]
    pub resource: Option<String>,
}

/// Which requests get an error.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ApiError {
    /// From when on.
    #[serde(default)]
    pub at: Span,
    /// For how long.
    #[serde(rename = "for", default = "three_seconds")]
    pub length: Span,
    /// The HTTP status, 400 to 599.
    #[serde(default = "internal_error", deserialize_with = "an_error")]
    #[schemars(range(min = 400, max = 599))]
    pub code: u16,
    /// What is asked for, such as `pods`; everything, if it is not stated.
    #[serde(default)]
    pub resource: Option<String>,
}

/// Which requests are answered late.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ApiSlow {
    /// From when on.
    #[serde(default)]
    pub at: Span,
    /// For how long.
    #[serde(rename = "for", default = "three_seconds")]
    pub length: Span,
    /// By how much each of them.
    pub by: Span,
    /// What is asked for, such as `pods`; everything, if it is not stated.
    #[serde(default)]
    pub resource: Option<String>,
}

/// When something happens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Moment {
    /// When.
    #[serde(default)]
    pub at: Span,
}

/// From when to when something lasts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct While {
    /// From when on.
    #[serde(default)]
    pub at: Span,
    /// For how long; for ever, if it is not stated.
    #[serde(rename = "for", default)]
    pub length: Option<Span>,
}

/// Which statistics are missing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StatsMissing {
    /// From when on.
    #[serde(default)]
    pub at: Span,
    /// For how long; for ever, if it is not stated.
    #[serde(rename = "for", default)]
    pub length: Option<Span>,
    /// The pod; all of them, if it is not stated.
    #[serde(default)]
    pub pod: Option<String>,
}

fn evicted() -> String {
    "Evicted".to_owned()
}

fn three_seconds() -> Span {
    Duration::from_secs(3).into()
}

fn internal_error() -> u16 {
    500
}

fn an_error<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    let code = u16::deserialize(from)?;
    let problem = || de::Error::custom(format!("{code} is no HTTP error: give one from 400 to 599"));
    if (400..600).contains(&code) { Ok(code) } else { Err(problem()) }
}

impl Fault {
    /// What a script calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::EventLost(_) => "event-lost",
            Self::EventDoubled(_) => "event-doubled",
            Self::EventLate(_) => "event-late",
            Self::WatchClosed(_) => "watch-closed",
            Self::WatchExpired(_) => "watch-expired",
            Self::ApiError(_) => "api-error",
            Self::ApiSlow(_) => "api-slow",
            Self::KubeletRestart(_) => "kubelet-restart",
            Self::OomKill(_) => "oom-kill",
            Self::NodeGone(_) => "node-gone",
            Self::StatsMissing(_) => "stats-missing",
        }
    }

    /// When it begins and how long it lasts; no end for what lasts for ever or happens in one moment.
    pub fn times(&self) -> (Duration, Option<Duration>) {
        let get = |span: &Option<Span>| span.map(Span::get);
        match self {
            Self::EventLost(_) | Self::EventDoubled(_) | Self::EventLate(_) => (Duration::ZERO, None),
            Self::WatchClosed(watch) | Self::WatchExpired(watch) => (watch.at.get(), None),
            Self::ApiError(error) => (error.at.get(), Some(error.length.get())),
            Self::ApiSlow(slow) => (slow.at.get(), Some(slow.length.get())),
            Self::KubeletRestart(moment) | Self::OomKill(moment) => (moment.at.get(), None),
            Self::NodeGone(gone) => (gone.at.get(), get(&gone.length)),
            Self::StatsMissing(missing) => (missing.at.get(), get(&missing.length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(script: &str) -> Result<Fault, String> {
        serde_saphyr::from_str(script).map_err(|error| error.to_string())
    }

    #[test]
    fn a_script_says_where_it_is_wrong() {
        let error = |script: &str| read(script).unwrap_err();
        assert!(error("event-lots: {}").contains("event-lost"), "the names are told");
        assert!(error("api-error: {code: 42}").contains("42 is no HTTP error: give one from 400 to 599"));
        assert!(error("kubelet-restart: {at: soon}").contains("line 1 column 23"));
        assert!(error("oom-kill: {when: 3s}").contains("when"));
    }

    #[test]
    fn what_is_not_stated_has_a_usual_value() {
        let event = Event { reason: "Evicted".to_owned(), times: None };
        assert_eq!(read("event-lost: {}"), Ok(Fault::EventLost(event)));
        let error = read("api-error: {}").unwrap();
        assert_eq!(error.times(), (Duration::ZERO, Some(Duration::from_secs(3))));
    }
}
