//! Errors of the API server, displayed with the lines of the case that they are about.

use std::sync::LazyLock;

use regex::Regex;

use crate::load::ParsedCase;
use crate::positions::{PathSegment, segments_of_field};
use crate::problem::Problem;
use crate::yaml_path;

/// Fields that strict decoding (`fieldValidation=Strict`) names in the message only.
static STRICT_DECODING_FIELD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?:unknown|duplicate) field "([^"]+)""#).expect("the pattern is valid"));

/// Error of an API server that rejects an object.
#[derive(Clone, Debug)]
pub struct ApiRejection<'a> {
    /// Message of the Status.
    pub message: &'a str,
    /// Fields that the causes of the Status name, such as `spec.containers[0].image`.
    pub fields: Vec<&'a str>,
}

impl ParsedCase {
    /// Returns the problem of a pod of the case that the API rejected; `object` is its displayed
    /// name.
    pub fn pod_rejection_problem(&self, pod: usize, object: &str, rejection: &ApiRejection<'_>) -> Problem {
        self.rejection_problem(yaml_path!["pods", pod], object, rejection, segments_of_field)
    }

    /// Returns the problem of an ephemeral container of the case that the API rejected.
    pub fn ephemeral_container_rejection_problem(
        &self,
        container: usize,
        object: &str,
        rejection: &ApiRejection<'_>,
    ) -> Problem {
        // The API and the case count containers differently: only the path within one is common.
        let within_container = |field: &str| segments_of_field(field).into_iter().skip(3).collect();
        self.rejection_problem(
            yaml_path!["ephemeral-containers", container, "container"],
            object,
            rejection,
            within_container,
        )
    }

    fn rejection_problem(
        &self,
        root: &[PathSegment],
        object: &str,
        rejection: &ApiRejection<'_>,
        path_of: impl Fn(&str) -> Vec<PathSegment>,
    ) -> Problem {
        let of_decoding = STRICT_DECODING_FIELD.captures_iter(rejection.message);
        let fields = rejection
            .fields
            .iter()
            .copied()
            .chain(of_decoding.filter_map(|found| Some(found.get(1)?.as_str())));
        let mut spans: Vec<_> = fields
            .filter(|field| !field.is_empty())
            .map(|field| self.span(&[root, &path_of(field)].concat(), field))
            .collect();
        if spans.is_empty() {
            spans.push(self.span(root, ""));
        }
        Problem {
            message: format!("failed to create {object}: the API server rejected it: {}", rejection.message),
            spans,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

    use super::*;
    use crate::fixtures::GOOD;
    use crate::parse;

    fn rejection(status: &Status) -> ApiRejection<'_> {
        let causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
        ApiRejection {
            message: status.message.as_deref().unwrap_or_default(),
            fields: causes.filter_map(|cause| cause.field.as_deref()).collect(),
        }
    }

    /// The Status objects are answers of API servers: to strict decoding, validation, an ephemeral
    /// container.
    #[test]
    fn rejections_of_the_api_point_to_lines() {
        let text = GOOD.replace("expect:\n", "ephemeral-containers:\n  - pod: alloc\n    container:\n      name: debug\n      resources: {}\nexpect:\n");
        let case = parse("suite", "suite/good.yaml", "good.yaml", text.as_bytes()).unwrap();
        assert_eq!(case.ephemeral_container_lines(), [19]);
        let status = |json: serde_json::Value| serde_json::from_value::<Status>(json).unwrap();
        let decoding = status(serde_json::json!({"code": 400, "reason": "BadRequest", "message":
            "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.containers[0].args\""}));
        let validation = status(serde_json::json!({"code": 422, "reason": "Invalid",
            "message": "Pod \"alloc\" is invalid: [spec.initContainers[0].image: Required value, spec.volumes[0].name: Duplicate value: \"data\"]",
            "details": {"causes": [
                {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.initContainers[0].image"},
                {"reason": "FieldValueDuplicate", "message": "Duplicate value", "field": "spec.volumes[0].name"}]}}));
        let ephemeral = status(serde_json::json!({"code": 422, "reason": "Invalid",
            "message": "Pod \"alloc\" is invalid: spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container",
            "details": {"causes": [{"field": "spec.ephemeralContainers[0].resources"}]}}));
        let quota = status(
            serde_json::json!({"code": 403, "message": "pods \"alloc\" is forbidden: exceeded quota"}),
        );
        let problems = [
            case.pod_rejection_problem(0, "pod alloc", &rejection(&decoding)),
            case.pod_rejection_problem(0, "pod alloc", &rejection(&validation)),
            case.ephemeral_container_rejection_problem(
                0,
                "ephemeral container debug",
                &rejection(&ephemeral),
            ),
            case.pod_rejection_problem(0, "pod alloc", &rejection(&quota)),
        ];
        insta::assert_snapshot!(problems.map(|problem| problem.to_string()).join("\n\n"));
    }
}
