//! The arguments of every command that needs kubelets.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use evictlab_rules::KubeletVersion;
use evictlab_runner::cluster::{Docker, Kubelet, KubeletSpec};
use evictlab_runner::images::{Lock, Resolve};

use crate::failure::Failure;
use crate::output::tell;

/// Which kubelets, and where their images come from.
#[derive(clap::Args)]
pub struct KubeletArgs {
    /// A kubelet: a version (v1.32.13, or v1.32 for its newest patch at hand), a node image (kindest/node:v1.32.13), or a binary on this machine (./kubelet) that is
    /// put into a worker; `v1.32.13=./kubelet` says what it must be (may be given again: a worker for each). Default: the
    /// newest whose node image is in Docker
    #[arg(long, value_name = "KUBELET")]
    kubelet: Vec<KubeletSpec>,
    /// Take this image for a version (may be given again)
    #[arg(long, value_name = "VERSION=IMAGE")]
    node_image: Vec<NodeImage>,
    /// Take image names from this file instead of the built-in images/images.lock
    #[arg(long, value_name = "FILE")]
    image_lock: Option<PathBuf>,
}

#[derive(Clone)]
struct NodeImage(KubeletVersion, String);

impl FromStr for NodeImage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (version, image) = text.split_once('=').ok_or("write VERSION=IMAGE")?;
        let version = version.parse().map_err(|error| format!("{error}"))?;
        Ok(Self(version, image.to_owned()))
    }
}

impl KubeletArgs {
    /// Whether any was asked for.
    pub fn any(&self) -> bool {
        !self.kubelet.is_empty()
    }

    /// The list of known images.
    pub fn lock(&self) -> Result<Lock, Failure> {
        Lock::load(self.image_lock.as_deref()).map_err(|error| Failure::new(error, Failure::BAD_INPUT))
    }

    /// The kubelets as they were asked for.
    pub fn specs(&self) -> &[KubeletSpec] {
        &self.kubelet
    }

    /// The images that were named for versions.
    pub fn overrides(&self) -> BTreeMap<KubeletVersion, String> {
        self.node_image.iter().map(|NodeImage(version, image)| (version.clone(), image.clone())).collect()
    }

    /// The kubelets, with their images in Docker.
    pub async fn resolve(&self, docker: &Docker, lock: &Lock) -> Result<Vec<Kubelet>, Failure> {
        let overrides = self.overrides();
        let resolve = Resolve { docker, lock, overrides: &overrides, progress: &|text| tell(text) };
        let specs = match self.kubelet.as_slice() {
            [] => {
                let newest =
                    resolve.newest().await.map_err(|error| Failure::new(error, Failure::BAD_INPUT))?;
                newest.into_iter().collect()
            }
            asked => asked.to_vec(),
        };
        resolve.all(&specs).await.map_err(|error| Failure::new(error, Failure::BAD_INPUT))
    }
}
