//! `PodLogOptions`, as far as the API server reads them; the kubelet reads the rest.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusDetails;

use crate::apiserver::Status;
use crate::http::request::Query;

/// Options of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogOptions {
    /// Name of the container; empty for the only one.
    pub(crate) container: String,
    /// Options of following, if the log is followed.
    pub(crate) follow: Option<FollowOptions>,
}

/// Options of following a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FollowOptions {
    /// Parameters of every read: the options that do not select a part of the log.
    pub(crate) query: String,
    /// Maximum number of bytes.
    pub(crate) limit: Option<usize>,
}

impl LogOptions {
    /// Reads the options and validates them as `ValidatePodLogOptions`.
    pub(crate) fn from_query(query: &Query, pod: &str) -> Result<Self, Status> {
        let at_least = |field: &str, minimum: i64, bound: &str| match query.number(field)? {
            Some(value) if value < minimum => {
                let error = format!("Invalid value: {value}: must be greater than {bound}");
                Err(invalid(pod, &format!("{field}: {error}")))
            }
            value => Ok(value),
        };
        at_least("tailLines", 0, "or equal to 0")?;
        let limit = at_least("limitBytes", 1, "0")?;
        at_least("sinceSeconds", 1, "0")?;
        if query.get("sinceSeconds").is_some() && query.get("sinceTime").is_some() {
            let error = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified";
            return Err(invalid(pod, error));
        }
        let follow = query.is_true("follow").then(|| FollowOptions {
            query: format!(
                "timestamps={}&previous={}",
                query.is_true("timestamps"),
                query.is_true("previous")
            ),
            limit: limit.map(|limit| limit as usize),
        });
        Ok(Self { container: query.text("container").to_owned(), follow })
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
        let read = |query: &str| LogOptions::from_query(&Query::parse(query), "p");
        let followed = read("follow=true&timestamps=true&limitBytes=9&container=c").unwrap();
        let follow = FollowOptions { query: "timestamps=true&previous=false".into(), limit: Some(9) };
        assert_eq!(followed, LogOptions { container: "c".into(), follow: Some(follow) });
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
