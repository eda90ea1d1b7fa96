//! The arguments of every command that needs kubelets.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use evictlab_rules::KubeletVersion;
use evictlab_runner::cluster::{self, Docker, Kubelet, KubeletSpec, KubeletSpecError};
use evictlab_runner::images::{Lock, Resolve, planned};

use super::asked::AskedKubelet;
use super::backend::Backend;
use crate::failure::{Failure, bad_input};
use crate::output::tell;

/// Which kubelets, and where their images come from.
#[derive(clap::Args)]
pub struct KubeletArgs {
    /// A kubelet: a version (v1.32.13, or v1.32 for its newest patch at hand), or `all` for one of every minor; on kind also a node image
    /// (kindest/node:v1.32.13), or a binary on this machine (./kubelet) that is put into a worker; `v1.32.13=./kubelet` says what it must be
    /// (may be given again: a worker for each). Default: the newest; on kind, of those whose node image is in Docker
    #[arg(long, value_name = "KUBELET")]
    kubelet: Vec<Asked>,
    #[command(flatten)]
    images: ImageArgs,
}

/// Where the images of kubelets come from.
#[derive(clap::Args)]
pub struct ImageArgs {
    /// Take this image for a version (may be given again)
    #[arg(long, help_heading = "Options of kind clusters", value_name = "VERSION=IMAGE")]
    node_image: Vec<NodeImage>,
    /// Take image names from this file instead of the built-in images/images.lock
    #[arg(long, value_name = "FILE")]
    image_lock: Option<PathBuf>,
}

impl ImageArgs {
    /// The list of known images.
    pub fn lock(&self) -> Result<Lock, Failure> {
        Lock::load(self.image_lock.as_deref()).map_err(|error| Failure::new(error, Failure::BAD_INPUT))
    }

    /// The images that were named for versions.
    pub fn overrides(&self) -> BTreeMap<KubeletVersion, String> {
        self.node_image.iter().map(|NodeImage(version, image)| (version.clone(), image.clone())).collect()
    }

    /// Which of those were given that only kind clusters have.
    pub fn only_on_kind(&self) -> [(bool, &'static str); 1] {
        [(!self.node_image.is_empty(), "--node-image")]
    }

    /// These kubelets of an embedded cluster.
    pub fn modelled(&self, specs: &[KubeletSpec], lock: &Lock) -> Result<Vec<Kubelet>, Failure> {
        Backend::Embedded.refuse(Backend::Kind, &self.only_on_kind())?;
        cluster::modelled(specs, lock).map_err(bad_input)
    }

    /// These kubelets, with their images in Docker.
    pub async fn resolve(
        &self,
        docker: &Docker,
        lock: &Lock,
        specs: &[KubeletSpec],
    ) -> Result<Vec<Kubelet>, Failure> {
        let overrides = self.overrides();
        let resolve = Resolve { docker, lock, overrides: &overrides, progress: &|text| tell(text) };
        resolve.all(specs).await.map_err(bad_input)
    }
}

/// What one `--kubelet` asks for.
#[derive(Clone)]
enum Asked {
    /// One of every minor.
    All,
    /// This one.
    One(AskedKubelet),
}

impl FromStr for Asked {
    type Err = KubeletSpecError;

    fn from_str(text: &str) -> Result<Self, KubeletSpecError> {
        match text {
            "all" => Ok(Self::All),
            text => Ok(Self::One(text.parse()?)),
        }
    }
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

    /// Where their images come from.
    pub fn images(&self) -> &ImageArgs {
        &self.images
    }

    /// The list of known images.
    pub fn lock(&self) -> Result<Lock, Failure> {
        self.images.lock()
    }

    /// The kubelets as they were asked for, with these for `all`.
    pub fn specs(&self, all: &[KubeletSpec]) -> Vec<KubeletSpec> {
        let asked = |asked: &Asked| match asked {
            Asked::All => all.to_vec(),
            Asked::One(one) => vec![one.spec.clone()],
        };
        self.kubelet.iter().flat_map(asked).collect()
    }

    /// Whether one of every minor was asked for.
    fn asks_for_all(&self) -> bool {
        self.kubelet.iter().any(|asked| matches!(asked, Asked::All))
    }

    /// The arguments as they were given, but for those about images.
    pub fn words(&self) -> Vec<String> {
        let word = |asked: &Asked| match asked {
            Asked::All => "all".to_owned(),
            Asked::One(one) => one.text.clone(),
        };
        self.kubelet.iter().flat_map(|asked| ["--kubelet".to_owned(), word(asked)]).collect()
    }

    /// The kubelets of an embedded cluster.
    pub fn modelled(&self, lock: &Lock) -> Result<Vec<Kubelet>, Failure> {
        self.images.modelled(&self.specs(&cluster::every_minor()), lock)
    }

    /// The kubelets, with their images in Docker. `all` are those whose images are there, of each minor the newest.
    pub async fn resolve(&self, docker: &Docker, lock: &Lock) -> Result<Vec<Kubelet>, Failure> {
        let overrides = self.images.overrides();
        let resolve = Resolve { docker, lock, overrides: &overrides, progress: &|text| tell(text) };
        let specs = match self.any() {
            false => resolve.newest().await.map_err(bad_input)?.into_iter().collect(),
            true if self.asks_for_all() => {
                let all = resolve.every_minor_here().await.map_err(bad_input)?;
                if all.is_empty() {
                    return Err(bad_input(
                        "--kubelet all takes every minor whose node image is in Docker, and there is none\nName the kubelets, or bring node images: images/README.md says how.",
                    ));
                }
                self.specs(&all)
            }
            true => self.specs(&[]),
        };
        resolve.all(&specs).await.map_err(bad_input)
    }

    /// The kubelets as somebody would run them elsewhere: nothing is pulled, and Docker need not be there.
    pub async fn planned(&self, docker: Option<&Docker>, lock: &Lock) -> Result<Vec<Kubelet>, Failure> {
        let overrides = self.images.overrides();
        let resolve = docker.map(|docker| Resolve { docker, lock, overrides: &overrides, progress: &|_| () });
        planned(resolve.as_ref(), lock, &overrides, &self.specs(&cluster::every_minor()))
            .await
            .map_err(bad_input)
    }
}
