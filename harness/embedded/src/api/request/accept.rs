//! In which form an answer is wanted.

use http::HeaderMap;
use http::header::ACCEPT;

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    #[default]
    Json,
    /// `application/yaml`
    Yaml,
}

/// What an answer tells of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// All of them.
    #[default]
    Object,
    /// `PartialObjectMetadata`: nothing but their metadata.
    Metadata,
    /// A `Table` of `meta.k8s.io/v1`: what `kubectl get` prints.
    Table,
    /// `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`: only where resources are discovered.
    Discovery,
}

/// What is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    /// How it is written.
    pub encoding: Encoding,
    /// What it tells.
    pub form: Form,
}

impl Accept {
    /// The first of the wanted forms that is served; nothing if none of them is. An absent header wants JSON.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let Some(wanted) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else {
            return Some(Self::default());
        };
        wanted.split(',').find_map(one)
    }
}

fn one(wanted: &str) -> Option<Accept> {
    let mut parts = wanted.split(';').map(str::trim);
    let encoding = match parts.next()? {
        "application/json" | "application/*" | "*/*" | "" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        _ => return None,
    };
    let parameter = |name: &str| {
        let found = wanted.split(';').filter_map(|part| part.trim().split_once('='));
        found.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
    };
    let form = match (parameter("as"), parameter("g"), parameter("v")) {
        (None, ..) => Form::Object,
        (Some("Table"), Some("meta.k8s.io"), Some("v1")) => Form::Table,
        (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("meta.k8s.io"), Some("v1")) => {
            Form::Metadata
        }
        (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) => Form::Discovery,
        _ => return None,
    };
    Some(Accept { encoding, form })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Accept> {
        Accept::read(&HeaderMap::from_iter([(ACCEPT, text.parse().unwrap())]))
    }

    #[test]
    fn takes_the_first_that_is_served() {
        let form = |text| read(text).map(|accept| accept.form);
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(form(kubectl), Some(Form::Table));
        assert_eq!(
            form("application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json"),
            Some(Form::Object)
        );
        let discovery =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(form(discovery), Some(Form::Discovery));
        assert_eq!(form("application/vnd.kubernetes.protobuf, */*"), Some(Form::Object));
        assert_eq!(form("application/vnd.kubernetes.protobuf"), None);
        assert_eq!(read("application/yaml").map(|accept| accept.encoding), Some(Encoding::Yaml));
    }
}
