//! Updates an image catalog with the node images that kind published.

mod download;
mod lock_file;
mod releases;

pub use download::{DownloadError, RELEASES, download};
pub use lock_file::{ImageChange, ImageChangeKind, Update, UpdateError, update};
pub use releases::{NodeImage, ReleasesError, node_images};
