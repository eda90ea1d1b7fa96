//! Local images of the Docker host, and pulling missing ones.

use std::collections::BTreeMap;

use bollard::query_parameters::CreateImageOptionsBuilder;
use evictlab_api_types::ImageReference;
use futures::StreamExt;

use crate::docker::{Docker, DockerError};

/// An image is not local and could not be pulled.
#[derive(Debug, thiserror::Error)]
#[error(
    "failed to pull image {image}, which is not in Docker: {source}\nhelp: on a machine with network access run `docker pull {name} && docker save {name} -o image.tar`, then here `docker load -i image.tar`",
    name = saved_name(image)
)]
pub struct PullError {
    /// Name of the image.
    pub image: String,
    /// Error of the Docker API.
    pub source: Box<bollard::errors::Error>,
}

/// Returns whether the Docker host has an image with this name.
pub async fn has_image(docker: &Docker, image: &str) -> Result<bool, DockerError> {
    match docker.api().inspect_image(image).await {
        Ok(_) => Ok(true),
        Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => Ok(false),
        Err(source) => Err(DockerError::Request {
            operation: format!("inspect image {image}"),
            source: Box::new(source),
        }),
    }
}

/// Pulls an image through the Docker API. Reports progress for every tenth of its size.
pub async fn pull_image(docker: &Docker, image: &str, progress: &dyn Fn(&str)) -> Result<(), PullError> {
    // Without a tag, Docker would pull every tag.
    let reference = ImageReference::parse(image).with_default_tag().to_string();
    let options = CreateImageOptionsBuilder::default().from_image(&reference).build();
    let mut stream = Box::pin(docker.api().create_image(Some(options), None, None));
    let mut layers = PullProgress::default();
    progress(&format!("pulling {image}"));
    while let Some(event) = stream.next().await {
        let event =
            event.map_err(|source| PullError { image: image.to_owned(), source: Box::new(source) })?;
        let (Some(layer), Some(detail)) = (event.id, event.progress_detail) else { continue };
        if event.status.as_deref() != Some("Downloading") {
            continue;
        }
        if let (Some(current), Some(total)) = (detail.current, detail.total)
            && let Some((current, total)) = layers.update(layer, current, total)
        {
            progress(&format!("pulling {image}: {} of {} MB", current / 1_000_000, total / 1_000_000));
        }
    }
    Ok(())
}

/// Downloaded and total bytes of each layer.
#[derive(Default)]
struct PullProgress {
    layers: BTreeMap<String, (i64, i64)>,
    reported_tenth: i64,
}

impl PullProgress {
    /// Returns downloaded and total bytes whenever another tenth is complete.
    ///
    /// The total grows when a layer starts, so the ratio may decrease. Nothing is returned until it
    /// exceeds the last reported ratio.
    fn update(&mut self, layer: String, current: i64, total: i64) -> Option<(i64, i64)> {
        self.layers.insert(layer, (current, total));
        let (current, total) = self.layers.values().fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        let tenth = if total > 0 { current * 10 / total } else { 0 };
        (tenth > self.reported_tenth).then(|| {
            self.reported_tenth = tenth;
            (current, total)
        })
    }
}

/// Name for `docker save`, whose archives keep tags but not digests.
fn saved_name(image: &str) -> String {
    match ImageReference::parse(image) {
        tagged @ ImageReference { tag: Some(_), .. } => tagged.without_digest().to_string(),
        _ => image.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_saved_by_tag() {
        for (image, saved) in [
            ("localhost:5000/a", "localhost:5000/a"),
            ("kindest/node:v1@sha256:00", "kindest/node:v1"),
            ("kindest/node@sha256:00", "kindest/node@sha256:00"),
        ] {
            assert_eq!(saved_name(image), saved);
        }
    }

    #[test]
    fn progress_is_reported_per_tenth_and_never_decreases() {
        let mut progress = PullProgress::default();
        let mut update = |layer: &str, current, total| progress.update(layer.to_owned(), current, total);
        assert_eq!(update("a", 5, 100), None);
        assert_eq!(update("a", 30, 100), Some((30, 100)));
        assert_eq!(update("b", 1, 100), None, "a new layer lowers the ratio");
        assert_eq!(update("a", 35, 100), None);
        assert_eq!(update("a", 100, 100), Some((101, 200)));
    }
}
