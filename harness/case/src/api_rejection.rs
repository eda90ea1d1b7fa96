//! Errors of the API server, displayed with the lines of the case that they are about.

use std::sync::LazyLock;

use regex::Regex;

use crate::load::ParsedCase;
use crate::positions::{PathSegment, segments_of_field};
use crate::problem::Problem;
use crate::yaml_path;

/// Fields that strict decoding (`fieldValidation=Strict`) names in the message only.
static STRICT_DECODING_FIELD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:unknown|duplicate) field "([^"]+)""#).ok());

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
        let of_decoding =
            STRICT_DECODING_FIELD.iter().flat_map(|field| field.captures_iter(rejection.message));
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
