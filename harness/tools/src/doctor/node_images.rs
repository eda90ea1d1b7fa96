//! Checks of node images.

use super::check::{Check, CheckSubject};
use evictlab_cluster::images::{KubeletImage, KubeletResolver};
use evictlab_cluster::{KubeletSource, KubeletSpec};

/// Checks the image of each requested kubelet.
pub(crate) async fn requested(resolve: &KubeletResolver<'_>, specs: &[KubeletSpec]) -> Vec<Check> {
    let mut checks = Vec::new();
    for spec in specs {
        checks.push(match resolve.lookup(spec).await {
            Ok(looked) => check_image(&name(spec), &looked),
            Err(error) => Check::error(CheckSubject::NodeImage, &error),
        });
    }
    checks
}

fn check_image(kubelet: &str, looked: &KubeletImage) -> Check {
    let image = &looked.image;
    if looked.is_local {
        Check::ok(CheckSubject::NodeImage, format!("{kubelet}: {image} is in Docker"))
    } else {
        Check::warn(
            CheckSubject::NodeImage,
            format!("{kubelet}: {image} is not in Docker; a run pulls the image"),
            format!("docker pull {image}"),
        )
    }
}

/// Returns the name of a kubelet as on the command line.
pub(crate) fn name(spec: &KubeletSpec) -> String {
    match &spec.source {
        KubeletSource::Release(version) => version.to_string(),
        KubeletSource::Minor(minor) => format!("v1.{minor}"),
        KubeletSource::Image(image) => image.clone(),
        KubeletSource::Binary(path) => path.display().to_string(),
    }
}

/// Checks the node images in Docker (`names`) when no kubelet is requested; `newest` is the kubelet
/// that a run uses.
pub(crate) fn present(names: &[String], newest: &str) -> Check {
    if names.is_empty() {
        return Check::warn(
            CheckSubject::NodeImage,
            "no node image is in Docker; a run pulls the required image",
            format!(
                "With a network, `evictlab run --backend kind --kubelet {newest}` pulls one. Without: docker load -i IMAGE.tar"
            ),
        );
    }
    let mut tags: Vec<&str> =
        names.iter().filter_map(|name| name.rsplit_once(':')).map(|(_, tag)| tag).collect();
    tags.sort_unstable();
    Check::ok(
        CheckSubject::NodeImage,
        format!("in Docker: {}; a run without --kubelet uses {newest}", tags.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::CheckState;

    #[test]
    fn missing_images_can_be_pulled() {
        let looked =
            |here| KubeletImage { image: "kindest/node:v1.36.2@sha256:00".to_owned(), is_local: here };
        assert_eq!(check_image("v1.36.2", &looked(true)).state, CheckState::Ok);
        let missing = check_image("v1.36.2", &looked(false));
        assert_eq!(missing.state, CheckState::Warn);
        assert_eq!(missing.remedy.as_deref(), Some("docker pull kindest/node:v1.36.2@sha256:00"));
    }

    #[test]
    fn lists_present_images() {
        let names = ["kindest/node:v1.32.13", "kindest/node:v1.31.14"].map(str::to_owned);
        let check = present(&names, "v1.32.13");
        assert_eq!(check.finding, "in Docker: v1.31.14, v1.32.13; a run without --kubelet uses v1.32.13");
        assert_eq!(present(&[], "v1.36.4").state, CheckState::Warn);
    }
}
