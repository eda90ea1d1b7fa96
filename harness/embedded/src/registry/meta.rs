//! Metadata: names, namespaces, what the server alone may set.

use serde_json::{Map, Value, json};

use super::field::{Errors, Path};
use super::{Propagation, Status, names};
use crate::store::{Kind, Scope};
use crate::world::Ctx;

/// Makes the metadata of a new object whole: its namespace, its name if it is to be generated, and nothing that only the server sets.
pub(super) fn prepare(
    ctx: &mut Ctx,
    kind: Kind,
    namespace: &str,
    object: &mut Value,
) -> Result<String, Status> {
    if !text(object, "resourceVersion").is_empty() {
        return Err(Status::internal("resourceVersion should not be set on objects to be created"));
    }
    in_namespace(kind, namespace, object)?;
    let name = match (text(object, "name"), text(object, "generateName")) {
        ("", "") => String::new(),
        ("", prefix) => {
            let prefix = prefix.to_owned();
            ctx.store.generated(&prefix)
        }
        (name, _) => name.to_owned(),
    };
    let fields = fields(object);
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
    ] {
        fields.shift_remove(field);
    }
    without_empty(fields);
    if !name.is_empty() {
        fields.insert("name".to_owned(), json!(name));
    }
    Ok(name)
}

/// Checks that an object is where the request says, and says so in the object.
fn in_namespace(kind: Kind, namespace: &str, object: &mut Value) -> Result<(), Status> {
    match (kind.scope(), text(object, "namespace")) {
        (Scope::Namespaced, stated) => {
            if !stated.is_empty() && stated != namespace {
                let why =
                    "the namespace of the provided object does not match the namespace sent on the request";
                return Err(Status::bad_request(why));
            }
            fields(object).insert("namespace".to_owned(), json!(namespace));
        }
        (Scope::Cluster, _) => {
            fields(object).shift_remove("namespace");
        }
    }
    Ok(())
}

/// Checks that objects may be created in a namespace.
pub(super) fn check_namespace(ctx: &Ctx, kind: Kind, namespace: &str, name: &str) -> Result<(), Status> {
    if kind.scope() == Scope::Cluster {
        return Ok(());
    }
    let Some(object) = ctx.store.get(Kind::Namespace, "", namespace) else {
        return Err(Status::not_found(Kind::Namespace, namespace));
    };
    if object["status"]["phase"] != "Terminating" {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = json!([{
        "reason": "NamespaceTerminating",
        "message": format!("namespace {namespace} is being terminated"),
        "field": "metadata.namespace",
    }]);
    Err(Status::forbidden(kind, name, &why).with_causes(cause))
}

/// Makes the metadata of a changed object whole from that of the old one. A stated version must be the old one's.
pub(super) fn carry_over(
    kind: Kind,
    namespace: &str,
    name: &str,
    old: &Value,
    object: &mut Value,
) -> Result<(), Status> {
    let stated = text(object, "name");
    if !stated.is_empty() && stated != name {
        let why = format!("the name of the object ({stated}) does not match the name on the URL ({name})");
        return Err(Status::bad_request(why));
    }
    in_namespace(kind, namespace, object)?;
    let (uid, own) = (text(object, "uid").to_owned(), text(old, "uid"));
    if !uid.is_empty() && uid != own {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {own}");
        return Err(Status::conflict(kind, name, &why));
    }
    let version = text(object, "resourceVersion");
    if version.is_empty() && matches!(kind, Kind::PodDisruptionBudget | Kind::Lease | Kind::ServiceAccount) {
        let mut errors = Errors::default();
        let path = Path::new("metadata").child("resourceVersion");
        errors.invalid(&path, "", "must be specified for an update");
        errors.into_result(kind, name)?;
    }
    if !version.is_empty() && version != text(old, "resourceVersion") {
        return Err(Status::modified(kind, name));
    }
    let fields = fields(object);
    fields.insert("name".to_owned(), json!(name));
    fields.shift_remove("managedFields");
    without_empty(fields);
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
    ] {
        match old["metadata"].get(field) {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.shift_remove(field),
        };
    }
    Ok(())
}

/// Checks metadata.
pub(super) fn validate(object: &Value, rule: fn(&str) -> Vec<String>) -> Errors {
    let mut errors = Errors::default();
    let path = Path::new("metadata");
    let prefix = text(object, "generateName");
    if !prefix.is_empty() {
        // What follows makes a dash at its end good.
        let masked = prefix.strip_suffix('-').map_or(prefix.to_owned(), |start| format!("{start}a"));
        rule(&masked).iter().for_each(|wrong| errors.invalid(&path.child("generateName"), prefix, wrong));
    }
    match text(object, "name") {
        "" => errors.required(&path.child("name"), "name or generateName is required"),
        name => rule(name).iter().for_each(|wrong| errors.invalid(&path.child("name"), name, wrong)),
    }
    labels(&object["metadata"]["labels"], &path.child("labels"), &mut errors);
    annotations(object, &path.child("annotations"), &mut errors);
    for finalizer in finalizers(object) {
        let path = path.child("finalizers");
        names::qualified(finalizer).iter().for_each(|wrong| errors.invalid(&path, finalizer, wrong));
        if !finalizer.contains('/') && !["orphan", "foregroundDeletion"].contains(&finalizer) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid(&path, finalizer, why);
        }
    }
    errors
}

/// Checks labels.
pub(super) fn labels(labels: &Value, path: &Path, errors: &mut Errors) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        names::qualified(key).iter().for_each(|wrong| errors.invalid(path, key.as_str(), wrong));
        let value = value.as_str().unwrap_or_default();
        names::label_value(value).iter().for_each(|wrong| errors.invalid(path, value, wrong));
    }
}

/// Checks the annotations of an object or a template.
pub(super) fn annotations(object: &Value, path: &Path, errors: &mut Errors) {
    for (key, _) in object["metadata"]["annotations"].as_object().into_iter().flatten() {
        let lower = key.to_lowercase();
        names::qualified(&lower).iter().for_each(|wrong| errors.invalid(path, key.as_str(), wrong));
    }
}

/// What keeps an object that is deleted.
pub(super) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Has an object wait for the garbage collector as the way wants that its dependents take; another way, if it was chosen before, is left.
pub(super) fn collect(object: &mut Value, way: Propagation) {
    for other in Propagation::ALL.into_iter().filter(|other| *other != way).filter_map(Propagation::finalizer)
    {
        without_finalizer(object, other);
    }
    if let Some(finalizer) = way.finalizer()
        && finalizers(object).all(|other| other != finalizer)
    {
        let all: Vec<&str> = finalizers(object).chain([finalizer]).collect();
        let all = json!(all);
        object["metadata"]["finalizers"] = all;
    }
}

/// Takes a finalizer from an object.
pub(super) fn without_finalizer(object: &mut Value, finalizer: &str) {
    let left: Vec<&str> = finalizers(object).filter(|other| *other != finalizer).collect();
    let left = json!(left);
    let fields = fields(object);
    fields.insert("finalizers".to_owned(), left);
    without_empty(fields);
}

/// A text of the metadata; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

fn fields(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    match metadata {
        Value::Object(fields) => fields,
        _ => unreachable!("it was just made an object"),
    }
}

fn without_empty(fields: &mut Map<String, Value>) {
    let empty = |value: &Value| match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    fields.retain(|_, value| !empty(value));
}
