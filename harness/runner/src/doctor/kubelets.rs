//! Whether the node images of the asked kubelets are there.

use super::{About, Check};
use crate::cluster::{KubeletSource, KubeletSpec};
use crate::images::{Looked, Resolve};

/// A line for each kubelet that was asked for.
pub async fn asked(resolve: &Resolve<'_>, specs: &[KubeletSpec]) -> Vec<Check> {
    let mut checks = Vec::new();
    for spec in specs {
        checks.push(match resolve.look(spec).await {
            Ok(looked) => one(&name(spec), &looked),
            Err(error) => Check::error(About::NodeImage, &error),
        });
    }
    checks
}

fn one(kubelet: &str, looked: &Looked) -> Check {
    let image = &looked.image;
    match looked.here {
        true => Check::ok(About::NodeImage, format!("{kubelet}: {image} is in Docker")),
        false => Check::warn(
            About::NodeImage,
            format!("{kubelet}: {image} is not in Docker; a run pulls it"),
            format!("docker pull {image}"),
        ),
    }
}

/// What a person asked for.
pub fn name(spec: &KubeletSpec) -> String {
    match &spec.source {
        KubeletSource::Release(version) => version.to_string(),
        KubeletSource::Minor(minor) => format!("v1.{minor}"),
        KubeletSource::Image(image) => image.clone(),
        KubeletSource::Binary(path) => path.display().to_string(),
    }
}

/// One line about all node images that are there (`names`), for a person who asked for none; `newest` is what a run would take.
pub fn there(names: &[String], newest: &str) -> Check {
    if names.is_empty() {
        return Check::warn(
            About::NodeImage,
            "no node image is in Docker; a run pulls the one it needs",
            format!(
                "Nothing with a network; `evictlab run --kubelet {newest}` pulls one. Without: docker load -i IMAGE.tar"
            ),
        );
    }
    let mut tags: Vec<&str> =
        names.iter().filter_map(|name| name.rsplit_once(':')).map(|(_, tag)| tag).collect();
    tags.sort_unstable();
    Check::ok(
        About::NodeImage,
        format!("in Docker: {}; a run without --kubelet takes {newest}", tags.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn a_missing_image_can_be_pulled() {
        let looked = |here| Looked { image: "kindest/node:v1.36.2@sha256:00".to_owned(), here };
        assert_eq!(one("v1.36.2", &looked(true)).state, State::Ok);
        let missing = one("v1.36.2", &looked(false));
        assert_eq!(missing.state, State::Warn);
        assert_eq!(missing.advice.as_deref(), Some("docker pull kindest/node:v1.36.2@sha256:00"));
    }

    #[test]
    fn images_that_are_there_are_listed() {
        let names = ["kindest/node:v1.32.13", "kindest/node:v1.31.14"].map(str::to_owned);
        let check = there(&names, "v1.32.13");
        assert_eq!(check.found, "in Docker: v1.31.14, v1.32.13; a run without --kubelet takes v1.32.13");
        assert_eq!(there(&[], "v1.36.4").state, State::Warn);
    }
}
