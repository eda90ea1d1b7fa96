//! Case images into nodes: one archive out of Docker, into all nodes at once.

use futures::StreamExt;
use futures::future::try_join_all;

use super::pull::{PullError, have, pull};
use crate::cluster::{Docker, DockerError};

/// Where a node gets the archive: a volume, which Docker can write to while the node runs.
const ARCHIVE: &str = "/var/lib/evictlab-images.tar";

/// Images could not be brought into the nodes.
#[derive(Debug, thiserror::Error)]
pub enum BringError {
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// An image is not to be had.
    #[error(transparent)]
    Pull(#[from] PullError),
}

/// Makes sure that every node has every image. Nodes that lack some get one archive of all that any lacks; images that Docker lacks are
/// pulled first.
pub async fn bring(
    docker: &Docker,
    nodes: &[&str],
    images: &[String],
    progress: &dyn Fn(&str),
) -> Result<(), BringError> {
    let lacking = try_join_all(nodes.iter().map(|node| lacking(docker, node, images))).await?;
    let mut missing: Vec<&str> = lacking.iter().flatten().map(String::as_str).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    for image in &missing {
        if !have(docker, image).await? {
            pull(docker, image, progress).await?;
        }
    }
    let poor: Vec<&str> = nodes
        .iter()
        .zip(&lacking)
        .filter(|(_, lacking)| !lacking.is_empty())
        .map(|(node, _)| *node)
        .collect();
    progress(&format!("putting {} into {} nodes", missing.join(", "), poor.len()));
    let archive = export(docker, &missing).await?;
    try_join_all(poor.iter().map(|node| import(docker, node, &archive))).await?;
    Ok(())
}

/// The images that a node's containerd lacks.
async fn lacking(docker: &Docker, node: &str, images: &[String]) -> Result<Vec<String>, DockerError> {
    let listed = docker.run(node, &["ctr", "-n", "k8s.io", "images", "ls", "-q"]).await?;
    let there: Vec<&str> = listed.lines().map(str::trim).collect();
    Ok(images.iter().filter(|image| !there.contains(&full(image).as_str())).cloned().collect())
}

/// containerd's whole name of an image that Docker calls by a short one.
fn full(image: &str) -> String {
    let first = image.split('/').next().unwrap_or_default();
    let has_host = image.contains('/') && (first.contains(['.', ':']) || first == "localhost");
    match (has_host, image.contains('/')) {
        (true, _) => image.to_owned(),
        (false, true) => format!("docker.io/{image}"),
        (false, false) => format!("docker.io/library/{image}"),
    }
}

/// An archive of images, as `docker save` makes it. Held whole, because Docker's API takes a file into a container only with its size.
async fn export(docker: &Docker, images: &[&str]) -> Result<Vec<u8>, DockerError> {
    let mut stream = Box::pin(docker.api().export_images(images));
    let mut archive = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|source| DockerError::Request {
            doing: format!("export {}", images.join(", ")),
            source: Box::new(source),
        })?;
        archive.extend_from_slice(&chunk);
    }
    Ok(archive)
}

async fn import(docker: &Docker, node: &str, archive: &[u8]) -> Result<(), DockerError> {
    docker.write_file(node, ARCHIVE, 0o600, archive).await?;
    let import = ["ctr", "-n", "k8s.io", "images", "import", "--digests", ARCHIVE];
    let imported = docker.run(node, &import).await;
    docker.run(node, &["rm", "-f", ARCHIVE]).await?;
    imported.map(drop)
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_completed_as_containerd_does() {
        for (image, full) in [
            ("registry.k8s.io/e2e-test-images/agnhost:2.52", "registry.k8s.io/e2e-test-images/agnhost:2.52"),
            ("localhost/mine:1", "localhost/mine:1"),
            ("kindest/node:v1", "docker.io/kindest/node:v1"),
            ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ] {
            assert_eq!(super::full(image), full);
        }
    }
}
