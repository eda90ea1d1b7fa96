//! Images of the Docker host: there already, or pulled.

use std::collections::BTreeMap;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::StreamExt;

use crate::cluster::{Docker, DockerError};

/// An image that is neither here nor to be had.
#[derive(Debug, thiserror::Error)]
#[error(
    "the image {image} is not in Docker and cannot be pulled: {source}\nBring it: where there is network `docker pull {name} && docker save {name} -o image.tar`, then here `docker load -i image.tar`.",
    name = by_tag(image)
)]
pub struct PullError {
    /// The image.
    pub image: String,
    /// What Docker said.
    pub source: Box<bollard::errors::Error>,
}

/// Whether the Docker host has an image, by a name that `docker run` would take.
pub async fn have(docker: &Docker, image: &str) -> Result<bool, DockerError> {
    match docker.api().inspect_image(image).await {
        Ok(_) => Ok(true),
        Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => Ok(false),
        Err(source) => Err(DockerError::Request {
            doing: format!("look for the image {image}"),
            source: Box::new(source),
        }),
    }
}

/// Pulls an image through the Docker API; tells how far it is, a line for every tenth.
pub async fn pull(docker: &Docker, image: &str, progress: &dyn Fn(&str)) -> Result<(), PullError> {
    let options = CreateImageOptionsBuilder::default().from_image(&with_tag(image)).build();
    let mut stream = Box::pin(docker.api().create_image(Some(options), None, None));
    let mut layers = Layers::default();
    progress(&format!("pulling {image}"));
    while let Some(news) = stream.next().await {
        let news = news.map_err(|source| PullError { image: image.to_owned(), source: Box::new(source) })?;
        let (Some(layer), Some(detail)) = (news.id, news.progress_detail) else { continue };
        if news.status.as_deref() != Some("Downloading") {
            continue;
        }
        if let (Some(current), Some(total)) = (detail.current, detail.total)
            && let Some((current, total)) = layers.moved(layer, current, total)
        {
            progress(&format!("pulling {image}: {} of {} MB", current / 1_000_000, total / 1_000_000));
        }
    }
    Ok(())
}

/// How much of each layer is there.
#[derive(Default)]
struct Layers {
    layers: BTreeMap<String, (i64, i64)>,
    told: i64,
}

impl Layers {
    /// Bytes there and bytes known of, whenever another tenth is there. Layers turn up as they begin, so the share may fall; nothing is
    /// told until it has passed what was told before.
    fn moved(&mut self, layer: String, current: i64, total: i64) -> Option<(i64, i64)> {
        self.layers.insert(layer, (current, total));
        let (current, total) = self.layers.values().fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        let tenth = if total > 0 { current * 10 / total } else { 0 };
        (tenth > self.told).then(|| {
            self.told = tenth;
            (current, total)
        })
    }
}

/// The name with a tag or digest: without one Docker would pull every tag that there is.
pub(super) fn with_tag(image: &str) -> String {
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.contains([':', '@']) {
        true => image.to_owned(),
        false => format!("{image}:latest"),
    }
}

/// The name to save an image by: Docker's archives keep tags and lose digests.
fn by_tag(image: &str) -> String {
    match image.split_once('@') {
        Some((name, _)) if name.rsplit('/').next().is_some_and(|last| last.contains(':')) => name.to_owned(),
        _ => image.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tag_is_pulled_and_the_tag_is_saved() {
        for (image, pulled, saved) in [
            ("busybox", "busybox:latest", "busybox"),
            ("localhost:5000/a", "localhost:5000/a:latest", "localhost:5000/a"),
            ("localhost:5000/a:1", "localhost:5000/a:1", "localhost:5000/a:1"),
            ("kindest/node:v1@sha256:00", "kindest/node:v1@sha256:00", "kindest/node:v1"),
            ("kindest/node@sha256:00", "kindest/node@sha256:00", "kindest/node@sha256:00"),
        ] {
            assert_eq!((with_tag(image).as_str(), by_tag(image).as_str()), (pulled, saved));
        }
    }

    #[test]
    fn progress_is_told_by_tenths_and_never_backwards() {
        let mut layers = Layers::default();
        let mut moved = |layer: &str, current, total| layers.moved(layer.to_owned(), current, total);
        assert_eq!(moved("a", 5, 100), None);
        assert_eq!(moved("a", 30, 100), Some((30, 100)));
        assert_eq!(moved("b", 1, 100), None, "a new layer lowers the share");
        assert_eq!(moved("a", 35, 100), None);
        assert_eq!(moved("a", 100, 100), Some((101, 200)));
    }
}
