//! Requested representation of objects: `Accept`.

use http::HeaderMap;
use http::header::ACCEPT;

/// Representation of objects in a response. All are JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Representation {
    /// Whole objects.
    #[default]
    Object,
    /// `PartialObjectMetadata`: only the metadata.
    Metadata,
    /// `Table` of `meta.k8s.io/v1`: the output of `kubectl get`.
    Table,
}

impl Representation {
    /// Returns the first supported representation of `Accept`; whole objects if the header is
    /// missing, `None` if no representation is supported.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let Some(accept) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else {
            return Some(Self::default());
        };
        accept.split(',').find_map(Self::parse)
    }

    fn parse(media_type: &str) -> Option<Self> {
        let mut parts = media_type.split(';').map(str::trim);
        if !["application/json", "application/*", "*/*", ""].contains(&parts.next()?) {
            return None;
        }
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let parameter = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        match (parameter("as"), parameter("g"), parameter("v")) {
            (None, ..) => Some(Self::Object),
            (Some("Table"), Some("meta.k8s.io"), Some("v1")) => Some(Self::Table),
            (
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                Some("meta.k8s.io"),
                Some("v1"),
            ) => Some(Self::Metadata),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_the_first_supported_representation() {
        let read = |text: &str| {
            Representation::from_headers(&HeaderMap::from_iter([(ACCEPT, text.parse().unwrap())]))
        };
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(read(kubectl), Some(Representation::Table));
        assert_eq!(
            read("application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json"),
            Some(Representation::Object)
        );
        let discovery =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(read(discovery), Some(Representation::Object));
        assert_eq!(read("application/vnd.kubernetes.protobuf, */*"), Some(Representation::Object));
        assert_eq!(read("application/vnd.kubernetes.protobuf"), None);
    }
}
