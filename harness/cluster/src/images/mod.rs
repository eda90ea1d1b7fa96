//! Node images and case images: their full names, pulling them, and loading them into nodes.

mod archive;
mod binary;
mod catalog;
mod containerd;
mod ensure_loaded;
mod plan;
mod pull;
mod resolve;
pub mod stress_image;
mod unused_image;
pub mod update;

pub use archive::Archive;
pub use binary::{ResolveError, kubelet_version};
pub use catalog::{CANARY_IMAGE, ImageCatalog, ImageCatalogError, ImageLocations};
pub(crate) use containerd::ARCHIVE_PATH;
pub use containerd::ContainerdError;
pub use ensure_loaded::{ImageLoadError, ensure_loaded};
pub(crate) use ensure_loaded::{load_unpinned, load_unused, remove_unused, unpack};
pub use plan::plan_kubelets;
pub use pull::{PullError, has_image, pull_image};
pub use resolve::{KubeletImage, KubeletResolver};
pub(crate) use unused_image::{UNUSED_IMAGES, unused_image_name};
