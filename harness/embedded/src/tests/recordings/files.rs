//! Files of recordings.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::de::DeserializeOwned;

/// The crate with the model, relative to the package of its unit tests.
const CRATE: &str = "../embedded";
/// Folder of the recordings for the rules, relative to this crate.
pub(crate) const RULES: &str = "../rules/recordings";

/// Reads the recordings in folders of this crate, or in the folder that `EVICTLAB_RECORDINGS`
/// names. Returns them by name: the path in their folder, without its extension.
///
/// # Panics
/// There are no recordings, or one cannot be read.
pub(crate) fn read_recordings<T: DeserializeOwned>(folders: &[&str]) -> Vec<(String, T)> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(CRATE);
    let folders: Vec<PathBuf> = match env::var_os("EVICTLAB_RECORDINGS") {
        Some(folder) => vec![folder.into()],
        None => folders.iter().map(|folder| crate_folder.join(folder)).collect(),
    };
    let mut files = Vec::new();
    for folder in &folders {
        find(folder, folder, &mut files);
    }
    assert!(!files.is_empty());
    files.sort();
    files
        .into_iter()
        .map(|(name, path)| {
            let recording = serde_json::from_slice(&fs::read(&path).unwrap());
            (name, recording.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        })
        .collect()
}

/// Finds recordings in a folder: relative and full path.
fn find(folder: &Path, top: &Path, files: &mut Vec<(String, PathBuf)>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        match path.extension() {
            _ if path.is_dir() => find(&path, top, files),
            Some(extension) if extension == "json" => {
                let name = path.strip_prefix(top).unwrap().with_extension("");
                files.push((name.to_string_lossy().into_owned(), path));
            }
            _ => {}
        }
    }
}
