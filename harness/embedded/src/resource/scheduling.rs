//! Node selectors, node affinity and tolerations of pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration};
use serde::Deserialize;
use serde_json::Value;

use super::label_selector;
use crate::resource::ObjectExt;

/// Constraints of a pod on its node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeConstraints {
    node_selector: Option<BTreeMap<String, String>>,
    affinity: Option<Affinity>,
    tolerations: Option<Vec<Toleration>>,
}

impl NodeConstraints {
    /// Reads the constraints of a pod.
    pub(crate) fn of(pod: &Value) -> Self {
        pod.read("spec")
    }

    /// Returns whether a node matches the node selector and the required node affinity.
    pub(crate) fn matches(&self, node: &Value) -> bool {
        let labels = node.labels();
        let mut selector = self.node_selector.iter().flatten();
        let affinity = self.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required = affinity
            .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
        selector.all(|(key, value)| labels.get(key).and_then(Value::as_str) == Some(value))
            && required.is_none_or(|required| {
                required.node_selector_terms.iter().any(|term| matches_term(term, labels, node.name()))
            })
    }

    /// Returns the first toleration that tolerates a taint.
    pub(crate) fn toleration(&self, taint: &Taint) -> Option<&Toleration> {
        self.tolerations.iter().flatten().find(|toleration| tolerates(toleration, taint))
    }

    /// Returns whether a taint is tolerated.
    pub(crate) fn tolerates(&self, taint: &Taint) -> bool {
        self.toleration(taint).is_some()
    }
}

/// A term without requirements matches no node.
fn matches_term(term: &NodeSelectorTerm, labels: &Value, name: &str) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let meets = |requirement: &NodeSelectorRequirement, value: Option<&str>| {
        label_selector::meets(&requirement.operator, value, requirement.values.as_deref())
    };
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|one| meets(one, labels.get(&one.key).and_then(Value::as_str)))
        && fields.iter().all(|one| meets(one, Some(name)))
}

/// Returns whether a toleration tolerates a taint (`Toleration.ToleratesTaint`).
fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let covers = |stated: &Option<String>, value: &str| {
        stated.as_deref().is_none_or(|stated| stated.is_empty() || stated == value)
    };
    let value = |value: &Option<String>| value.clone().unwrap_or_default();
    covers(&toleration.effect, &taint.effect)
        && covers(&toleration.key, &taint.key)
        && match toleration.operator.as_deref().unwrap_or_default() {
            "Exists" => true,
            "" | "Equal" => value(&toleration.value) == value(&taint.value),
            _ => false,
        }
}
