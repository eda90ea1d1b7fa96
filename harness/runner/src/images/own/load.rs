//! Into Docker, as `docker load` does it.

use std::path::Path;

use bollard::query_parameters::ImportImageOptions;
use futures::StreamExt;
use tokio_util::io::ReaderStream;

use super::NAME;
use crate::cluster::{Docker, DockerError};

/// The image could not be loaded into Docker.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// There is nothing to load.
    #[error("the archive {path} cannot be read: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// Something else was loaded.
    #[error("{path} holds no image {NAME}: `evictlab image build` makes an archive that does")]
    Another {
        /// The file.
        path: String,
    },
}

/// Loads an archive of the image.
pub async fn load(docker: &Docker, archive: &Path) -> Result<(), LoadError> {
    let path = archive.display().to_string();
    let file = tokio::fs::File::open(archive).await;
    let file = file.map_err(|source| LoadError::Read { path: path.clone(), source })?;
    let body = bollard::body_try_stream(ReaderStream::with_capacity(file, 1 << 18));
    let mut answers = Box::pin(docker.api().import_image(ImportImageOptions::default(), body, None));
    let mut said = String::new();
    while let Some(answer) = answers.next().await {
        let answer = answer.map_err(|source| DockerError::Request {
            doing: format!("load {path}"),
            source: Box::new(source),
        })?;
        said.push_str(&answer.stream.unwrap_or_default());
    }
    // Docker may have had the name before.
    match said.contains(NAME) {
        true => Ok(()),
        false => Err(LoadError::Another { path }),
    }
}
