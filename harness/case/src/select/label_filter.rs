//! Label filters, compatible with those of Ginkgo (`types/label_filter.go`).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::parse::{LabelExpression, LabelFilterError, parse};

/// A label filter, such as `Feature:Eviction && !(Slow || Flaky)` or `Feature: containsAny
/// {Eviction, Sidecar}`.
///
/// Matching ignores case, except in a `/regex/`. Upstream renamed its `NodeFeature:X` labels to
/// `Feature:X` in 2024: either selects both.
#[derive(Clone, Debug)]
pub struct LabelFilter {
    text: String,
    expression: LabelExpression,
}

impl LabelFilter {
    /// Returns whether the filter selects a case with these labels.
    pub fn matches(&self, labels: &[String]) -> bool {
        self.expression.matches(&with_both_feature_names(labels))
    }
}

impl FromStr for LabelFilter {
    type Err = LabelFilterError;

    fn from_str(text: &str) -> Result<Self, LabelFilterError> {
        Ok(Self { text: text.to_owned(), expression: parse(text)? })
    }
}

impl fmt::Display for LabelFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl LabelExpression {
    fn matches(&self, labels: &[String]) -> bool {
        match self {
            Self::Everything => true,
            Self::Label(name) => labels.iter().any(|label| label.to_lowercase() == *name),
            Self::Regex(regex) => labels.iter().any(|label| regex.is_match(label)),
            Self::Set(operation, key, values) => operation.holds(&values_of(key, labels), values),
            Self::Not(inner) => !inner.matches(labels),
            Self::And(all) => all.iter().all(|one| one.matches(labels)),
            Self::Or(any) => any.iter().any(|one| one.matches(labels)),
        }
    }
}

fn values_of(key: &str, labels: &[String]) -> BTreeSet<String> {
    let pairs = labels.iter().filter_map(|label| label.split_once(':'));
    pairs
        .filter(|(label_key, _)| label_key.trim().to_lowercase() == key)
        .map(|(_, value)| value.trim().to_lowercase())
        .collect()
}

fn with_both_feature_names(labels: &[String]) -> Vec<String> {
    let other = |label: &String| match label.split_once(':')? {
        (key, feature) if key.eq_ignore_ascii_case("NodeFeature") => Some(format!("Feature:{feature}")),
        (key, feature) if key.eq_ignore_ascii_case("Feature") => Some(format!("NodeFeature:{feature}")),
        _ => None,
    };
    labels.iter().cloned().chain(labels.iter().filter_map(other)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns whether the filter selects a case with these labels, separated by spaces.
    fn selects(filter: &str, labels: &str) -> bool {
        let labels: Vec<String> =
            labels.split(' ').filter(|label| !label.is_empty()).map(str::to_owned).collect();
        filter.parse::<LabelFilter>().unwrap_or_else(|error| panic!("{error}")).matches(&labels)
    }

    #[test]
    fn selects_like_ginkgo() {
        // Filter, selected labels, other labels; alternatives are separated by `;`.
        let rows = [
            ("", "a; ", ""),
            ("cat", "cat; CAT; dog cat", "cats; ; dog"),
            ("CAT", "cat", "dog"),
            ("cat || dog", "cat; dog; cat dog", "cow; "),
            ("cat, dog", "cat; dog", "cow"),
            ("cat && dog", "cat dog", "cat; dog; "),
            ("!cat", "dog; ", "cat; cat dog"),
            ("!!cat", "cat", "dog"),
            // Precedence: `!`, then `&&`, then `||` and `,`.
            ("cat || dog && cow", "cat; dog cow", "dog; cow"),
            ("(cat || dog) && cow", "cat cow; dog cow", "cat; cow; dog"),
            ("!cat && dog", "dog", "cat dog; "),
            ("!(cat && dog)", "cat; dog; ", "cat dog"),
            ("cat && !(dog || cow), pig", "cat; pig; pig cow", "cat dog; cow"),
            ("/c[ao]/", "cat; cow", "dog; CAT"),
            ("/^Feature:/ && !/Evic/", "Feature:Sidecar", "Feature:Eviction; Slow"),
            ("Feature:Eviction", "Feature:Eviction; feature:eviction", "Feature:Evict; Feature"),
            // Both upstream names of a feature.
            ("NodeFeature:Eviction", "NodeFeature:Eviction; Feature:Eviction", "Feature:Other"),
            ("Feature:Eviction", "NodeFeature:Eviction", "NodeFeature:Other"),
            ("NodeFeature:Eviction", "feature:eviction", "feature:other"),
            ("feature:eviction", "NODEFEATURE:Eviction", "NODEFEATURE:Other"),
            ("!Feature:Eviction", "Slow", "NodeFeature:Eviction; Feature:Eviction"),
            ("Feature: containsAny Eviction", "NodeFeature:Eviction", "Slow"),
            ("k: containsAny {a, B}", "k:a; K:b; k:c k:b", "k:c; a; "),
            ("k: containsAny a", "k:a; k:a k:b", "k:b"),
            ("k: containsAll {a, b}", "k:a k:b; k:a k:b k:c", "k:a; "),
            ("k: consistsOf {a, b}", "k:a k:b", "k:a; k:a k:b k:c"),
            ("k: isSubsetOf {a, b}", "k:a; ; k:a k:b", "k:c; k:a k:c"),
            ("k: isEmpty", "; a; j:a", "k:a"),
            ("k: ISEMPTY && cat", "cat", "cat k:a; "),
            ("!(k: isEmpty) || cat", "k:a; cat", "dog"),
            ("k: containsAny {a} && cat", "k:a cat", "k:a; cat"),
        ];
        for (filter, yes, no) in rows {
            for labels in yes.split(';').map(str::trim) {
                assert!(selects(filter, labels), "{filter:?} selects {labels:?}");
            }
            for labels in no.split(';').map(str::trim).filter(|_| !no.is_empty()) {
                assert!(!selects(filter, labels), "{filter:?} does not select {labels:?}");
            }
        }
    }

    #[test]
    fn errors_point_to_the_mistake() {
        let rows = [
            "cat &&",
            "cat & dog",
            "cat | dog",
            "&& cat",
            "cat dog && !",
            "(cat",
            "cat)",
            "()",
            "cat (dog)",
            "/c[/",
            "/cat",
            "k: has a",
            "k: containsAny",
            "k: containsAny {a",
            "k: containsAny {a,,b}",
            "k: containsAny /a/",
            "k: isEmpty {a}",
            ": isEmpty",
            "k containsAny a",
            "cat !dog",
            "k: containsAny {a} dog",
            "k:",
            "cat /dog/",
        ];
        let errors = rows.map(|row| row.parse::<LabelFilter>().expect_err(row).to_string());
        insta::assert_snapshot!(errors.join("\n\n"));
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let deep = "(".repeat(100_000);
        assert!(deep.parse::<LabelFilter>().unwrap_err().to_string().contains("nested"));
        assert!(selects(&format!("{}cat", "!".repeat(100_000)), "cat"));
    }

    proptest! {
        #[test]
        fn never_panics(text in r"([a-c:&|!,()/{} \u{e9}]|containsAny|isEmpty|.){0,24}") {
            match text.parse::<LabelFilter>() {
                Ok(filter) => { filter.matches(&["a".to_owned(), "b:c".to_owned()]); }
                Err(error) => prop_assert!(error.to_string().contains('^')),
            }
        }

        /// Properties that hold without a second parser: brackets around a filter do not change
        /// it, and a filter and its negation select different cases.
        #[test]
        fn brackets_and_negation_are_consistent(text in "!?[ab](&&|,)!?[ab](&&|\\|\\|)[ab]", labels in "a?") {
            prop_assert_eq!(selects(&text, &labels), selects(&format!("({text})"), &labels));
            prop_assert_ne!(selects(&text, &labels), selects(&format!("!({text})"), &labels));
        }
    }
}
