//! The images that a case names.

use serde_json::{Map, Value};

use evictlab_case::Case;
use evictlab_case::positions::PathSegment;
use evictlab_case::yaml_path;

/// An image, and the path of the field that names it.
pub(crate) struct NamedImage {
    pub name: String,
    pub path: Vec<PathSegment>,
}

/// Returns the images of the pods, the objects and the ephemeral containers of a case.
pub(crate) fn images(case: &Case) -> Vec<NamedImage> {
    let mut found = vec![];
    for (list, objects) in [("pods", &case.pods), ("objects", &case.objects)] {
        for (place, object) in objects.iter().enumerate() {
            collect(object, yaml_path![list, place], &mut found);
        }
    }
    for (place, ephemeral) in case.ephemeral_containers.iter().enumerate() {
        collect(&ephemeral.container, yaml_path!["ephemeral-containers", place, "container"], &mut found);
    }
    found
}

/// Collects the fields `image` of an object, at any depth.
fn collect(object: &Map<String, Value>, path: &[PathSegment], found: &mut Vec<NamedImage>) {
    for (field, value) in object {
        let path = [path, yaml_path![field.as_str()]].concat();
        match value {
            Value::String(name) if field == "image" => found.push(NamedImage { name: name.clone(), path }),
            value => collect_within(value, &path, found),
        }
    }
}

fn collect_within(value: &Value, path: &[PathSegment], found: &mut Vec<NamedImage>) {
    match value {
        Value::Object(object) => collect(object, path, found),
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                collect_within(item, &[path, yaml_path![place]].concat(), found);
            }
        }
        _ => {}
    }
}
