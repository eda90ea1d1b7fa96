//! Image archives with one layer, for `docker load`, `ctr images import` and `kind load
//! image-archive`: an OCI layout with the additional `manifest.json` of Docker archives. The
//! archives are reproducible: equal layers result in equal bytes.

use std::io;

use evictlab_api_types::ImageReference;
use serde_json::{Value, json};

use crate::sha256::sha256_hex;

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
pub(super) struct OneLayer<'a> {
    /// Name with its tag.
    pub(super) name: &'a str,
    /// CPU architecture in image notation.
    pub(super) architecture: String,
    /// Bytes of the layer, a tar archive.
    pub(super) layer: Vec<u8>,
    /// Digest of the uncompressed layer, if it is compressed by gzip.
    pub(super) uncompressed: Option<String>,
    /// `config` of the image configuration.
    pub(super) config: Value,
    /// Command that made the layer.
    pub(super) created_by: &'a str,
}

impl OneLayer<'_> {
    /// Creates the archive.
    ///
    /// # Errors
    /// Those of [`tar::Builder`].
    pub(super) fn archive(self) -> io::Result<Archive> {
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
        let tag = ImageReference::parse(self.name).tag.unwrap_or("latest");
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
pub(super) fn tar_of<'a>(files: impl IntoIterator<Item = (&'a str, u32, &'a [u8])>) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, mode, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(mode);
        archive.append_data(&mut header, path, bytes)?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_sha256() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Blob::new("", Vec::new()).digest(), empty);
    }
}
