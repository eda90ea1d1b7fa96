//! Images: which are on the node, which can be had, and what the kubelet says when not.

/// What comes of looking for an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No image has such a name.
    Invalid,
    /// It is on the node from the beginning.
    Here,
    /// It can be pulled.
    Pullable,
    /// No registry has it: its name says so (`nonexistent`, or a registry below `.invalid`).
    Nowhere,
}

/// Repositories whose images every node of the model has, whatever their tag.
const HERE: [&str; 5] =
    ["registry.k8s.io/", "docker.io/library/busybox", "busybox", "gcr.io/k8s-staging", "localhost/evictlab/"];

/// Looks for an image by its name.
pub(super) fn find(image: &str) -> Found {
    if !is_name(image) {
        return Found::Invalid;
    }
    let registry = image.split('/').next().unwrap_or_default();
    let registry = registry.split(':').next().unwrap_or_default();
    if image.contains("nonexistent") || (image.contains('/') && registry.ends_with(".invalid")) {
        return Found::Nowhere;
    }
    let is_here = HERE.iter().any(|here| {
        image
            .strip_prefix(here)
            .is_some_and(|rest| here.ends_with('/') || rest.is_empty() || rest.starts_with([':', '@', '/']))
    });
    if is_here { Found::Here } else { Found::Pullable }
}

/// What the runtime calls an image: a digest, the same for the same name.
pub(super) fn id(image: &str) -> String {
    // FNV-1a, often enough to fill 32 bytes.
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

/// Why a pull failed, as containerd says it.
pub(super) fn failure(image: &str) -> String {
    let full = if image.contains(':') { image.to_owned() } else { format!("{image}:latest") };
    format!(
        "rpc error: code = NotFound desc = failed to pull and unpack image {full:?}: failed to resolve reference {full:?}: {full}: not found"
    )
}

/// Whether a name can be an image's (distribution/reference): lower-case path components, a tag, a digest.
fn is_name(image: &str) -> bool {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let (path, tag) = match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (name, None),
    };
    let word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    };
    let is_tag = |tag: &str| word(tag) && tag.len() <= 128 && !tag.starts_with(['.', '-']);
    let mut parts = path.split('/');
    let first = parts.next().unwrap_or_default();
    let is_registry = path.contains('/') && (first.contains(['.', ':']) || first == "localhost");
    let component = |part: &str| {
        let bytes = part.as_bytes();
        let edge = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        word(part)
            && edge(bytes.first())
            && edge(bytes.last())
            && !part.bytes().any(|b| b.is_ascii_uppercase())
    };
    let is_first = if is_registry { word(&first.replace(':', "")) } else { component(first) };
    is_first
        && parts.all(component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(|digest| digest.starts_with("sha256:") && digest.len() == 71)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_where_an_image_is() {
        for (image, found) in [
            ("registry.k8s.io/e2e-test-images/agnhost:2.52", Found::Here),
            ("busybox", Found::Here),
            ("localhost/evictlab/stress:1", Found::Here),
            ("busybox:1.36", Found::Here),
            ("busyboxes", Found::Pullable),
            (
                "ghcr.io/someone/thing@sha256:0d6afe7462778b5e4c3552e051c01744f0d39b4642cc108962248ffa430ad019",
                Found::Pullable,
            ),
            ("localhost:5000/thing:v1", Found::Pullable),
            ("registry.invalid/thing", Found::Nowhere),
            ("nonexistent:1", Found::Nowhere),
            ("Upper/Case", Found::Invalid),
            ("", Found::Invalid),
            ("a b", Found::Invalid),
            ("thing:", Found::Invalid),
        ] {
            assert_eq!(find(image), found, "{image}");
        }
    }

    #[test]
    fn an_id_is_a_digest_of_its_own() {
        assert_eq!(id("a").len(), 71);
        assert_ne!(id("a"), id("b"));
    }
}
