//! Availability of images.

use evictlab_api_types::ImageReference;

/// Result of an image lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kubelet) enum ImageLookup {
    /// The node has the image.
    Here,
    /// The image can be pulled.
    Pullable,
    /// No registry has the image: its name contains `nonexistent`, or its registry is below
    /// `.invalid`.
    Nowhere,
}

/// Registry of images that are only loaded.
pub(in crate::kubelet) const LOADED: &str = "localhost/evictlab/";
/// Repositories whose images are on every node, with any tag, until they are deleted.
const HERE: [&str; 5] =
    ["registry.k8s.io/", "docker.io/library/busybox", "busybox", "gcr.io/k8s-staging", LOADED];

/// Looks up an image by name.
pub(in crate::kubelet) fn find(image: &str) -> ImageLookup {
    let registry = image.split('/').next().unwrap_or_default();
    let registry = registry.split(':').next().unwrap_or_default();
    if image.contains("nonexistent") || (image.contains('/') && registry.ends_with(".invalid")) {
        return ImageLookup::Nowhere;
    }
    let is_here = HERE.iter().any(|here| {
        image
            .strip_prefix(here)
            .is_some_and(|rest| here.ends_with('/') || rest.is_empty() || rest.starts_with([':', '@', '/']))
    });
    if is_here { ImageLookup::Here } else { ImageLookup::Pullable }
}

/// Returns the image ID: a digest that depends only on the name.
pub(in crate::kubelet) fn id(image: &str) -> String {
    // FNV-1a, repeated to fill 32 bytes.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut digest = String::new();
    for round in 0..4_u8 {
        for byte in image.bytes().chain([round]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        digest += &format!("{hash:016x}");
    }
    format!("sha256:{digest}")
}

/// Returns containerd's error message of a failed pull.
pub(in crate::kubelet) fn failure(image: &str) -> String {
    let full = ImageReference::parse(image).with_default_tag().to_string();
    format!(
        "rpc error: code = NotFound desc = failed to pull and unpack image {full:?}: failed to resolve reference {full:?}: {full}: not found"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_availability_by_name() {
        for (image, found) in [
            ("registry.k8s.io/e2e-test-images/agnhost:2.52", ImageLookup::Here),
            ("busybox", ImageLookup::Here),
            ("localhost/evictlab/stress:1", ImageLookup::Here),
            ("busybox:1.36", ImageLookup::Here),
            ("busyboxes", ImageLookup::Pullable),
            (
                "ghcr.io/someone/thing@sha256:0d6afe7462778b5e4c3552e051c01744f0d39b4642cc108962248ffa430ad019",
                ImageLookup::Pullable,
            ),
            ("localhost:5000/thing:v1", ImageLookup::Pullable),
            ("registry.invalid/thing", ImageLookup::Nowhere),
            ("nonexistent:1", ImageLookup::Nowhere),
        ] {
            assert_eq!(find(image), found, "{image}");
        }
    }

    #[test]
    fn a_failed_pull_names_the_default_tag() {
        for (image, full) in [
            ("thing", "thing:latest"),
            ("thing:1", "thing:1"),
            ("localhost:5000/thing", "localhost:5000/thing:latest"),
            ("thing@sha256:00", "thing@sha256:00"),
        ] {
            assert!(failure(image).ends_with(&format!(": {full}: not found")), "{}", failure(image));
        }
    }

    #[test]
    fn an_id_is_a_digest_of_its_own() {
        assert_eq!(id("a").len(), 71);
        assert_ne!(id("a"), id("b"));
    }
}
