//! Images of the Docker host: there already, or pulled.

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::StreamExt;

use crate::cluster::{Docker, DockerError};

/// An image that is neither here nor to be had.
#[derive(Debug, thiserror::Error)]
#[error(
    "the image {image} is not in Docker and cannot be pulled: {source}\nBring it: on a machine with network `docker pull {image} && docker save {image} -o image.tar`, then here `docker load -i image.tar`."
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
    let options = CreateImageOptionsBuilder::default().from_image(image).build();
    let mut stream = Box::pin(docker.api().create_image(Some(options), None, None));
    let mut layers = std::collections::BTreeMap::new();
    let mut told = 0;
    progress(&format!("pulling {image}"));
    while let Some(news) = stream.next().await {
        let news = news.map_err(|source| PullError { image: image.to_owned(), source: Box::new(source) })?;
        let (Some(layer), Some(detail)) = (news.id, news.progress_detail) else { continue };
        layers.insert(layer, (detail.current.unwrap_or(0), detail.total.unwrap_or(0)));
        let (current, total) = layers.values().fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        let tenth = if total > 0 { current * 10 / total } else { 0 };
        if tenth > told {
            told = tenth;
            progress(&format!("pulling {image}: {} of {} MB", current / 1_000_000, total / 1_000_000));
        }
    }
    Ok(())
}
