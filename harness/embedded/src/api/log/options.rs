//! `PodLogOptions`, as far as the API server looks at them; the kubelet reads the rest.

use serde_json::json;

use crate::api::request::Query;
use crate::registry::Status;

/// Which log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The container's name; empty for the only one.
    pub container: String,
    /// How it is followed, if it is.
    pub follow: Option<Follow>,
}

/// How a log is followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Follow {
    /// The options that hold for all of the log, as parameters.
    pub query: String,
    /// No more than so many bytes.
    pub limit: Option<usize>,
}

impl Options {
    /// Reads them, with the checks of `ValidatePodLogOptions`.
    pub fn read(query: &Query, pod: &str) -> Result<Self, Status> {
        let least = |field: &str, least: i64, words: &str| match query.number(field)? {
            Some(value) if value < least => {
                let problem = format!("Invalid value: {value}: must be greater than {words}");
                Err(refused(pod, field, "FieldValueInvalid", &problem))
            }
            value => Ok(value),
        };
        least("tailLines", 0, "or equal to 0")?;
        let limit = least("limitBytes", 1, "0")?;
        least("sinceSeconds", 1, "0")?;
        if query.get("sinceSeconds").is_some() && query.get("sinceTime").is_some() {
            let problem = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified";
            return Err(refused(pod, "", "FieldValueForbidden", problem));
        }
        let follow = query.is("follow").then(|| Follow {
            query: format!("timestamps={}&previous={}", query.is("timestamps"), query.is("previous")),
            limit: limit.map(|limit| limit as usize),
        });
        Ok(Self { container: query.text("container").to_owned(), follow })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_what_it_hands_on() {
        let read = |query: &str| Options::read(&Query::read(query), "p");
        let followed = read("follow=true&timestamps=true&limitBytes=9&container=c").unwrap();
        let follow = Follow { query: "timestamps=true&previous=false".into(), limit: Some(9) };
        assert_eq!(followed, Options { container: "c".into(), follow: Some(follow) });
        let refused = |query| read(query).unwrap_err().message;
        assert_eq!(
            refused("tailLines=-1"),
            r#"PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0"#
        );
        assert!(refused("limitBytes=0").ends_with("limitBytes: Invalid value: 0: must be greater than 0"));
        assert!(refused("sinceSeconds=1&sinceTime=x").contains("at most one of"));
        assert_eq!(read("tailLines=x").unwrap_err().code, 400);
    }
}
