//! Node selectors, node affinity and tolerations of pods.

use serde_json::Value;

use super::label_selector;
use crate::resource::ObjectExt;

/// Returns whether a node matches `nodeSelector` and the required node affinity of a pod spec.
pub(crate) fn matches_node(spec: &Value, node: &Value) -> bool {
    let labels = node.labels();
    let selector = spec["nodeSelector"].as_object().into_iter().flatten();
    let selected = selector.into_iter().all(|(key, value)| labels.get(key) == Some(value));
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let Some(terms) = required["nodeSelectorTerms"].as_array() else { return selected };
    selected && terms.iter().any(|term| matches_term(term, labels, node.name()))
}

/// A term without requirements matches no node.
fn matches_term(term: &Value, labels: &Value, name: &str) -> bool {
    let list = |field: &str| term[field].as_array().map_or(&[][..], Vec::as_slice);
    let (expressions, fields) = (list("matchExpressions"), list("matchFields"));
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|one| label_selector::meets(one, labels, None))
        && fields.iter().all(|one| label_selector::meets(one, labels, Some(name)))
}

/// Returns the first toleration in a list that tolerates a taint (`Toleration.ToleratesTaint`).
pub(crate) fn find_toleration<'a>(tolerations: &'a Value, taint: &Value) -> Option<&'a Value> {
    tolerations.as_array().into_iter().flatten().find(|toleration| tolerates(toleration, taint))
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let text = |field: &str| toleration.text(field);
    let same = |wanted: &str, field: &str| taint.text(field) == wanted;
    let (effect, key) = (text("effect"), text("key"));
    (effect.is_empty() || same(effect, "effect"))
        && (key.is_empty() || same(key, "key"))
        && match text("operator") {
            "Exists" => true,
            "" | "Equal" => same(text("value"), "value"),
            _ => false,
        }
}
