//! Arguments that select kubelets and their images.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::slice;
use std::str::FromStr;

use clap_complete::engine::ArgValueCandidates;
use evictlab_cluster::images::{ImageCatalog, KubeletResolver};
use evictlab_cluster::{Docker, Kubelet, KubeletSource, KubeletSpec, KubeletSpecError};
use evictlab_report::BackendName;
use evictlab_rules::KubeletVersion;

use crate::args::backend::{reject_foreign_options, stated};
use crate::args::candidates;
use crate::args::kubelet_versions::is_plain;
use crate::failure::Failure;
use crate::messages::print_stderr;

/// One kubelet on the command line.
#[derive(Clone)]
pub(crate) struct KubeletArg {
    /// The text from the command line.
    pub(crate) text: String,
    /// The kubelet that the text names.
    pub(crate) spec: KubeletSpec,
}

impl FromStr for KubeletArg {
    type Err = KubeletSpecError;

    fn from_str(text: &str) -> Result<Self, KubeletSpecError> {
        // Of a list such as `v1.31, v1.32`.
        let text = text.trim();
        Ok(Self { text: text.to_owned(), spec: text.parse()? })
    }
}

/// The kubelets of a command, and their images.
#[derive(clap::Args)]
pub(crate) struct KubeletArgs {
    /// Kubelet to run (repeatable, or separated by commas): a version (v1.32.11, or v1.32 for the
    /// newest known patch), or `all` for one of every minor. On kind also a node image
    /// (kindest/node:v1.32.11) or a binary (./kubelet), which is installed on a worker;
    /// `v1.32.11=./kubelet` also checks its version. Default: the newest; on kind, the newest whose
    /// node image is in Docker
    #[arg(long, short, value_name = "KUBELET", value_delimiter = ',', add = ArgValueCandidates::new(candidates::kubelet_selections))]
    kubelet: Vec<KubeletSelection>,
    #[command(flatten)]
    images: ImageArgs,
}

/// Sources of node images.
#[derive(clap::Args)]
pub(crate) struct ImageArgs {
    /// Node image for a kubelet version (repeatable)
    #[arg(long, help_heading = "Options of kind clusters", value_name = "VERSION=IMAGE")]
    node_image: Vec<NodeImage>,
    /// Read image names from this file instead of the built-in images/images.lock
    #[arg(long, value_name = "FILE")]
    image_lock: Option<PathBuf>,
}

impl ImageArgs {
    /// Loads the image catalog.
    pub(crate) fn image_catalog(&self) -> Result<ImageCatalog, Failure> {
        ImageCatalog::load(self.image_lock.as_deref()).map_err(Failure::bad_input)
    }

    /// Returns the images from `--node-image`, by version.
    pub(crate) fn overrides(&self) -> BTreeMap<KubeletVersion, String> {
        self.node_image.iter().map(|NodeImage(version, image)| (version.clone(), image.clone())).collect()
    }

    /// Returns the names of the stated options that only apply to kind.
    pub(crate) fn stated_kind_options(&self) -> Vec<&'static str> {
        stated([("--node-image", !self.node_image.is_empty())])
    }

    /// Returns these kubelets of an embedded cluster.
    pub(crate) fn modelled(
        &self,
        specs: &[KubeletSpec],
        catalog: &ImageCatalog,
    ) -> Result<Vec<Kubelet>, Failure> {
        reject_foreign_options(BackendName::Embedded, BackendName::Kind, &self.stated_kind_options())?;
        evictlab_cluster::modelled_kubelets(specs, catalog).map_err(Failure::bad_input)
    }

    /// Returns these kubelets after pulling missing images into Docker.
    pub(crate) async fn resolve(
        &self,
        docker: &Docker,
        catalog: &ImageCatalog,
        specs: &[KubeletSpec],
    ) -> Result<Vec<Kubelet>, Failure> {
        let overrides = self.overrides();
        let resolve = resolver(docker, catalog, &overrides);
        resolve.resolve_all(specs).await.map_err(Failure::bad_input)
    }
}

/// Returns a resolver that prints the progress of pulls.
pub(crate) fn resolver<'a>(
    docker: &'a Docker,
    catalog: &'a ImageCatalog,
    overrides: &'a BTreeMap<KubeletVersion, String>,
) -> KubeletResolver<'a> {
    KubeletResolver { docker, catalog, overrides, progress: &|text| print_stderr(text) }
}

/// The value of `--kubelet`.
#[derive(Clone)]
enum KubeletSelection {
    /// One kubelet of every minor.
    All,
    /// One kubelet.
    One(KubeletArg),
}

impl KubeletSelection {
    fn one(&self) -> Option<&KubeletArg> {
        match self {
            Self::All => None,
            Self::One(one) => Some(one),
        }
    }
}

impl FromStr for KubeletSelection {
    type Err = KubeletSpecError;

    fn from_str(text: &str) -> Result<Self, KubeletSpecError> {
        match text.trim() {
            "all" => Ok(Self::All),
            text => Ok(Self::One(text.parse()?)),
        }
    }
}

/// Adds to a failure the first of these options whose kubelet an embedded cluster does not support.
pub(crate) fn of_first_not_modelled<'a>(
    failure: Failure,
    mut stated: impl Iterator<Item = (&'static str, &'a KubeletArg)>,
    catalog: &ImageCatalog,
) -> Failure {
    let is_modelled = |kubelet: &KubeletArg| {
        evictlab_cluster::modelled_kubelets(slice::from_ref(&kubelet.spec), catalog).is_ok()
    };
    match stated.find(|(_, kubelet)| !is_modelled(kubelet)) {
        Some((option, kubelet)) => failure.of_value(option, &kubelet.text),
        None => failure,
    }
}

#[derive(Clone)]
struct NodeImage(KubeletVersion, String);

impl FromStr for NodeImage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (version, image) = text.split_once('=').ok_or("expected VERSION=IMAGE")?;
        let version = version.parse().map_err(|error| format!("{error}"))?;
        Ok(Self(version, image.to_owned()))
    }
}

/// The kubelets of an earlier run, after [`KubeletArgs::default_to`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EarlierKubelets {
    /// They are selected.
    Selected,
    /// The command line selects others.
    NotSelected,
    /// One of them is a program or an image that evictlab does not know. None is selected.
    Untrusted,
}

/// Returns the version of a `--kubelet` argument of an earlier run. `None` for a program, and for
/// an image that is not kind's for this version: the version alone selects kind's.
fn recorded_version(arg: &str) -> Option<KubeletVersion> {
    let (text, source) = arg.split_once('=').map_or((arg, None), |(text, source)| (text, Some(source)));
    let version: KubeletVersion = text.parse().ok().filter(|_| is_plain(text))?;
    let released = format!("kindest/node:{version}");
    let is_released = |source: &str| source.split('@').next() == Some(released.as_str());
    source.is_none_or(is_released).then_some(version)
}

/// Notes releases that are newer than the newest known patch: the rules of their minor apply.
fn note_unknown_patches(kubelets: &[Kubelet], catalog: &ImageCatalog) {
    for version in kubelets.iter().map(|kubelet| &kubelet.version) {
        let known = evictlab_cluster::newest_patch(version.minor, catalog);
        if version.patch > known.patch {
            print_stderr(format!(
                "note: {version} is newer than {known}, the newest release that evictlab knows: it is modelled as v{}.{}",
                version.major, version.minor
            ));
        }
    }
}

/// Returns a note about a kubelet whose minor version is newer than the newest known rules.
fn unknown_minor_note(version: &KubeletVersion) -> Option<String> {
    let newest = KubeletVersion::NEWEST_MINOR;
    version.at_least(newest + 1).then(|| {
        format!("note: {version} is newer than v1.{newest}, the newest kubelet that evictlab knows: the rules of v1.{newest} apply to it")
    })
}

impl KubeletArgs {
    /// Returns whether `--kubelet` is present.
    pub(crate) fn any(&self) -> bool {
        !self.kubelet.is_empty()
    }

    /// Selects the kubelets of an earlier run, by its `--kubelet` arguments, if none is selected.
    /// The run may be untrusted: only versions are taken from it.
    pub(crate) fn default_to(&mut self, args: &[String]) -> EarlierKubelets {
        if self.kubelet.is_empty() {
            let versions: Option<Vec<KubeletVersion>> =
                args.iter().map(|arg| recorded_version(arg)).collect();
            let Some(versions) = versions else { return EarlierKubelets::Untrusted };
            let select = |version: KubeletVersion| {
                let text = version.to_string();
                KubeletSelection::One(KubeletArg { text, spec: KubeletSource::Release(version).into() })
            };
            self.kubelet = versions.into_iter().map(select).collect();
            return EarlierKubelets::Selected;
        }
        if self.words().iter().filter(|word| *word != "--kubelet").eq(args) {
            EarlierKubelets::Selected
        } else {
            EarlierKubelets::NotSelected
        }
    }

    /// Returns the sources of node images.
    pub(crate) fn images(&self) -> &ImageArgs {
        &self.images
    }

    /// Loads the image catalog.
    pub(crate) fn image_catalog(&self) -> Result<ImageCatalog, Failure> {
        self.images.image_catalog()
    }

    /// Returns the selected kubelets, and `all` for the value `all`.
    pub(crate) fn specs(&self, all: &[KubeletSpec]) -> Vec<KubeletSpec> {
        let specs = |selection: &KubeletSelection| match selection {
            KubeletSelection::All => all.to_vec(),
            KubeletSelection::One(one) => vec![one.spec.clone()],
        };
        self.kubelet.iter().flat_map(specs).collect()
    }

    fn selects_all(&self) -> bool {
        self.kubelet.iter().any(|selection| matches!(selection, KubeletSelection::All))
    }

    /// Returns the arguments from the command line, without those for images.
    pub(crate) fn words(&self) -> Vec<String> {
        let word = |selection: &KubeletSelection| match selection {
            KubeletSelection::All => "all".to_owned(),
            KubeletSelection::One(one) => one.text.clone(),
        };
        self.kubelet.iter().flat_map(|kubelet| ["--kubelet".to_owned(), word(kubelet)]).collect()
    }

    /// Returns the kubelets of an embedded cluster.
    pub(crate) fn modelled(&self, catalog: &ImageCatalog) -> Result<Vec<Kubelet>, Failure> {
        let specs = self.specs(&evictlab_cluster::every_minor());
        let modelled = self.images.modelled(&specs, catalog);
        let kubelets = modelled.map_err(|failure| {
            let stated = self.kubelet.iter().filter_map(KubeletSelection::one);
            of_first_not_modelled(failure, stated.map(|one| ("kubelet", one)), catalog)
        })?;
        note_unknown_patches(&kubelets, catalog);
        // `v1.31` and `v1.31.14` may be the same kubelet; twice the same text means two nodes.
        let is_repeated = |place: usize| {
            (0..place).any(|other| {
                kubelets[other].version == kubelets[place].version && specs[other] != specs[place]
            })
        };
        let distinct = (0..kubelets.len()).filter(|place| !is_repeated(*place));
        Ok(Kubelet::with_unique_labels(
            distinct
                .map(|place| Kubelet {
                    label: kubelets[place].version.to_string(),
                    ..kubelets[place].clone()
                })
                .collect(),
        ))
    }

    /// Returns the kubelets after pulling missing images into Docker. The value `all` selects the
    /// newest kubelet of every minor whose image is in Docker.
    pub(crate) async fn resolve(
        &self,
        docker: &Docker,
        catalog: &ImageCatalog,
    ) -> Result<Vec<Kubelet>, Failure> {
        let overrides = self.images.overrides();
        let resolve = resolver(docker, catalog, &overrides);
        let specs = if !self.any() {
            resolve.newest().await.map_err(Failure::bad_input)?.into_iter().collect()
        } else if self.selects_all() {
            let all = resolve.newest_local_of_each_minor().await.map_err(Failure::bad_input)?;
            if all.is_empty() {
                return Err(Failure::bad_input(
                    "failed to select kubelets: --kubelet all selects every minor whose node image is in Docker, and Docker has no node image\nhelp: name the kubelets, or load node images as described in images/README.md",
                ));
            }
            self.specs(&all)
        } else {
            self.specs(&[])
        };
        let kubelets = resolve.resolve_all(&specs).await.map_err(Failure::bad_input)?;
        let notes = kubelets.iter().filter_map(|kubelet| unknown_minor_note(&kubelet.version));
        notes.for_each(print_stderr);
        Ok(kubelets)
    }

    /// Returns the kubelets for use on another machine: pulls no images and works without Docker.
    pub(crate) async fn resolve_offline(
        &self,
        docker: Option<&Docker>,
        catalog: &ImageCatalog,
    ) -> Result<Vec<Kubelet>, Failure> {
        let overrides = self.images.overrides();
        let resolve = docker.map(|docker| KubeletResolver {
            docker,
            catalog,
            overrides: &overrides,
            progress: &|_| (),
        });
        evictlab_cluster::images::plan_kubelets(
            resolve.as_ref(),
            catalog,
            &overrides,
            &self.specs(&evictlab_cluster::every_minor()),
        )
        .await
        .map_err(Failure::bad_input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_around_a_kubelet_are_ignored() {
        for text in ["v1.32", " v1.32", "v1.32 "] {
            assert_eq!(text.parse::<KubeletArg>().unwrap().text, "v1.32", "{text:?}");
        }
        assert!(matches!(" all".parse::<KubeletSelection>(), Ok(KubeletSelection::All)));
    }

    #[test]
    fn kubelets_of_an_earlier_run_are_selected_completely_or_not_at_all() {
        let image = "v1.32.13=kindest/node:v1.32.13@sha256:00";
        // A file that exists.
        let binary = "v1.32.13=Cargo.toml";
        let selection_of = |stated: &[&str], args: &[&str]| {
            let images = ImageArgs { node_image: vec![], image_lock: None };
            let kubelet = stated.iter().map(|text| text.parse().unwrap()).collect();
            let mut kubelets = KubeletArgs { kubelet, images };
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            let selected = kubelets.default_to(&args);
            (selected, kubelets.words().into_iter().filter(|word| word != "--kubelet").collect::<Vec<_>>())
        };
        use EarlierKubelets::{NotSelected, Selected, Untrusted};
        /// Stated kubelets, those of the earlier run, the selection, and its words.
        type Row<'a> = (&'a [&'a str], &'a [&'a str], EarlierKubelets, &'a [&'a str]);
        let rows: [Row<'_>; 8] = [
            (&[], &[image, "v1.31.14"], Selected, &["v1.32.13", "v1.31.14"]),
            (&[], &[image, binary], Untrusted, &[]),
            (&[], &["v1.32.13+=Cargo.toml"], Untrusted, &[]),
            (&[], &["Cargo.toml"], Untrusted, &[]),
            (&[], &["v1.32.13=example.org/node:v1.32.13"], Untrusted, &[]),
            (&[], &["v1.32.13=kindest/node:v1.31.14"], Untrusted, &[]),
            (&["v1.31"], &[binary], NotSelected, &["v1.31"]),
            (&[binary], &[binary], Selected, &[binary]),
        ];
        for (stated, args, selected, words) in rows {
            assert_eq!(
                selection_of(stated, args),
                (selected, words.iter().map(|word| (*word).to_owned()).collect()),
                "{args:?}"
            );
        }
    }

    #[test]
    fn a_newer_minor_is_noted() {
        let note = |version: &str| unknown_minor_note(&version.parse().unwrap());
        assert_eq!(note("v1.37.9"), None);
        assert_eq!(
            note("v1.38.0-rc.1").unwrap(),
            "note: v1.38.0-rc.1 is newer than v1.37, the newest kubelet that evictlab knows: the rules of v1.37 apply to it"
        );
    }
}
