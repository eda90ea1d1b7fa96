//! Field selectors of requests (`fields.ParseSelector`), with the fields of a real API server:
//! `AddFieldLabelConversionsFor…` in `pkg/apis/*/v1/conversion.go`, and `ToSelectableFields` of
//! each resource.

use serde_json::Value;

use super::error::SelectorError;
use crate::resource::{Kind, Scope};

/// Requirements on fields, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    field: Field,
    value: String,
    is_equal: bool,
}

/// A field of stored objects.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    path: &'static str,
    /// The value of a missing field.
    default: &'static str,
}

impl FieldSelector {
    /// Parses a selector such as `spec.nodeName=a,status.phase!=Failed` for a resource.
    ///
    /// # Errors
    /// The first syntax error in the order of the sorted parts; without one, the first field that
    /// cannot be selected.
    pub(crate) fn parse(selector: &str, kind: Kind) -> Result<Self, SelectorError> {
        let mut parts: Vec<&str> = selector.split(',').collect();
        parts.sort_unstable();
        let terms = parts.iter().filter(|part| !part.is_empty()).map(|part| Term::parse(part, selector));
        let terms = terms.collect::<Result<Vec<_>, _>>()?;
        let requirement = |Term { label, value, is_equal }: Term| {
            let (field, value) = (selectable_field(label, kind)?, value.to_owned());
            Ok::<_, SelectorError>(Requirement { field, value, is_equal })
        };
        terms.into_iter().map(requirement).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether a stored object meets all requirements.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0
            .iter()
            .all(|requirement| requirement.field.equals(object, &requirement.value) == requirement.is_equal)
    }
}

impl Field {
    const fn text(path: &'static str) -> Self {
        Self { path, default: "" }
    }

    const fn boolean(path: &'static str) -> Self {
        Self { path, default: "false" }
    }

    /// Compares with a value. `Value::pointer` unescapes every name and is slower.
    fn equals(&self, object: &Value, value: &str) -> bool {
        match self.path.split('/').skip(1).fold(object, |object, name| &object[name]) {
            Value::Null => value == self.default,
            Value::String(text) => text == value,
            number_or_flag => {
                let text = number_or_flag.to_string();
                text == value
            }
        }
    }
}

fn selectable_field(label: &str, kind: Kind) -> Result<Field, SelectorError> {
    let unsupported = || SelectorError::UnsupportedField(label.to_owned());
    if label == "metadata.name" {
        return Ok(Field::text("/metadata/name"));
    }
    if label == "metadata.namespace" && kind.scope() == Scope::Namespaced {
        return Ok(Field::text("/metadata/namespace"));
    }
    Ok(match (kind, label) {
        (Kind::Pod, "spec.nodeName") => Field::text("/spec/nodeName"),
        (Kind::Pod, "spec.restartPolicy") => Field::text("/spec/restartPolicy"),
        (Kind::Pod, "spec.schedulerName") => Field::text("/spec/schedulerName"),
        (Kind::Pod, "spec.serviceAccountName") => Field::text("/spec/serviceAccountName"),
        (Kind::Pod, "spec.hostNetwork") => Field::boolean("/spec/hostNetwork"),
        (Kind::Pod, "status.phase") => Field::text("/status/phase"),
        (Kind::Pod, "status.podIP") => Field::text("/status/podIP"),
        (Kind::Pod, "status.nominatedNodeName") => Field::text("/status/nominatedNodeName"),
        (Kind::Node, "spec.unschedulable") => Field::boolean("/spec/unschedulable"),
        (Kind::Namespace, "status.phase") => Field::text("/status/phase"),
        (Kind::Job, "status.successful") => Field { path: "/status/succeeded", default: "0" },
        (Kind::Event, label) => event_field(label).ok_or_else(unsupported)?,
        (Kind::Pod | Kind::Node | Kind::Namespace, _) => return Err(unsupported()),
        // runtime.DefaultMetaV1FieldSelectorConversion
        _ => return Err(SelectorError::UnknownField(label.to_owned())),
    })
}

fn event_field(label: &str) -> Option<Field> {
    if let Some(part) = label.strip_prefix("involvedObject.") {
        return Some(Field::text(match part {
            "kind" => "/involvedObject/kind",
            "namespace" => "/involvedObject/namespace",
            "name" => "/involvedObject/name",
            "uid" => "/involvedObject/uid",
            "apiVersion" => "/involvedObject/apiVersion",
            "resourceVersion" => "/involvedObject/resourceVersion",
            "fieldPath" => "/involvedObject/fieldPath",
            _ => return None,
        }));
    }
    Some(match label {
        "reason" => Field::text("/reason"),
        "type" => Field::text("/type"),
        "reportingComponent" => Field::text("/reportingComponent"),
        "source" => Field::text("/source/component"),
        _ => return None,
    })
}

/// A part of a selector.
struct Term<'a> {
    label: &'a str,
    value: &'a str,
    is_equal: bool,
}

impl<'a> Term<'a> {
    fn parse(part: &'a str, selector: &str) -> Result<Self, SelectorError> {
        let invalid =
            || SelectorError::MissingOperator { selector: selector.to_owned(), part: part.to_owned() };
        let (label, value) = part.split_once('=').ok_or_else(invalid)?;
        Ok(match label.strip_suffix('!') {
            Some(label) => Self { label, value, is_equal: false },
            None => Self { label, value: value.strip_prefix('=').unwrap_or(value), is_equal: true },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POD: Kind = Kind::Pod;

    #[test]
    fn compares_fields() {
        let pod = json!({
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {"nodeName": "w", "hostNetwork": true},
            "status": {"phase": "Running"},
        });
        let matches = |text: &str| FieldSelector::parse(text, POD).unwrap().matches(&pod);
        for text in [
            "",
            "metadata.name=p",
            "spec.nodeName==w,status.phase!=Failed",
            "spec.hostNetwork=true",
            "status.podIP=",
        ] {
            assert!(matches(text), "{text}");
        }
        for text in ["metadata.name=q", "spec.nodeName!=w", "spec.hostNetwork=false"] {
            assert!(!matches(text), "{text}");
        }
        let event = json!({"source": {"component": "kubelet"}, "involvedObject": {"fieldPath": "a{b}"}});
        let matches = |text: &str| FieldSelector::parse(text, Kind::Event).unwrap().matches(&event);
        assert!(matches("source=kubelet") && matches("involvedObject.fieldPath=a{b}"));
        let node = json!({"metadata": {"name": "n"}});
        let cordoned = |text: &str| FieldSelector::parse(text, Kind::Node).unwrap();
        assert!(cordoned("spec.unschedulable=false").matches(&node));
    }

    #[test]
    fn rejects_unsupported_fields() {
        let error = |text, kind| FieldSelector::parse(text, kind).unwrap_err().to_string();
        assert_eq!(error("spec.foo=a", POD), "field label not supported: spec.foo");
        assert_eq!(error("regarding.name=a", Kind::Event), "field label not supported: regarding.name");
        assert_eq!(
            error("metadata.namespace=a", Kind::Node),
            "field label not supported: metadata.namespace"
        );
        let leases = error("spec.holderIdentity=a", Kind::Lease);
        assert!(leases.contains("is not a known field selector"), "{leases}");
    }

    #[test]
    fn errors_are_those_of_the_api_server() {
        for (text, expected) in [
            (
                "metadata.name=p,spec.foo",
                "invalid selector: 'metadata.name=p,spec.foo'; can't understand 'spec.foo'",
            ),
            // All parts are parsed, in the order of the alphabet, before any field is looked up.
            ("spec.foo=a,z,b", "invalid selector: 'spec.foo=a,z,b'; can't understand 'b'"),
            ("z=1,a=1", "field label not supported: a"),
        ] {
            assert_eq!(FieldSelector::parse(text, POD).unwrap_err().to_string(), expected, "{text}");
        }
    }
}
