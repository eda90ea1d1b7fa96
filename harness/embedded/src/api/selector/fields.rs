//! Field selectors (`fields.ParseSelector`), with the fields that a real server knows: `AddFieldLabelConversionsFor…` in `pkg/apis/*/v1/conversion.go`,
//! and `ToSelectableFields` of each resource.

use serde_json::Value;

use crate::api::resource::Source;
use crate::store::{Kind, Scope};

/// Requirements that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    field: Field,
    value: String,
    equal: bool,
}

/// Where a field's value is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    /// At a path of the stored object.
    At(&'static str),
    /// There too, and `false` where it is absent.
    Switch(&'static str),
    /// The first of two paths that has anything.
    Either(&'static str, &'static str),
    /// A number there, 0 where it is absent.
    Count(&'static str),
    /// Known but never set.
    Nowhere,
}

impl Fields {
    /// Reads a selector such as `spec.nodeName=a,status.phase!=Failed` for a resource.
    pub fn read(text: &str, source: Source) -> Result<Self, String> {
        split(text)
            .iter()
            .filter(|part| !part.is_empty())
            .map(|part| requirement(part, source))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether there are no requirements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object, as it is stored, fulfils them.
    pub fn choose(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.field.is(object, &requirement.value) == requirement.equal)
    }
}

impl Field {
    fn is(&self, object: &Value, value: &str) -> bool {
        match self {
            Self::At(path) => at(object, path) == value,
            Self::Switch(path) => {
                object.pointer(path).and_then(Value::as_bool).unwrap_or(false).to_string() == value
            }
            Self::Either(first, second) => match at(object, first) {
                "" => at(object, second) == value,
                first => first == value,
            },
            Self::Count(path) => {
                object.pointer(path).and_then(Value::as_i64).unwrap_or(0).to_string() == value
            }
            Self::Nowhere => value.is_empty(),
        }
    }
}

/// The text at a path of names without `/` and `~`; `Value::pointer` unescapes each of them every time.
fn at<'a>(object: &'a Value, path: &str) -> &'a str {
    path.split('/').skip(1).fold(object, |object, name| &object[name]).as_str().unwrap_or_default()
}

fn field(label: &str, source: Source) -> Result<Field, String> {
    let unknown = || format!("field label not supported: {label}");
    let kind = source.kind();
    if label == "metadata.name" {
        return Ok(Field::At("/metadata/name"));
    }
    if label == "metadata.namespace" && kind.is_none_or(|kind| kind.scope() == Scope::Namespaced) {
        return Ok(Field::At("/metadata/namespace"));
    }
    Ok(match (source, label) {
        (Source::Stored(Kind::Pod), "spec.nodeName" | "spec.host") => Field::At("/spec/nodeName"),
        (Source::Stored(Kind::Pod), "spec.restartPolicy") => Field::At("/spec/restartPolicy"),
        (Source::Stored(Kind::Pod), "spec.schedulerName") => Field::At("/spec/schedulerName"),
        (Source::Stored(Kind::Pod), "spec.serviceAccountName") => Field::At("/spec/serviceAccountName"),
        (Source::Stored(Kind::Pod), "spec.hostNetwork") => Field::Switch("/spec/hostNetwork"),
        (Source::Stored(Kind::Pod), "status.phase") => Field::At("/status/phase"),
        (Source::Stored(Kind::Pod), "status.podIP") => Field::At("/status/podIP"),
        (Source::Stored(Kind::Pod), "status.podIPs") => Field::Nowhere,
        (Source::Stored(Kind::Pod), "status.nominatedNodeName") => Field::At("/status/nominatedNodeName"),
        (Source::Stored(Kind::Node), "spec.unschedulable") => Field::Switch("/spec/unschedulable"),
        (Source::Stored(Kind::Namespace), "status.phase") => Field::At("/status/phase"),
        (Source::Stored(Kind::Job), "status.successful") => Field::Count("/status/succeeded"),
        (Source::Stored(Kind::Job), _) => return Err(format!("field label {label:?} not supported for Job")),
        (Source::Stored(Kind::Event), label) => event(label, "involvedObject.").ok_or_else(unknown)?,
        (Source::NewEvents, label) => event(label, "regarding.").ok_or_else(unknown)?,
        (Source::Stored(Kind::Pod | Kind::Node | Kind::Namespace), _) => return Err(unknown()),
        // runtime.DefaultMetaV1FieldSelectorConversion
        _ => {
            return Err(format!(
                "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            ));
        }
    })
}

fn event(label: &str, about: &str) -> Option<Field> {
    if let Some(part) = label.strip_prefix(about) {
        return Some(Field::At(match part {
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
    let new = about == "regarding.";
    Some(match label {
        "reason" => Field::At("/reason"),
        "type" => Field::At("/type"),
        "reportingComponent" if !new => Field::At("/reportingComponent"),
        "reportingController" if new => Field::At("/reportingComponent"),
        "source" if !new => Field::Either("/source/component", "/reportingComponent"),
        _ => return None,
    })
}

/// The parts between commas that no backslash guards.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == ',' {
            parts.push(String::new());
            continue;
        }
        let Some(part) = parts.last_mut() else { break };
        part.push(letter);
        if letter == '\\' {
            part.extend(letters.next());
        }
    }
    parts
}

fn requirement(part: &str, source: Source) -> Result<Requirement, String> {
    let invalid = || format!("invalid selector: '{part}'; can't understand '{part}'");
    let mark = part.find('=').ok_or_else(invalid)?;
    let (label, equal) = match part[..mark].strip_suffix('!') {
        Some(label) => (label, false),
        None => (&part[..mark], true),
    };
    let value = &part[mark + 1..];
    let value = if equal { value.strip_prefix('=').unwrap_or(value) } else { value };
    Ok(Requirement { field: field(label, source)?, value: unescaped(value)?, equal })
}

fn unescaped(value: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(guarded @ ('\\' | ',' | '=')) => plain.push(guarded),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
                }
            },
            '=' => return Err(format!("invalid field selector: unescaped character in value: {letter}")),
            letter => plain.push(letter),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POD: Source = Source::Stored(Kind::Pod);

    #[test]
    fn chooses_by_fields() {
        let pod = json!({
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {"nodeName": "w", "hostNetwork": true},
            "status": {"phase": "Running"},
        });
        let chooses = |text: &str| Fields::read(text, POD).unwrap().choose(&pod);
        for text in [
            "",
            "metadata.name=p",
            "spec.nodeName==w,status.phase!=Failed",
            "spec.hostNetwork=true",
            "status.podIP=",
        ] {
            assert!(chooses(text), "{text}");
        }
        for text in ["metadata.name=q", "spec.nodeName!=w", "spec.hostNetwork=false"] {
            assert!(!chooses(text), "{text}");
        }
        let event = json!({"reportingComponent": "kubelet", "involvedObject": {"fieldPath": "a=b,c"}});
        let chooses = |text: &str| Fields::read(text, Source::Stored(Kind::Event)).unwrap().choose(&event);
        assert!(chooses("source=kubelet") && chooses(r"involvedObject.fieldPath=a\=b\,c"));
    }

    #[test]
    fn names_what_is_not_supported() {
        let error = |text, source| Fields::read(text, source).unwrap_err();
        assert_eq!(error("spec.foo=a", POD), "field label not supported: spec.foo");
        assert_eq!(
            error("regarding.name=a", Source::Stored(Kind::Event)),
            "field label not supported: regarding.name"
        );
        assert_eq!(
            error("metadata.namespace=a", Source::Stored(Kind::Node)),
            "field label not supported: metadata.namespace"
        );
        assert_eq!(
            error("involvedObject.name=a", Source::NewEvents),
            "field label not supported: involvedObject.name"
        );
        let leases = error("spec.holderIdentity=a", Source::Stored(Kind::Lease));
        assert!(leases.contains("is not a known field selector"), "{leases}");
        assert!(error("metadata.name", POD).starts_with("invalid selector: "));
    }
}
