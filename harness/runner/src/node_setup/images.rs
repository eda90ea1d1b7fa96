//! Images of a case.

use serde_json::{Map, Value};

use evictlab_case::{Case, containers_of};

/// Returns the images of all containers in a case's pods and objects, as the case names them.
///
/// A container with an `imagePullPolicy` is excluded: the case itself decides where its image comes
/// from.
pub(crate) fn images_of(case: &Case) -> Vec<String> {
    let specs = case.pod_specs();
    let containers = specs.iter().flat_map(|found| containers_of(found.spec));
    let containers = containers.filter_map(|(_, _, container)| container.as_object());
    let ephemeral = case.ephemeral_containers.iter().map(|ephemeral| &ephemeral.container);
    containers.chain(ephemeral).filter_map(image_of).collect()
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
            do: [
                {create: {kind: Job, spec: {template: {spec: {containers: [{image: five}]}}}}},
                {create-static-pod: {spec: {containers: [{image: seven}]}}}],
            ephemeral-containers: [{pod: p, container: {image: six}}]}",
        )
        .unwrap();
        assert_eq!(images_of(&case), ["one", "two", "four", "three", "seven", "five", "six"]);
    }
}
