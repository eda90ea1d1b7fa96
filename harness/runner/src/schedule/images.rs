//! The images of a case, wherever in it they are named.

use serde_json::Value;

use crate::case::Case;

/// The images of the containers of a case's pods and objects, as they are named there. A container that says where its image comes from is
/// taken at its word.
pub fn images_of(case: &Case) -> Vec<String> {
    let created = case.steps.iter().filter_map(|step| step.create.as_ref());
    let manifests = case.pods.iter().chain(&case.static_pods).chain(&case.objects).chain(created);
    let mut images = Vec::new();
    for value in manifests.flat_map(|manifest| manifest.values()) {
        of_containers(value, &mut images);
    }
    for late in &case.ephemeral_containers {
        of_container(&late.container, &mut images);
    }
    images
}

fn of_containers(value: &Value, images: &mut Vec<String>) {
    let Some(fields) = value.as_object() else { return };
    for (name, value) in fields {
        if ["initContainers", "containers"].contains(&name.as_str()) {
            value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_object)
                .for_each(|one| of_container(one, images));
        } else {
            of_containers(value, images);
        }
    }
}

fn of_container(container: &serde_json::Map<String, Value>, images: &mut Vec<String>) {
    let image = container.get("image").and_then(Value::as_str);
    images.extend(image.filter(|_| !container.contains_key("imagePullPolicy")).map(str::to_owned));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_found_wherever_containers_are() {
        let case: Case = serde_yaml::from_str(
            "{name: a, about: b, expect: {},
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
