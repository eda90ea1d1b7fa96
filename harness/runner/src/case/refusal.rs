//! What the API says of a pod that it refuses, beside the lines of the case that it is about.

use std::sync::LazyLock;

use kube::core::Status;
use regex::Regex;

use super::load::LoadedCase;
use super::positions::{Step, steps_of_field, way};
use super::problem::Problem;

/// Fields that strict decoding (`fieldValidation=Strict`) names, in its message only.
static DECODED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:unknown|duplicate) field "([^"]+)""#).ok());

impl LoadedCase {
    /// The API's refusal of the case's pod of this index, with the lines that it is about. `object` is how people call it.
    pub fn show_refused_pod(&self, pod: usize, object: &str, status: &Status) -> Problem {
        self.show(way!["pods", pod], object, status, steps_of_field)
    }

    /// The same for an ephemeral container of the case.
    pub fn show_refused_ephemeral_container(
        &self,
        container: usize,
        object: &str,
        status: &Status,
    ) -> Problem {
        // The API counts the containers of the pod, the case its own: what is common is what is inside of one.
        let inside = |field: &str| steps_of_field(field).into_iter().skip(3).collect();
        self.show(way!["ephemeral-containers", container, "container"], object, status, inside)
    }

    fn show(
        &self,
        root: &[Step],
        object: &str,
        status: &Status,
        way_of: impl Fn(&str) -> Vec<Step>,
    ) -> Problem {
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let decoded = DECODED.iter().flat_map(|field| field.captures_iter(&status.message));
        let fields = causes
            .map(|cause| cause.field.as_str())
            .chain(decoded.filter_map(|of| Some(of.get(1)?.as_str())));
        let mut places: Vec<_> = fields
            .filter(|field| !field.is_empty())
            .map(|field| self.place(&[root, &way_of(field)].concat(), field))
            .collect();
        if places.is_empty() {
            places.push(self.place(root, ""));
        }
        Problem { what: format!("the API refuses {object}: {}", status.message), places }
    }
}
