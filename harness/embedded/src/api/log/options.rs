//! `PodLogOptions`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::api::request::Query;
use crate::registry::Status;

/// Which part of which log.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The container's name; empty for the only one.
    pub container: String,
    /// What is written later is sent too.
    pub follow: bool,
    /// The log of the container before its last restart.
    pub previous: bool,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// No more than so many lines at the end.
    pub tail: Option<usize>,
    /// No more than so many bytes.
    pub limit: Option<usize>,
    ago: Option<Duration>,
    time: Option<Timestamp>,
}

impl Options {
    /// Reads them, with the checks of `ValidatePodLogOptions`.
    pub fn read(query: &Query, pod: &str) -> Result<Self, Status> {
        let invalid = |field: &str, value: i64, least: &str| {
            let problem = format!("Invalid value: {value}: must be greater than {least}");
            refused(pod, field, "FieldValueInvalid", &problem)
        };
        let tail = query.number("tailLines")?;
        if let Some(tail) = tail.filter(|tail| *tail < 0) {
            return Err(invalid("tailLines", tail, "or equal to 0"));
        }
        let limit = query.number("limitBytes")?;
        if let Some(limit) = limit.filter(|limit| *limit < 1) {
            return Err(invalid("limitBytes", limit, "0"));
        }
        let ago = query.number("sinceSeconds")?;
        if let Some(ago) = ago.filter(|ago| *ago < 1) {
            return Err(invalid("sinceSeconds", ago, "0"));
        }
        let time = match query.text("sinceTime") {
            "" => None,
            text => Some(text.parse::<Timestamp>().map_err(|error| {
                Status::bad_request(format!("sinceTime: parsing time {text:?}: {error}"))
            })?),
        };
        if ago.is_some() && time.is_some() {
            let problem = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified";
            return Err(refused(pod, "", "FieldValueForbidden", problem));
        }
        Ok(Self {
            container: query.text("container").to_owned(),
            follow: query.is("follow"),
            previous: query.is("previous"),
            timestamps: query.is("timestamps"),
            tail: tail.map(|tail| tail as usize),
            limit: limit.map(|limit| limit as usize),
            ago: ago.map(|ago| Duration::from_secs(ago as u64)),
            time,
        })
    }

    /// The time before which lines are left out.
    pub fn since(&self, now: Timestamp) -> Option<Timestamp> {
        self.time.or_else(|| now.checked_sub(self.ago?).ok())
    }
}

fn refused(pod: &str, field: &str, reason: &str, problem: &str) -> Status {
    let place = if field.is_empty() { String::new() } else { format!("{field}: ") };
    Status {
        code: 422,
        reason: "Invalid",
        message: format!("PodLogOptions {pod:?} is invalid: {place}{problem}"),
        details: Some(json!({
            "name": pod,
            "kind": "PodLogOptions",
            "causes": [{"reason": reason, "message": problem, "field": field}],
        })),
    }
}
