//! Loads case images into nodes: one archive from Docker into all nodes that miss an image.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::try_join_all;
use tokio::io::AsyncWriteExt;

use super::archive::Archive;
use super::containerd::{Containerd, ContainerdError};
use super::pull::{PullError, has_image, pull_image};
use super::stress_image::{self, BuildError, CargoOutput, StressProgram};
use super::unused_image::{self, UNUSED_IMAGES, unused_image_name};
use crate::docker::{Docker, DockerError};

/// Images could not be loaded into nodes.
#[derive(Debug, thiserror::Error)]
pub enum ImageLoadError {
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// An image could not be pulled.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// The containerd of a node failed.
    #[error(transparent)]
    Containerd(#[from] ContainerdError),
    /// The stress image could not be built, and is not available elsewhere.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The stress image was built for another CPU.
    #[error(
        "failed to load image {}: it was built for {built}, and Docker runs on {host}\nhelp: build it on a machine with the architecture {host}: `evictlab image build --output stress.tar`; then run `evictlab image load stress.tar` here",
        stress_image::NAME
    )]
    WrongArchitecture {
        /// Architecture of the image.
        built: String,
        /// Architecture of the Docker host.
        host: String,
    },
    /// The archive could not be written.
    #[error(
        "failed to write images {images} to a temporary file: {source}\nhelp: free space in {}, or set TMPDIR to another directory",
        std::env::temp_dir().display()
    )]
    Archive {
        /// Names of the images.
        images: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The import succeeded, but the node does not have the images.
    #[error(
        "failed to load images {images} into node {node}: the import succeeded, but the images are missing\nhelp: name the images by tag (archives lose digests), or add them to the node image"
    )]
    Missing {
        /// Name of the node.
        node: String,
        /// Names of the images.
        images: String,
    },
}

/// Loads images into all nodes that miss them, and pins them.
///
/// Images that neither a node nor Docker has are pulled first. The stress image is built; nodes
/// with another build of it get the current one.
pub async fn ensure_loaded(
    docker: &Docker,
    nodes: &[&str],
    images: &[String],
    progress: &dyn Fn(&str),
) -> Result<(), ImageLoadError> {
    let (stress, others): (Vec<String>, Vec<String>) =
        images.iter().cloned().partition(|image| image == stress_image::NAME);
    load_images(docker, nodes, &others, progress).await?;
    try_join_all(nodes.iter().map(async |node| Containerd { docker, node }.pin(&others).await)).await?;
    if stress.is_empty() {
        return Ok(());
    }
    match provide_stress_image(docker, progress).await {
        Ok(archive) => load_stress_image(docker, nodes, &archive, progress).await,
        // The image may have been loaded from a file.
        Err(error) => {
            if !has_image(docker, stress_image::NAME).await? {
                for node in nodes {
                    if !(Containerd { docker, node }).missing(&stress).await?.is_empty() {
                        return Err(error);
                    }
                }
            }
            load_images(docker, nodes, &stress, progress).await
        }
    }
}

/// Loads an image into a node that does not have it, as [`ensure_loaded`] does, without pinning it:
/// the kubelet may delete the image.
pub(crate) async fn load_unpinned(docker: &Docker, node: &str, image: &str) -> Result<(), ImageLoadError> {
    let images = [image.to_owned()];
    // The stress image is not pinned.
    if image == stress_image::NAME {
        return ensure_loaded(docker, &[node], &images, &|_| {}).await;
    }
    load_images(docker, &[node], &images, &|_| {}).await
}

/// Loads an image of this size that no container uses into a node, unless the node has it.
pub(crate) async fn load_unused(docker: &Docker, node: &str, bytes: u64) -> Result<(), ImageLoadError> {
    let name = unused_image_name(bytes);
    let containerd = Containerd { docker, node };
    if containerd.missing(std::slice::from_ref(&name)).await?.is_empty() {
        return Ok(());
    }
    let architecture = docker.architecture().await?;
    let archive = unused_image::archive(bytes, architecture).map_err(archive_error(&name))?;
    import(&[containerd], &archive, &name).await
}

/// Removes the unused images of all sizes from a node, if the kubelet has not.
pub(crate) async fn remove_unused(docker: &Docker, node: &str) -> Result<(), ImageLoadError> {
    Ok(Containerd { docker, node }.remove_with_prefix(UNUSED_IMAGES).await?)
}

/// Imports an archive into nodes. `image` is the name of the image in it.
async fn import(nodes: &[Containerd<'_>], archive: &Archive, image: &str) -> Result<(), ImageLoadError> {
    let mut file = tempfile::tempfile().map_err(archive_error(image))?;
    file.write_all(&archive.bytes).map_err(archive_error(image))?;
    let file = Arc::new(file);
    try_join_all(nodes.iter().map(|node| node.import(&file))).await?;
    Ok(())
}

/// Unpacks images in the nodes, so that the first container of an image starts without delay.
pub(crate) async fn unpack(docker: &Docker, nodes: &[&str], images: &[String]) -> Result<(), ImageLoadError> {
    try_join_all(nodes.iter().map(async |node| Containerd { docker, node }.unpack(images).await)).await?;
    Ok(())
}

/// Builds the stress image from the built-in program for the CPU of the Docker host, else
/// from the source tree.
async fn provide_stress_image(docker: &Docker, progress: &dyn Fn(&str)) -> Result<Archive, ImageLoadError> {
    if let Some(program) = StressProgram::built_in(&docker.architecture().await?) {
        return program.archive().map_err(archive_error(stress_image::NAME));
    }
    let tree = stress_image::source_tree().ok_or(BuildError::NoSource)?;
    progress(&format!("building {} from {}", stress_image::NAME, tree.display()));
    let program = stress_image::build(&tree, None, CargoOutput::Captured).await?;
    program.archive().map_err(archive_error(stress_image::NAME))
}

/// Loads this build of the stress image into all nodes that have none or another one.
async fn load_stress_image(
    docker: &Docker,
    nodes: &[&str],
    archive: &Archive,
    progress: &dyn Fn(&str),
) -> Result<(), ImageLoadError> {
    let digests = try_join_all(nodes.iter().map(async |node| Containerd { docker, node }.digests().await));
    let digests = digests.await?;
    let outdated: Vec<&str> = nodes
        .iter()
        .zip(&digests)
        .filter(|(_, digests)| digests.get(stress_image::NAME) != Some(&archive.digest))
        .map(|(node, _)| *node)
        .collect();
    if outdated.is_empty() {
        return Ok(());
    }
    let host = docker.architecture().await?;
    if host != archive.architecture {
        return Err(ImageLoadError::WrongArchitecture { built: archive.architecture.clone(), host });
    }
    progress(&format!("loading {} into {}", stress_image::NAME, outdated.join(", ")));
    let outdated: Vec<Containerd<'_>> =
        outdated.into_iter().map(|node| Containerd { docker, node }).collect();
    import(&outdated, archive, stress_image::NAME).await?;
    for containerd in outdated {
        let digests = containerd.digests().await?;
        if digests.get(stress_image::NAME) != Some(&archive.digest) {
            let images = stress_image::NAME.to_owned();
            return Err(ImageLoadError::Missing { node: containerd.node.to_owned(), images });
        }
    }
    Ok(())
}

async fn load_images(
    docker: &Docker,
    nodes: &[&str],
    images: &[String],
    progress: &dyn Fn(&str),
) -> Result<(), ImageLoadError> {
    let lists =
        try_join_all(nodes.iter().map(async |node| Containerd { docker, node }.missing(images).await));
    let lists = lists.await?;
    let mut missing: Vec<&str> = lists.iter().flatten().map(String::as_str).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    for image in &missing {
        if !has_image(docker, image).await? {
            pull_image(docker, image, progress).await?;
        }
    }
    let incomplete: Vec<&str> =
        nodes.iter().zip(&lists).filter(|(_, list)| !list.is_empty()).map(|(node, _)| *node).collect();
    progress(&format!("loading {} into {}", missing.join(", "), incomplete.join(", ")));
    let archive = export(docker, &missing).await?;
    try_join_all(incomplete.iter().map(async |node| Containerd { docker, node }.import(&archive).await))
        .await?;
    for node in incomplete {
        let missing = Containerd { docker, node }.missing(images).await?;
        if !missing.is_empty() {
            let images = missing.join(", ");
            return Err(ImageLoadError::Missing { node: node.to_owned(), images });
        }
    }
    Ok(())
}

/// Exports images like `docker save`, to a local file: an upload to a container needs its size.
async fn export(docker: &Docker, images: &[&str]) -> Result<Arc<File>, ImageLoadError> {
    let names = images.join(", ");
    // Without a name, so that it is gone when the process is killed.
    let file = tempfile::tempfile().map_err(archive_error(&names))?;
    let mut file = tokio::fs::File::from_std(file);
    let mut stream = Box::pin(docker.api().export_images(images));
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|source| DockerError::Request {
            operation: format!("export {names}"),
            source: Box::new(source),
        })?;
        file.write_all(&chunk).await.map_err(archive_error(&names))?;
    }
    file.flush().await.map_err(archive_error(&names))?;
    Ok(Arc::new(file.into_std().await))
}

fn archive_error(images: &str) -> impl Fn(std::io::Error) -> ImageLoadError {
    let images = images.to_owned();
    move |source| ImageLoadError::Archive { images: images.clone(), source }
}
