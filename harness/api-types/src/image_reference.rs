//! References to images, as in the field `image` of a container.

use std::fmt::{self, Display, Formatter};

/// Registry of names without one.
const DEFAULT_REGISTRY: &str = "docker.io";
/// Earlier name of [`DEFAULT_REGISTRY`].
const LEGACY_REGISTRY: &str = "index.docker.io";

/// A reference to an image: `NAME:TAG@DIGEST`, of which only the name is required.
///
/// ```
/// use evictlab_api_types::ImageReference;
///
/// let image = ImageReference::parse("localhost:5000/node");
/// // The colon is that of a port.
/// assert_eq!((image.name, image.tag), ("localhost:5000/node", None));
/// assert_eq!(ImageReference::parse("busybox").full_name(), "docker.io/library/busybox:latest");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageReference<'a> {
    /// Name with its registry, as it is written.
    pub name: &'a str,
    /// Tag, the part after the colon that follows the last slash.
    pub tag: Option<&'a str>,
    /// Digest, such as `sha256:…`.
    pub digest: Option<&'a str>,
}

impl<'a> ImageReference<'a> {
    /// Splits a reference. Does not check the characters of its parts.
    pub fn parse(text: &'a str) -> Self {
        let (tagged, digest) = match text.split_once('@') {
            Some((tagged, digest)) => (tagged, Some(digest)),
            None => (text, None),
        };
        let path_start = tagged.rfind('/').map_or(0, |slash| slash + 1);
        match tagged[path_start..].split_once(':') {
            Some((last, tag)) => Self { name: &tagged[..path_start + last.len()], tag: Some(tag), digest },
            None => Self { name: tagged, tag: None, digest },
        }
    }

    /// Returns the reference without its digest.
    pub fn without_digest(self) -> Self {
        Self { digest: None, ..self }
    }

    /// Returns the reference with the tag `latest` if it has neither a tag nor a digest.
    pub fn with_default_tag(self) -> Self {
        let is_complete = self.tag.is_some() || self.digest.is_some();
        if is_complete { self } else { Self { tag: Some("latest"), ..self } }
    }

    /// Returns the value of `imagePullPolicy` that the API server sets: `Always` for the tag
    /// `latest`, the default tag, else `IfNotPresent`. Source: `SetDefaults_Container` of
    /// `pkg/apis/core/v1/defaults.go`.
    pub fn default_pull_policy(self) -> &'static str {
        match self.with_default_tag().tag {
            Some("latest") => "Always",
            _ => "IfNotPresent",
        }
    }

    /// Returns the name under which container runtimes store the image: with its registry, and with
    /// its digest or, without one, its tag. Source: `ParseDockerRef` of
    /// `github.com/distribution/reference`.
    pub fn full_name(self) -> String {
        let Self { name, tag, digest } = self.with_default_tag();
        let is_registry = |first: &str| {
            first.contains(['.', ':']) || first == "localhost" || first.chars().any(char::is_uppercase)
        };
        let (registry, path) = match name.split_once('/') {
            Some((LEGACY_REGISTRY, path)) => (DEFAULT_REGISTRY, path),
            Some((first, path)) if is_registry(first) => (first, path),
            _ => (DEFAULT_REGISTRY, name),
        };
        let library = if registry == DEFAULT_REGISTRY && !path.contains('/') { "library/" } else { "" };
        let name = format!("{registry}/{library}{path}");
        ImageReference { name: &name, tag: tag.filter(|_| digest.is_none()), digest }.to_string()
    }
}

impl Display for ImageReference<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(tag) = self.tag {
            write!(f, ":{tag}")?;
        }
        self.digest.map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}
