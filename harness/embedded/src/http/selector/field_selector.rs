//! Field selectors of requests (`fields.ParseSelector`), with the fields of a real API server:
//! `AddFieldLabelConversionsFor…` in `pkg/apis/*/v1/conversion.go`, and `ToSelectableFields` of
//! each resource.

use serde_json::Value;

use super::error::SelectorError;
use crate::http::resource::Source;
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

/// Location of the value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    /// String at a path of the stored object.
    Text(&'static str),
    /// Boolean at a path; false if it is missing.
    Bool(&'static str),
    /// First non-empty string of two paths.
    FirstOf(&'static str, &'static str),
    /// Integer at a path; 0 if it is missing.
    Int(&'static str),
    /// Selectable, but always empty.
    Empty,
}

impl FieldSelector {
    /// Parses a selector such as `spec.nodeName=a,status.phase!=Failed` for a resource.
    ///
    /// # Errors
    /// The first syntax error in the order of the sorted parts; without one, the first field that
    /// cannot be selected.
    pub(crate) fn parse(selector: &str, source: Source) -> Result<Self, SelectorError> {
        let mut parts = split(selector);
        parts.sort_unstable();
        let terms = parts.iter().filter(|part| !part.is_empty()).map(|part| Term::parse(part, selector));
        let terms = terms.collect::<Result<Vec<_>, _>>()?;
        let requirement = |Term { label, value, is_equal }: Term| {
            Ok::<_, SelectorError>(Requirement { field: selectable_field(label, source)?, value, is_equal })
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
    fn equals(&self, object: &Value, value: &str) -> bool {
        match self {
            Self::Text(path) => text_at(object, path) == value,
            Self::Bool(path) => {
                object.pointer(path).and_then(Value::as_bool).unwrap_or(false).to_string() == value
            }
            Self::FirstOf(first, second) => match text_at(object, first) {
                "" => text_at(object, second) == value,
                first => first == value,
            },
            Self::Int(path) => object.pointer(path).and_then(Value::as_i64).unwrap_or(0).to_string() == value,
            Self::Empty => value.is_empty(),
        }
    }
}

/// Returns the string at a path. `Value::pointer` unescapes every name and is slower.
fn text_at<'a>(object: &'a Value, path: &str) -> &'a str {
    path.split('/').skip(1).fold(object, |object, name| &object[name]).as_str().unwrap_or_default()
}

fn selectable_field(label: &str, source: Source) -> Result<Field, SelectorError> {
    let unsupported = || SelectorError::UnsupportedField(label.to_owned());
    let kind = source.kind();
    if label == "metadata.name" {
        return Ok(Field::Text("/metadata/name"));
    }
    if label == "metadata.namespace" && kind.is_none_or(|kind| kind.scope() == Scope::Namespaced) {
        return Ok(Field::Text("/metadata/namespace"));
    }
    Ok(match (source, label) {
        (Source::Stored(Kind::Pod), "spec.nodeName" | "spec.host") => Field::Text("/spec/nodeName"),
        (Source::Stored(Kind::Pod), "spec.restartPolicy") => Field::Text("/spec/restartPolicy"),
        (Source::Stored(Kind::Pod), "spec.schedulerName") => Field::Text("/spec/schedulerName"),
        (Source::Stored(Kind::Pod), "spec.serviceAccountName") => Field::Text("/spec/serviceAccountName"),
        (Source::Stored(Kind::Pod), "spec.hostNetwork") => Field::Bool("/spec/hostNetwork"),
        (Source::Stored(Kind::Pod), "status.phase") => Field::Text("/status/phase"),
        (Source::Stored(Kind::Pod), "status.podIP") => Field::Text("/status/podIP"),
        (Source::Stored(Kind::Pod), "status.podIPs") => Field::Empty,
        (Source::Stored(Kind::Pod), "status.nominatedNodeName") => Field::Text("/status/nominatedNodeName"),
        (Source::Stored(Kind::Node), "spec.unschedulable") => Field::Bool("/spec/unschedulable"),
        (Source::Stored(Kind::Namespace), "status.phase") => Field::Text("/status/phase"),
        (Source::Stored(Kind::Job), "status.successful") => Field::Int("/status/succeeded"),
        (Source::Stored(Kind::Job), _) => return Err(SelectorError::UnsupportedJobField(label.to_owned())),
        (Source::Stored(Kind::Event), label) => event_field(label).ok_or_else(unsupported)?,
        (Source::Stored(Kind::Pod | Kind::Node | Kind::Namespace), _) => return Err(unsupported()),
        // runtime.DefaultMetaV1FieldSelectorConversion
        _ => return Err(SelectorError::UnknownField(label.to_owned())),
    })
}

fn event_field(label: &str) -> Option<Field> {
    if let Some(part) = label.strip_prefix("involvedObject.") {
        return Some(Field::Text(match part {
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
        "reason" => Field::Text("/reason"),
        "type" => Field::Text("/type"),
        "reportingComponent" => Field::Text("/reportingComponent"),
        "source" => Field::FirstOf("/source/component", "/reportingComponent"),
        _ => return None,
    })
}

/// Splits at commas that are not escaped by a backslash.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == ',' {
            parts.push(String::new());
            continue;
        }
        let Some(part) = parts.last_mut() else { break };
        part.push(character);
        if character == '\\' {
            part.extend(characters.next());
        }
    }
    parts
}

/// A part of a selector.
struct Term<'a> {
    label: &'a str,
    value: String,
    is_equal: bool,
}

impl<'a> Term<'a> {
    fn parse(part: &'a str, selector: &str) -> Result<Self, SelectorError> {
        let invalid =
            || SelectorError::MissingOperator { selector: selector.to_owned(), part: part.to_owned() };
        let (label, value) = part.split_once('=').ok_or_else(invalid)?;
        let (label, value, is_equal) = match label.strip_suffix('!') {
            Some(label) => (label, value, false),
            None => (label, value.strip_prefix('=').unwrap_or(value), true),
        };
        Ok(Self { label, value: unescape(value)?, is_equal })
    }
}

/// Removes the backslashes before `\`, `,` and `=` (`fields.UnescapeValue`).
fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut unescaped = String::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => unescaped.push(escaped),
                other => {
                    let sequence = ['\\'].into_iter().chain(other).collect();
                    return Err(SelectorError::EscapeSequence(sequence));
                }
            },
            '=' => return Err(SelectorError::UnescapedCharacter(character)),
            character => unescaped.push(character),
        }
    }
    Ok(unescaped)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POD: Source = Source::Stored(Kind::Pod);

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
        let event = json!({"reportingComponent": "kubelet", "involvedObject": {"fieldPath": "a=b,c"}});
        let matches =
            |text: &str| FieldSelector::parse(text, Source::Stored(Kind::Event)).unwrap().matches(&event);
        assert!(matches("source=kubelet") && matches(r"involvedObject.fieldPath=a\=b\,c"));
    }

    #[test]
    fn rejects_unsupported_fields() {
        let error = |text, source| FieldSelector::parse(text, source).unwrap_err().to_string();
        assert_eq!(error("spec.foo=a", POD), "field label not supported: spec.foo");
        assert_eq!(
            error("regarding.name=a", Source::Stored(Kind::Event)),
            "field label not supported: regarding.name"
        );
        assert_eq!(
            error("metadata.namespace=a", Source::Stored(Kind::Node)),
            "field label not supported: metadata.namespace"
        );
        let leases = error("spec.holderIdentity=a", Source::Stored(Kind::Lease));
        assert!(leases.contains("is not a known field selector"), "{leases}");
    }

    #[test]
    fn errors_are_those_of_the_api_server() {
        for (text, expected) in [
            (
                "metadata.name=p,spec.foo",
                "invalid selector: 'metadata.name=p,spec.foo'; can't understand 'spec.foo'",
            ),
            ("status.phase=a=b", "invalid field selector: unescaped character in value: 61"),
            (r"status.phase=a\b", r"invalid field selector: invalid escape sequence: \b"),
            ("status.phase=a\\", r"invalid field selector: invalid escape sequence: \"),
            // All parts are parsed, in the order of the alphabet, before any field is looked up.
            ("spec.foo=a,z,b", "invalid selector: 'spec.foo=a,z,b'; can't understand 'b'"),
            ("z=1,a=1", "field label not supported: a"),
        ] {
            assert_eq!(FieldSelector::parse(text, POD).unwrap_err().to_string(), expected, "{text}");
        }
    }
}
