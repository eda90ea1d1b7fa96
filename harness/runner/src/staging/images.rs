//! Images of a case.

use serde_json::{Map, Value};

use evictlab_case::Case;

/// Returns the images of all containers in a case's pods and objects, as the case names them.
///
/// A container with an `imagePullPolicy` is excluded: the case itself decides where its image comes
/// from.
pub(crate) fn images_of(case: &Case) -> Vec<String> {
    let created = case.created_objects();
    let manifests = case.pods.iter().chain(&case.static_pods).chain(&case.objects).chain(created);
    let mut images = Vec::new();
    for value in manifests.flat_map(|manifest| manifest.values()) {
        add_nested_images(value, &mut images);
    }
    images.extend(case.ephemeral_containers.iter().filter_map(|ephemeral| image_of(&ephemeral.container)));
    images
}

fn add_nested_images(value: &Value, images: &mut Vec<String>) {
    let fields = value.as_object().into_iter().flatten();
    for (name, value) in fields {
        if ["initContainers", "containers"].contains(&name.as_str()) {
            let containers = value.as_array().into_iter().flatten().filter_map(Value::as_object);
            images.extend(containers.filter_map(image_of));
        } else {
            add_nested_images(value, images);
        }
    }
}

fn image_of(container: &Map<String, Value>) -> Option<String> {
    let image = container.get("image")?.as_str()?;
    (!container.contains_key("imagePullPolicy")).then(|| image.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_images_of_all_containers() {
        let case: Case = serde_saphyr::from_str(
            "{name: a, about: b, expect: {evicted: []},
            pods: [{spec: {initContainers: [{image: one}], containers: [{image: two}, {image: not, imagePullPolicy: Never}]}}],
            objects: [{kind: Deployment, spec: {template: {spec: {containers: [{image: three}]}}}}],
            static-pods: [{spec: {containers: [{image: four}]}}],
            do: [{create: {kind: Job, spec: {template: {spec: {containers: [{image: five}]}}}}}],
            ephemeral-containers: [{pod: p, container: {image: six}}]}",
        )
        .unwrap();
        assert_eq!(images_of(&case), ["one", "two", "four", "three", "five", "six"]);
    }
}
