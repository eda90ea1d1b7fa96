//! An image that no container uses, for cases about the garbage collection of images: one file of
//! zeros, compressed in the archive, and as large as stated once it is unpacked.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::archive::{Archive, OneLayer};
use crate::sha256::sha256_of_parts;

/// Length of a part of the file, in bytes. Each part is a member of the gzip file, so that only one
/// is compressed.
const PART: usize = 1 << 20;
/// Length of a block in a tar archive, in bytes.
const BLOCK: usize = 512;

/// Prefix of the names of unused images, before their size.
pub(crate) const UNUSED_IMAGES: &str = "localhost/evictlab/unused:";

/// Returns the name of the image of a size.
pub(crate) fn unused_image_name(bytes: u64) -> String {
    format!("{UNUSED_IMAGES}{bytes}")
}

/// Creates the image of a size, which is rounded up to a multiple of 1 MiB.
pub(super) fn archive(bytes: u64, architecture: String) -> io::Result<Archive> {
    let parts = bytes.div_ceil(PART as u64);
    let mut header = tar::Header::new_gnu();
    header.set_path("unused")?;
    header.set_size(parts * PART as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let part = vec![0; PART];
    let end = [0; 2 * BLOCK];
    let members = [header.as_bytes().as_slice(), &part, &end].map(gzip);
    let [first, middle, last] = members;
    let middle = middle?;
    let mut layer = first?;
    for _ in 0..parts {
        layer.extend_from_slice(&middle);
    }
    layer.extend(last?);
    let repeated = (0..parts).map(|_| part.as_slice());
    let digest =
        sha256_of_parts([header.as_bytes().as_slice()].into_iter().chain(repeated).chain([&end[..]]));
    let image = OneLayer {
        name: &unused_image_name(bytes),
        architecture,
        layer,
        uncompressed: Some(format!("sha256:{digest}")),
        config: json!({}),
        created_by: "evictlab run",
    };
    image.archive()
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;
    use serde_json::Value;

    use super::*;
    use crate::sha256::sha256_hex;

    #[test]
    fn the_layer_is_a_tar_archive_of_the_size() {
        let archive = archive(3 << 20, "amd64".to_owned()).unwrap();
        assert!(archive.bytes.len() < 64 << 10, "{} bytes", archive.bytes.len());
        let mut files = std::collections::BTreeMap::new();
        for entry in tar::Archive::new(archive.bytes.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            files.insert(entry.path().unwrap().display().to_string(), bytes);
        }
        let listed: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
        assert_eq!(listed[0]["RepoTags"], json!(["localhost/evictlab/unused:3145728"]));
        let mut layer = Vec::new();
        let compressed = files[listed[0]["Layers"][0].as_str().unwrap()].as_slice();
        MultiGzDecoder::new(compressed).read_to_end(&mut layer).unwrap();
        let config: Value = serde_json::from_slice(&files[listed[0]["Config"].as_str().unwrap()]).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"], json!([format!("sha256:{}", sha256_hex(&layer))]));
        let mut layer = tar::Archive::new(layer.as_slice());
        let sizes: Vec<u64> = layer.entries().unwrap().map(|entry| entry.unwrap().size()).collect();
        assert_eq!(sizes, [3 << 20]);
    }
}
