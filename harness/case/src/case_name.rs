//! The names that a case uses for its pods.

use serde_json::{Map, Value};

/// Annotation of a pod with `generateName`: the name that the case uses for the pod.
pub const CASE_NAME_ANNOTATION: &str = "evictlab.dev/case-name";

/// Returns the name that a case uses for a pod of its manifest: `metadata.name`, or
/// `metadata.generateName` without the hyphens at the end.
pub fn case_name(manifest: &Map<String, Value>) -> Option<&str> {
    let metadata = manifest.get("metadata")?;
    let generated = || Some(metadata.get("generateName")?.as_str()?.trim_end_matches('-'));
    metadata.get("name").and_then(Value::as_str).or_else(generated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::GOOD;
    use crate::parse;

    /// A pod with a generated name is known by the name without the hyphen; commands run in it.
    #[test]
    fn a_generated_name_has_a_name_in_the_case() {
        let step = "do:\n  - {exec: {pod: alloc, container: el1, command: [ls]}, answer: listed}\n";
        let text = GOOD.replace("{name: alloc}", "{generateName: alloc-}");
        let text = text.replace("expect:\n", &format!("{step}expect:\n"));
        let case = parse("suite", "suite/good.yaml", "good.yaml", text.as_bytes()).unwrap();
        assert_eq!(case_name(&case.case.pods[0]), Some("alloc"));
    }
}
