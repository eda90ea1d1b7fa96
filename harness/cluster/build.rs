//! Builds programs of the stress image into evictlab: `EVICTLAB_STRESS_AMD64` and
//! `EVICTLAB_STRESS_ARM64` name their files. Releases set both, so that an installed evictlab
//! builds the image without sources and cargo; without the variables, evictlab builds the program
//! from its source tree. The programs are compressed, which halves their size.

use std::path::Path;
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let directory = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let mut programs = String::new();
    for architecture in ["amd64", "arm64"] {
        let variable = format!("EVICTLAB_STRESS_{}", architecture.to_uppercase());
        println!("cargo::rerun-if-env-changed={variable}");
        let Some(file) = env::var_os(&variable).filter(|file| !file.is_empty()) else { continue };
        println!("cargo::rerun-if-changed={}", Path::new(&file).display());
        let copy = Path::new(&directory).join(architecture);
        if let Err(error) = compress(Path::new(&file), &copy) {
            println!("cargo::error=failed to compress {variable}={}: {error}", Path::new(&file).display());
            return;
        }
        programs += &format!("(\"{architecture}\", include_bytes!({copy:?})),");
    }
    let list = format!("&[{programs}]");
    if let Err(error) = fs::write(Path::new(&directory).join("stress_programs.rs"), list) {
        println!("cargo::error=failed to write the list of programs: {error}");
    }
}

fn compress(from: &Path, to: &Path) -> io::Result<()> {
    let mut encoder = GzEncoder::new(fs::File::create(to)?, Compression::best());
    io::copy(&mut fs::File::open(from)?, &mut encoder)?;
    encoder.finish().map(drop)
}
