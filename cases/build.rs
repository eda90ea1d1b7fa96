//! Lists the case files for `lib.rs`, which includes them in the binary: the text, and the document
//! as JSON.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut list = String::from("&[\n");
    for suite in sorted(&root)?.into_iter().filter(|path| path.is_dir()) {
        println!("cargo::rerun-if-changed={}", suite.display());
        for file in
            sorted(&suite)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        {
            let relative = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
            // A file that is not YAML has no document: its tests report it, with its lines.
            let document = serde_saphyr::from_str::<Value>(&fs::read_to_string(&file)?).ok();
            let json = document.map(|document| document.to_string());
            // Debug formatting of these is a Rust literal.
            let (text, json) = (file.display().to_string(), format!("{json:?}"));
            let _ = writeln!(
                list,
                "BuiltInCase {{ path: {relative:?}, text: include_str!({text:?}), json: {json} }},"
            );
        }
    }
    list.push(']');
    println!("cargo::rerun-if-changed={}", root.display());
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("files.rs"), list)?;
    Ok(())
}

fn sorted(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<_> =
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}
