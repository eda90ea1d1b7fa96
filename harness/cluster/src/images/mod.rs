//! Node images and case images: their full names, pulling them, and loading them into nodes.

mod archive;
mod binary;
mod catalog;
mod containerd;
mod ensure_loaded;
mod plan_kubelets;
mod pull;
mod resolve;
mod resolve_error;
pub mod stress_image;
mod unused_image;
pub mod update;

pub use archive::Archive;
pub use binary::kubelet_version;
pub use catalog::{CANARY_IMAGE, ImageCatalog, ImageCatalogError, ImageLocations};
pub(crate) use containerd::ARCHIVE_PATH;
pub use containerd::{ContainerdError, SnapshotterProblem};
pub use ensure_loaded::{ImageLoadError, ensure_loaded};
pub(crate) use ensure_loaded::{load_unpinned, load_unused, remove_unused, unpack};
pub use plan_kubelets::plan_kubelets;
pub use pull::{PullError, has_image, pull_image};
pub use resolve::{KubeletImage, KubeletResolver};
pub use resolve_error::ResolveError;
pub(crate) use unused_image::{UNUSED_IMAGES, unused_image_name};
