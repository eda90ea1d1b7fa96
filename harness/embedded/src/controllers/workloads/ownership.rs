//! Owner references and references in events.

use serde_json::{Value, json};

use crate::resource::Kind;
use crate::resource::object::meta;

/// Returns the controller reference of an object (`metav1.GetControllerOf`).
pub(super) fn controller(object: &Value) -> Option<&Value> {
    object["metadata"]["ownerReferences"].as_array()?.iter().find(|owner| owner["controller"] == true)
}

/// Returns whether an object is controlled by the object with a uid.
pub(super) fn owned_by(object: &Value, uid: &str) -> bool {
    controller(object).is_some_and(|owner| owner["uid"] == uid)
}

/// Creates a controller reference (`metav1.NewControllerRef`).
pub(super) fn reference(kind: Kind, owner: &Value) -> Value {
    let (name, version) = kind.names();
    json!({
        "apiVersion": version,
        "kind": name,
        "name": meta(owner, "name"),
        "uid": meta(owner, "uid"),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Creates a reference to an object for events.
pub(super) fn object_reference(kind: Kind, object: &Value) -> Value {
    let (name, version) = kind.names();
    json!({
        "kind": name,
        "namespace": object["metadata"]["namespace"],
        "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"],
        "apiVersion": version,
        "resourceVersion": object["metadata"]["resourceVersion"],
    })
}
