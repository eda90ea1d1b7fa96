//! Loads an archive of the image into Docker, like `docker load`.

use std::path::Path;

use bollard::query_parameters::ImportImageOptions;
use futures::StreamExt;
use tokio_util::io::ReaderStream;

use super::error::LoadError;
use super::program::NAME;
use crate::docker::{Docker, DockerError};

/// Loads an archive of the image into Docker.
///
/// # Errors
/// The archive cannot be read, or does not contain the image.
pub async fn load(docker: &Docker, archive: &Path) -> Result<(), LoadError> {
    let path = archive.display().to_string();
    let file = tokio::fs::File::open(archive).await;
    let file = file.map_err(|source| LoadError::Read { path: path.clone(), source })?;
    let body = bollard::body_try_stream(ReaderStream::with_capacity(file, 1 << 18));
    let mut messages = Box::pin(docker.api().import_image(ImportImageOptions::default(), body, None));
    let mut output = String::new();
    while let Some(message) = messages.next().await {
        let message = message.map_err(|source| DockerError::Request {
            operation: format!("load {path}"),
            source: Box::new(source),
        })?;
        output.push_str(&message.stream.unwrap_or_default());
    }
    // An image of this name may have existed before, so only the output shows what was loaded.
    if output.contains(NAME) { Ok(()) } else { Err(LoadError::WrongImage { path }) }
}
