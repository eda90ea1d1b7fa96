//! What is demanded of volumes.

use std::collections::BTreeSet;

use evictlab_rules::quantity::Quantity;
use serde_json::Value;

use super::super::field::{Errors, Path};
use super::super::names;

/// Checks a pod's volumes; the answer are the names of those that can be mounted.
pub(super) fn check<'a>(spec: &'a Value, path: &Path, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut good = BTreeSet::new();
    for (index, volume) in spec["volumes"].as_array().into_iter().flatten().enumerate() {
        let path = path.index(index);
        let mut wrong = Errors::default();
        source(volume, &path, &mut wrong);
        let name = volume["name"].as_str().unwrap_or_default();
        let place = path.child("name");
        match name {
            "" => wrong.required(&place, ""),
            name => names::label(name).iter().for_each(|what| wrong.invalid(&place, name, what)),
        }
        if good.contains(name) {
            wrong.duplicate(&place, name);
        }
        if wrong.is_empty() {
            good.insert(name);
        }
        errors.append(wrong);
    }
    good
}

fn source(volume: &Value, path: &Path, errors: &mut Errors) {
    let sources = volume.as_object().into_iter().flatten().filter(|(field, _)| *field != "name");
    for (number, (kind, source)) in sources.enumerate() {
        let path = path.child(kind);
        if number > 0 {
            errors.forbidden(&path, "may not specify more than 1 volume type");
            continue;
        }
        let missing = |field: &str| source[field].as_str().unwrap_or_default().is_empty();
        match kind.as_str() {
            "emptyDir" => {
                let limit = source["sizeLimit"].as_str().and_then(|limit| limit.parse::<Quantity>().ok());
                if limit.is_some_and(|limit| limit.is_negative()) {
                    errors.forbidden(
                        &path.child("sizeLimit"),
                        "SizeLimit field must be a valid resource quantity",
                    );
                }
            }
            "hostPath" => {
                let place = source["path"].as_str().unwrap_or_default();
                if place.is_empty() {
                    errors.required(&path.child("path"), "");
                } else if place.split('/').any(|part| part == "..") {
                    errors.invalid(&path.child("path"), place, "must not contain '..'");
                }
            }
            "secret" if missing("secretName") => errors.required(&path.child("secretName"), ""),
            "configMap" if missing("name") => errors.required(&path.child("name"), ""),
            "persistentVolumeClaim" if missing("claimName") => errors.required(&path.child("claimName"), ""),
            _ => {}
        }
    }
}
