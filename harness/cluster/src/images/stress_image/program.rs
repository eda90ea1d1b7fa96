//! The program of the stress image: built into evictlab or from the source tree; and the image that
//! contains it.

use std::io::{self, Read};

use flate2::read::GzDecoder;
use serde_json::json;

use crate::images::archive::{Archive, OneLayer, tar_of};

/// Name of the image. No registry has the host `localhost`, so no client tries to pull it.
pub const NAME: &str = "localhost/evictlab/stress:1";

/// Built-in programs by CPU architecture, sorted, compressed by gzip: those that the build of
/// evictlab named.
const BUILT_IN: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/stress_programs.rs"));

/// A program of the stress image.
#[derive(Clone, Debug)]
pub struct StressProgram {
    /// Executable file.
    pub program: Vec<u8>,
    /// CPU architecture in image notation: `amd64`, `arm64`.
    pub architecture: String,
}

impl StressProgram {
    /// Returns the built-in program for a CPU architecture in image notation. Releases contain
    /// `amd64` and `arm64`; a build from the source tree does not contain a program.
    pub fn built_in(architecture: &str) -> Option<Self> {
        let (_, compressed) = BUILT_IN.iter().find(|(known, _)| *known == architecture)?;
        let mut program = Vec::new();
        GzDecoder::new(*compressed).read_to_end(&mut program).ok()?;
        Some(Self { program, architecture: architecture.to_owned() })
    }

    /// Returns the CPU architectures of the built-in programs.
    pub fn built_in_architectures() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(architecture, _)| *architecture)
    }

    /// Creates an image that contains only the program, with the program as entrypoint.
    ///
    /// # Errors
    /// Those of [`tar::Builder`].
    pub fn archive(&self) -> io::Result<Archive> {
        let image = OneLayer {
            name: NAME,
            architecture: self.architecture.clone(),
            layer: tar_of([("stress", 0o755, self.program.as_slice())])?,
            uncompressed: None,
            config: json!({"Entrypoint": ["/stress"], "Cmd": ["idle"], "Env": ["PATH=/"], "WorkingDir": "/"}),
            created_by: "evictlab image build",
        };
        image.archive()
    }
}

/// CPU architecture of a Rust target in image notation.
pub fn architecture(target: &str) -> &str {
    match target.split('-').next().unwrap_or_default() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "riscv64gc" => "riscv64",
        "powerpc64le" => "ppc64le",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let read = |entry: io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            (entry.path().unwrap().display().to_string(), bytes)
        };
        archive.entries().unwrap().map(read).collect()
    }

    #[test]
    fn contains_the_program_as_oci_and_docker_archive() {
        let program = StressProgram { program: b"program".to_vec(), architecture: "amd64".to_owned() };
        let archive = program.archive().unwrap();
        assert_eq!(archive.bytes, program.archive().unwrap().bytes, "the archive is reproducible");
        let files = files(&archive.bytes);
        let json = |path: &str| serde_json::from_slice::<Value>(&files[path]).unwrap();
        let blob = |of: &Value| {
            let hash = of["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let path = format!("blobs/sha256/{hash}");
            assert_eq!(files[&path].len() as u64, of["size"], "{of}");
            path
        };
        assert_eq!(json("index.json")["manifests"][0]["annotations"]["io.containerd.image.name"], NAME);
        assert_eq!(json("index.json")["manifests"][0]["digest"], archive.digest.as_str());
        let manifest = json(&blob(&json("index.json")["manifests"][0]));
        let (config, layer) = (blob(&manifest["config"]), blob(&manifest["layers"][0]));
        let docker_manifest = &json("manifest.json")[0];
        assert_eq!(*docker_manifest, json!({"Config": config, "RepoTags": [NAME], "Layers": [layer]}));
        assert_eq!(json(&config)["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        assert_eq!(super::tests::files(&files[&layer])["stress"], b"program");
    }
}
