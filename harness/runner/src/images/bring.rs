//! Case images into nodes: one archive out of Docker, into all nodes at once.

use std::collections::BTreeMap;
use std::path::Path;

use futures::StreamExt;
use futures::future::try_join_all;
use tokio::io::AsyncWriteExt;

use super::own::{self, Archive, BuildError, Words};
use super::pull::{PullError, have, pull, with_tag};
use crate::cluster::{Docker, DockerError};

/// Where a node gets the archive: a volume, which Docker can write to while the node runs.
pub const ARCHIVE: &str = "/var/lib/evictlab-images.tar";

/// Images could not be brought into the nodes.
#[derive(Debug, thiserror::Error)]
pub enum BringError {
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// An image is not to be had.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// Our own image cannot be built, and is nowhere else.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Our own image is of another CPU.
    #[error(
        "the image {} was built for {built}, and Docker's host is {host}\nBuild it on such a machine: `evictlab image build --output stress.tar`; then here `evictlab image load stress.tar`.",
        own::NAME
    )]
    Foreign {
        /// What it was built for.
        built: String,
        /// What Docker runs on.
        host: String,
    },
    /// The archive between Docker and the nodes could not be written here.
    #[error(
        "the images {images} could not be written to a temporary file: {source}\nGive {} more room, or another folder by TMPDIR.",
        std::env::temp_dir().display()
    )]
    Archive {
        /// The images.
        images: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A node does not say where its containerd unpacks images.
    #[error("the containerd of node {node} tells no snapshotter: {problem}")]
    Snapshotter {
        /// The node.
        node: String,
        /// What is wrong with its configuration.
        problem: String,
    },
    /// An import went through and the images are not there.
    #[error(
        "node {node} took the archive and still has no {images}\nAn image that is named by digest loses its name in Docker's archive: name it by a tag, or put it into the node image."
    )]
    NotThere {
        /// The node.
        node: String,
        /// The images.
        images: String,
    },
}

/// Makes sure that every node has every image. Nodes that lack some get one archive of all that any lacks; images that Docker lacks are
/// pulled first. Docker need not have what the nodes have. Our own image is built, and nodes that have another one get it anew.
pub async fn bring(
    docker: &Docker,
    nodes: &[&str],
    images: &[String],
    progress: &dyn Fn(&str),
) -> Result<(), BringError> {
    let (own, others): (Vec<String>, Vec<String>) =
        images.iter().cloned().partition(|image| image == own::NAME);
    bring_others(docker, nodes, &others, progress).await?;
    pin(docker, nodes, &others).await?;
    if own.is_empty() {
        return Ok(());
    }
    match built(progress).await {
        Ok(archive) => bring_own(docker, nodes, &archive, progress).await,
        // Somebody brought it from elsewhere.
        Err(why) => {
            if !have(docker, own::NAME).await? {
                for node in nodes {
                    if !lacking(docker, node, &own).await?.is_empty() {
                        return Err(why);
                    }
                }
            }
            bring_others(docker, nodes, &own, progress).await
        }
    }
}

/// Keeps the kubelet from deleting images: under pressure of disk it would, as soon as no pod has them, and the next pod would wait for a registry.
/// Our own image may go, so that there is one that can.
async fn pin(docker: &Docker, nodes: &[&str], images: &[String]) -> Result<(), DockerError> {
    try_join_all(nodes.iter().map(async |node| {
        for image in images {
            let label = "io.cri-containerd.pinned=pinned";
            docker.run(node, &["ctr", "-n", "k8s.io", "images", "label", image, label]).await?;
        }
        Ok(())
    }))
    .await
    .map(drop)
}

/// Unpacks images in these nodes. containerd leaves what a node image brought packed until the first container asks for it, which would then look slow.
pub async fn unpack(docker: &Docker, nodes: &[&str], images: &[String]) -> Result<(), BringError> {
    try_join_all(nodes.iter().map(async |node| {
        let into = format!("--snapshotter={}", snapshotter_of(docker, node).await?);
        let there = digests(docker, node).await?;
        for image in images {
            if let Some(digest) = there.get(&full(image)) {
                docker.run(node, &["ctr", "-n", "k8s.io", "snapshots", &into, "unpack", digest]).await?;
            }
        }
        Ok(())
    }))
    .await
    .map(drop)
}

/// Our own image, from the source tree.
async fn built(progress: &dyn Fn(&str)) -> Result<Archive, BringError> {
    let tree = own::source().ok_or(BuildError::NoSource)?;
    progress(&format!("building {} from {}", own::NAME, tree.display()));
    let built = own::build(&tree, None, Words::Kept).await?;
    built.archive().map_err(|source| BringError::Archive { images: own::NAME.to_owned(), source })
}

/// Makes sure that every node has this very image.
async fn bring_own(
    docker: &Docker,
    nodes: &[&str],
    archive: &Archive,
    progress: &dyn Fn(&str),
) -> Result<(), BringError> {
    let has = try_join_all(nodes.iter().map(|node| digests(docker, node))).await?;
    let poor: Vec<&str> = nodes
        .iter()
        .zip(&has)
        .filter(|(_, has)| has.get(own::NAME) != Some(&archive.digest))
        .map(|(node, _)| *node)
        .collect();
    if poor.is_empty() {
        return Ok(());
    }
    let host = docker.architecture().await?;
    if host != archive.architecture {
        return Err(BringError::Foreign { built: archive.architecture.clone(), host });
    }
    progress(&format!("putting {} into {}", own::NAME, poor.join(", ")));
    let failed = |source| BringError::Archive { images: own::NAME.to_owned(), source };
    let path = temporary().map_err(failed)?;
    tokio::fs::write(&path, &archive.bytes).await.map_err(failed)?;
    try_join_all(poor.iter().map(|node| import(docker, node, &path))).await?;
    for node in poor {
        if digests(docker, node).await?.get(own::NAME) != Some(&archive.digest) {
            return Err(BringError::NotThere { node: node.to_owned(), images: own::NAME.to_owned() });
        }
    }
    Ok(())
}

/// By what a node's containerd knows its images: the digests, by the whole names.
async fn digests(docker: &Docker, node: &str) -> Result<BTreeMap<String, String>, DockerError> {
    let listed = docker.run(node, &["ctr", "-n", "k8s.io", "images", "ls"]).await?;
    // REF TYPE DIGEST …
    let rows = listed.lines().map(|line| line.split_whitespace());
    Ok(rows.filter_map(|mut row| Some((row.next()?.to_owned(), row.nth(1)?.to_owned()))).collect())
}

async fn bring_others(
    docker: &Docker,
    nodes: &[&str],
    images: &[String],
    progress: &dyn Fn(&str),
) -> Result<(), BringError> {
    let lacks = try_join_all(nodes.iter().map(|node| lacking(docker, node, images))).await?;
    let mut missing: Vec<&str> = lacks.iter().flatten().map(String::as_str).collect();
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
    let poor: Vec<&str> =
        nodes.iter().zip(&lacks).filter(|(_, lacks)| !lacks.is_empty()).map(|(node, _)| *node).collect();
    progress(&format!("putting {} into {}", missing.join(", "), poor.join(", ")));
    let archive = export(docker, &missing).await?;
    try_join_all(poor.iter().map(|node| import(docker, node, &archive))).await?;
    for node in poor {
        let still = lacking(docker, node, images).await?;
        if !still.is_empty() {
            return Err(BringError::NotThere { node: node.to_owned(), images: still.join(", ") });
        }
    }
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
    let image = with_tag(image);
    let first = image.split('/').next().unwrap_or_default();
    let has_host = image.contains('/') && (first.contains(['.', ':']) || first == "localhost");
    match (has_host, image.contains('/')) {
        (true, _) => image,
        (false, true) => format!("docker.io/{image}"),
        (false, false) => format!("docker.io/library/{image}"),
    }
}

/// An archive of images, as `docker save` makes it: a file here, because Docker takes a file into a container only with its size.
async fn export(docker: &Docker, images: &[&str]) -> Result<tempfile::TempPath, BringError> {
    let failed = |source| BringError::Archive { images: images.join(", "), source };
    let path = temporary().map_err(failed)?;
    let mut file = tokio::fs::File::create(&path).await.map_err(failed)?;
    let mut stream = Box::pin(docker.api().export_images(images));
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|source| DockerError::Request {
            doing: format!("export {}", images.join(", ")),
            source: Box::new(source),
        })?;
        file.write_all(&chunk).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    Ok(path)
}

fn temporary() -> std::io::Result<tempfile::TempPath> {
    Ok(tempfile::Builder::new().prefix("evictlab-images").suffix(".tar").tempfile()?.into_temp_path())
}

async fn import(docker: &Docker, node: &str, archive: &Path) -> Result<(), BringError> {
    let into = format!("--snapshotter={}", snapshotter_of(docker, node).await?);
    docker.send_file(node, ARCHIVE, 0o600, archive).await?;
    let imported =
        docker.run(node, &["ctr", "-n", "k8s.io", "images", "import", "--digests", &into, ARCHIVE]).await;
    docker.run(node, &["rm", "-f", ARCHIVE]).await?;
    Ok(imported.map(drop)?)
}

async fn snapshotter_of(docker: &Docker, node: &str) -> Result<String, BringError> {
    let config = docker.run(node, &["containerd", "config", "dump"]).await?;
    snapshotter(&config).map_err(|problem| BringError::Snapshotter { node: node.to_owned(), problem })
}

/// Where containerd's Kubernetes side keeps unpacked images. `ctr` does not ask, and what it unpacks elsewhere the kubelet does not
/// find: kind changes it on file systems that overlayfs cannot stand on. The place in the configuration is that of its version: 2 is
/// containerd 1.3 and newer, 3 and 4 are containerd 2.
fn snapshotter(config: &str) -> Result<String, String> {
    let config: toml::Table = toml::from_str(config).map_err(|error| error.to_string())?;
    let version = config.get("version").and_then(toml::Value::as_integer);
    let path: &[&str] = match version {
        Some(2) => &["io.containerd.grpc.v1.cri", "containerd", "snapshotter"],
        Some(3 | 4) => &["io.containerd.cri.v1.images", "snapshotter"],
        other => return Err(format!("its configuration is of version {other:?}, and 2, 3 and 4 are known")),
    };
    path.iter()
        .try_fold(config.get("plugins").ok_or("no plugins")?, |table, key| table.get(key).ok_or(*key))
        .map_err(|key| format!("its configuration has no {key}"))?
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| "it is no text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_as_containerd_does() {
        for (image, whole) in [
            ("registry.k8s.io/e2e-test-images/agnhost:2.52", "registry.k8s.io/e2e-test-images/agnhost:2.52"),
            ("localhost/mine:1", "localhost/mine:1"),
            ("kindest/node:v1", "docker.io/kindest/node:v1"),
            ("busybox:1.36", "docker.io/library/busybox:1.36"),
            ("busybox", "docker.io/library/busybox:latest"),
        ] {
            assert_eq!(full(image), whole);
        }
    }

    #[test]
    fn the_snapshotter_is_found_where_each_containerd_has_it() {
        let old =
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\nsnapshotter = \"native\"\n";
        let new = "version = 3\n[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'fuse-overlayfs'\n";
        assert_eq!(snapshotter(old), Ok("native".to_owned()));
        assert_eq!(snapshotter(new), Ok("fuse-overlayfs".to_owned()));
        for (config, says) in [
            ("version = 9\n", "version Some(9)"),
            ("version = 3\n[plugins.a]\n", "no io.containerd.cri.v1.images"),
            ("version = 3\n", "no plugins"),
            ("version =", "TOML parse error"),
        ] {
            let problem = snapshotter(config).unwrap_err();
            assert!(problem.contains(says), "{problem}");
        }
    }
}
