//! Validation of volumes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::apiserver::field_errors::{FieldErrors, FieldPath};
use crate::apiserver::names;
use crate::resource::ObjectExt;

/// Validates the volumes of a pod and returns the names of the valid ones.
pub(super) fn validate<'a>(spec: &'a Value, path: &FieldPath, errors: &mut FieldErrors) -> BTreeSet<&'a str> {
    let mut valid = BTreeSet::new();
    for (index, volume) in spec.items("volumes").enumerate() {
        let path = path.index(index);
        let mut own = FieldErrors::default();
        let sources = volume.as_object().into_iter().flatten().filter(|(field, _)| *field != "name");
        for (source, _) in sources.skip(1) {
            own.forbidden(&path.child(source), "may not specify more than 1 volume type");
        }
        let (name, name_path) = (volume.text("name"), path.child("name"));
        match name {
            "" => own.required(&name_path, ""),
            name => {
                names::dns_label(name).iter().for_each(|message| own.invalid(&name_path, name, message));
            }
        }
        if valid.contains(name) {
            own.duplicate(&name_path, name);
        }
        if own.is_empty() {
            valid.insert(name);
        }
        errors.append(own);
    }
    valid
}
