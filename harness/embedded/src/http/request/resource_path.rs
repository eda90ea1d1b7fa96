//! Paths of resources, parsed as by the API server's `RequestInfo`.

use percent_encoding::percent_decode_str;

/// A path below `/api` or `/apis` that names a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    /// API group; empty for the core group.
    pub(crate) group: String,
    /// API version.
    pub(crate) version: String,
    /// Namespace; `None` for all namespaces and for cluster-scoped resources.
    pub(crate) namespace: Option<String>,
    /// Plural name of the resource, such as `pods`.
    pub(crate) resource: String,
    /// Name of the object.
    pub(crate) name: Option<String>,
    /// Subresource such as `status`.
    pub(crate) subresource: Option<String>,
    /// Remaining path after the subresource, without a leading slash.
    pub(crate) subpath: String,
}

impl ResourcePath {
    /// Parses a path; `None` if it does not name a resource.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let mut parts = path.trim_matches('/').split('/').map(decode);
        let group = match parts.next()?.as_str() {
            "api" => String::new(),
            "apis" => parts.next()?,
            _ => return None,
        };
        let version = parts.next()?;
        let mut parts: Vec<String> = parts.collect();
        let mut namespace = None;
        // `namespaces/a/pods` names pods, but `namespaces/a/status` names a namespace.
        if parts.len() > 2 && parts[0] == "namespaces" && !["status", "finalize"].contains(&parts[2].as_str())
        {
            namespace = Some(parts[1].clone());
            parts.drain(..2);
        }
        let mut parts = parts.into_iter();
        Some(Self {
            group,
            version,
            namespace,
            resource: parts.next().filter(|resource| !resource.is_empty())?,
            name: parts.next().filter(|name| !name.is_empty()),
            subresource: parts.next(),
            subpath: parts.collect::<Vec<_>>().join("/"),
        })
    }

    /// Returns the resource with its group, such as `deployments.apps`.
    pub(crate) fn qualified_resource(&self) -> String {
        match self.group.as_str() {
            "" => self.resource.clone(),
            group => format!("{}.{group}", self.resource),
        }
    }

    /// Returns the namespace; empty for none.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// Returns the name; empty for none.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

/// Decodes the percent-encoding of a part of a path.
fn decode(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> (String, String, String, String, String) {
        let path = ResourcePath::parse(path).unwrap();
        let subresource = path.subresource.clone().unwrap_or_default();
        (path.namespace().into(), path.resource.clone(), path.name().into(), subresource, path.subpath)
    }

    #[test]
    fn parses_paths_as_request_info() {
        let read = |path| {
            let (namespace, resource, name, subresource, subpath) = read(path);
            [namespace, resource, name, subresource, subpath].join("|")
        };
        assert_eq!(read("/api/v1/pods"), "|pods|||");
        assert_eq!(read("/api/v1/namespaces"), "|namespaces|||");
        assert_eq!(read("/api/v1/namespaces/a"), "|namespaces|a||");
        assert_eq!(read("/api/v1/namespaces/a/finalize"), "|namespaces|a|finalize|");
        assert_eq!(read("/api/v1/namespaces/a/pods/p%2Fq/log"), "a|pods|p/q|log|");
        assert_eq!(read("/api/v1/nodes/a=b"), "|nodes|a=b||");
        assert_eq!(read("/api/v1/nodes/x&y+z"), "|nodes|x&y+z||");
        assert_eq!(read("/api/v1/nodes/n/proxy/stats/summary"), "|nodes|n|proxy|stats/summary");
        assert_eq!(read("/apis/policy/v1/poddisruptionbudgets/"), "|poddisruptionbudgets|||");
        assert_eq!(ResourcePath::parse("/apis/policy/v1"), None);
        assert_eq!(ResourcePath::parse("/metrics"), None);
    }
}
