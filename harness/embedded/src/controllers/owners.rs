//! Owner references of objects.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt, Scope};

/// Returns the kind of an owner, or `None` for a kind that the model does not have.
pub(super) fn kind(owner: &OwnerReference) -> Option<Kind> {
    let names = (owner.kind.as_str(), owner.api_version.as_str());
    Kind::ALL.into_iter().find(|kind| kind.names() == names)
}

/// Finds the owner of an object in a namespace. Another object of the owner's name is not the
/// owner.
pub(super) fn find<'a>(
    owner: &OwnerReference,
    namespace: &str,
    ctx: &'a SimContext,
) -> Option<(Kind, &'a Arc<Value>)> {
    let kind = kind(owner)?;
    let namespace = if kind.scope() == Scope::Namespaced { namespace } else { "" };
    let object = ctx.store.get(kind, namespace, &owner.name)?;
    (object.uid() == owner.uid).then_some((kind, object))
}

/// Creates a controller reference (`metav1.NewControllerRef`).
pub(super) fn controller_reference(kind: Kind, owner: &Value) -> OwnerReference {
    let (name, version) = kind.names();
    OwnerReference {
        api_version: version.to_owned(),
        kind: name.to_owned(),
        name: owner.name().to_owned(),
        uid: owner.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Removes an owner reference from an object.
pub(super) fn remove(object: &mut Value, uid: &str) {
    let mut left = object.owners();
    left.retain(|owner| owner.uid != uid);
    if left.is_empty() {
        object.metadata_mut().remove("ownerReferences");
    } else {
        object.metadata_mut().write("ownerReferences", left);
    }
}
