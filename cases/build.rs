//! Lists the case files for `lib.rs`, which includes them in the binary.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut list = String::from("&[\n");
    for suite in sorted(&root)?.into_iter().filter(|path| path.is_dir()) {
        println!("cargo::rerun-if-changed={}", suite.display());
        for file in
            sorted(&suite)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        {
            let relative = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
            // Debug formatting of these is a Rust string literal.
            let _ = writeln!(list, "({relative:?}, include_str!({:?})),", file.display().to_string());
        }
    }
    list.push(']');
    println!("cargo::rerun-if-changed={}", root.display());
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("files.rs"), list)
}

fn sorted(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<_> =
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}
