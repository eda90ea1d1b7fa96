//! Options of a log request.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusDetails;

use crate::apiserver::Status;
use crate::http::request::Query;
use crate::kubelet::pods::PodLogOptions;

/// Options of a log request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogRequest {
    /// Name of the container; empty for the only one.
    pub(crate) container: String,
    /// Streams new output.
    pub(crate) follow: bool,
    /// Selection and format of the lines.
    pub(crate) options: PodLogOptions,
}

impl LogRequest {
    /// Reads the options and validates them as `ValidatePodLogOptions`.
    pub(crate) fn from_query(query: &Query, pod: &str) -> Result<Self, Status> {
        let at_least = |field: &str, minimum: i64, bound: &str| match query.number(field)? {
            Some(value) if value < minimum => {
                let error = format!("Invalid value: {value}: must be greater than {bound}");
                Err(invalid(pod, &format!("{field}: {error}")))
            }
            value => Ok(value),
        };
        let tail_lines = at_least("tailLines", 0, "or equal to 0")?;
        let limit_bytes = at_least("limitBytes", 1, "0")?;
        let since_seconds = at_least("sinceSeconds", 1, "0")?;
        if since_seconds.is_some() && query.get("sinceTime").is_some() {
            let error = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified";
            return Err(invalid(pod, error));
        }
        let since_time = query.get("sinceTime").map(str::parse::<Timestamp>).transpose();
        let options = PodLogOptions {
            previous: query.is_true("previous"),
            timestamps: query.is_true("timestamps"),
            tail_lines: tail_lines.map(|lines| lines as usize),
            limit_bytes: limit_bytes.map(|bytes| bytes as usize),
            since_seconds: since_seconds.map(i64::unsigned_abs),
            since_time: since_time.map_err(|error| Status::bad_request(error.to_string()))?,
        };
        let container = query.text("container").to_owned();
        Ok(Self { container, follow: query.is_true("follow"), options })
    }
}

fn invalid(pod: &str, error: &str) -> Status {
    let message = format!("PodLogOptions {pod:?} is invalid: {error}");
    Status::new(422, "Invalid", message).with_details(StatusDetails {
        name: Some(pod.to_owned()),
        kind: Some("PodLogOptions".to_owned()),
        ..StatusDetails::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validates_options() {
        let read = |query: &str| LogRequest::from_query(&Query::parse(query), "p");
        let followed = read("follow=true&timestamps=true&limitBytes=9&container=c").unwrap();
        let options = PodLogOptions { timestamps: true, limit_bytes: Some(9), ..PodLogOptions::default() };
        assert_eq!(followed, LogRequest { container: "c".into(), follow: true, options });
        let message = |query| read(query).unwrap_err().message;
        assert_eq!(
            message("tailLines=-1"),
            r#"PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0"#
        );
        assert!(message("limitBytes=0").ends_with("limitBytes: Invalid value: 0: must be greater than 0"));
        assert!(message("sinceSeconds=1&sinceTime=x").contains("at most one of"));
        assert_eq!(read("tailLines=x").unwrap_err().code, 400);
    }
}
