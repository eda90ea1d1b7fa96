//! An image archive with one program, for `docker load`, `ctr images import` and
//! `kind load image-archive`: an OCI layout with the additional `manifest.json` of Docker archives.
//! The archive is reproducible: equal programs result in equal bytes.

use std::io;

use serde_json::{Value, json};

use crate::sha256::sha256_hex;

/// Name of the image. No registry has the host `localhost`, so no client tries to pull it.
pub const NAME: &str = "localhost/evictlab/stress:1";

/// A built program.
#[derive(Clone, Debug)]
pub struct Built {
    /// Executable file.
    pub program: Vec<u8>,
    /// CPU architecture in image notation: `amd64`, `arm64`.
    pub architecture: String,
}

/// An image archive.
#[derive(Clone, Debug)]
pub struct Archive {
    /// The archive in tar format.
    pub bytes: Vec<u8>,
    /// Digest of the image in containerd: `sha256:…`.
    pub digest: String,
    /// CPU architecture in image notation.
    pub architecture: String,
}

/// A blob of the OCI layout.
struct Blob {
    media_type: &'static str,
    bytes: Vec<u8>,
    hash: String,
}

impl Blob {
    fn new(media_type: &'static str, bytes: Vec<u8>) -> Self {
        let hash = sha256_hex(&bytes);
        Self { media_type, bytes, hash }
    }

    fn json(media_type: &'static str, value: &Value) -> Self {
        Self::new(media_type, value.to_string().into_bytes())
    }

    fn digest(&self) -> String {
        format!("sha256:{}", self.hash)
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.hash)
    }

    /// OCI descriptor of the blob.
    fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest(), "size": self.bytes.len()})
    }
}

/// Contents of an image with one layer.
pub(in crate::images) struct OneLayer<'a> {
    /// Name with its tag.
    pub(in crate::images) name: &'a str,
    /// CPU architecture in image notation.
    pub(in crate::images) architecture: String,
    /// Bytes of the layer, a tar archive.
    pub(in crate::images) layer: Vec<u8>,
    /// Digest of the uncompressed layer, if it is compressed by gzip.
    pub(in crate::images) uncompressed: Option<String>,
    /// `config` of the image configuration.
    pub(in crate::images) config: Value,
    /// Command that made the layer.
    pub(in crate::images) created_by: &'a str,
}

impl Built {
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

impl OneLayer<'_> {
    /// Creates the archive.
    ///
    /// # Errors
    /// Those of [`tar::Builder`].
    pub(in crate::images) fn archive(self) -> io::Result<Archive> {
        let media_type = match self.uncompressed {
            Some(_) => "application/vnd.oci.image.layer.v1.tar+gzip",
            None => "application/vnd.oci.image.layer.v1.tar",
        };
        let layer = Blob::new(media_type, self.layer);
        let config = json!({
            "created": "1970-01-01T00:00:00Z",
            "architecture": self.architecture,
            "os": "linux",
            "config": self.config,
            "rootfs": {"type": "layers", "diff_ids": [self.uncompressed.unwrap_or_else(|| layer.digest())]},
            "history": [{"created": "1970-01-01T00:00:00Z", "created_by": self.created_by}],
        });
        let config = Blob::json("application/vnd.oci.image.config.v1+json", &config);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.descriptor(),
            "layers": [layer.descriptor()],
        });
        let manifest = Blob::json("application/vnd.oci.image.manifest.v1+json", &manifest);
        let mut listed = manifest.descriptor();
        let tag = self.name.rsplit_once(':').map_or(self.name, |(_, tag)| tag);
        listed["annotations"] =
            json!({"io.containerd.image.name": self.name, "org.opencontainers.image.ref.name": tag});
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [listed],
        });
        let docker_manifest =
            json!([{"Config": config.path(), "RepoTags": [self.name], "Layers": [layer.path()]}]);
        let texts =
            [json!({"imageLayoutVersion": "1.0.0"}), index, docker_manifest].map(|value| value.to_string());
        let paths = [&config, &layer, &manifest].map(|blob| (blob.path(), &blob.bytes));
        let bytes = tar_of(
            ["oci-layout", "index.json", "manifest.json"]
                .into_iter()
                .zip(texts.iter().map(String::as_bytes))
                .chain(paths.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())))
                .map(|(path, bytes)| (path, 0o644, bytes)),
        )?;
        Ok(Archive { bytes, digest: manifest.digest(), architecture: self.architecture })
    }
}

/// Creates a tar archive with files that belong to root and have no modification time.
fn tar_of<'a>(files: impl IntoIterator<Item = (&'a str, u32, &'a [u8])>) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, mode, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(mode);
        archive.append_data(&mut header, path, bytes)?;
    }
    archive.into_inner()
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
    use std::io::Read;

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
        let built = Built { program: b"program".to_vec(), architecture: "amd64".to_owned() };
        let archive = built.archive().unwrap();
        assert_eq!(archive.bytes, built.archive().unwrap().bytes, "the archive is reproducible");
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

    #[test]
    fn digests_are_sha256() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Blob::new("", Vec::new()).digest(), empty);
    }
}
