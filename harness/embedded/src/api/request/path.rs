//! What a path asks for, as the API server's `RequestInfo` reads it.

/// A path below `/api` or `/apis` that names a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The API group; empty for the core.
    pub group: String,
    /// The version in the group.
    pub version: String,
    /// The namespace, or nothing for all or none of them.
    pub namespace: Option<String>,
    /// Such as `pods`.
    pub resource: String,
    /// The object's name.
    pub name: Option<String>,
    /// Such as `status`.
    pub subresource: Option<String>,
    /// What follows the subresource, without the slash before it.
    pub rest: String,
}

impl Target {
    /// Reads a path; nothing if it names no resource.
    pub fn read(path: &str) -> Option<Self> {
        let mut parts = path.trim_matches('/').split('/').map(decoded);
        let group = match parts.next()?.as_str() {
            "api" => String::new(),
            "apis" => parts.next()?,
            _ => return None,
        };
        let version = parts.next()?;
        let mut parts: Vec<String> = parts.collect();
        let mut namespace = None;
        // `namespaces/a/pods` is about pods, but `namespaces/a/status` about a namespace.
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
            rest: parts.collect::<Vec<_>>().join("/"),
        })
    }

    /// The resource with its group, such as `deployments.apps`.
    pub fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.resource.clone(),
            group => format!("{}.{group}", self.resource),
        }
    }

    /// The namespace, empty for none.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// The name, empty for none.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

/// A part of a path, with its `%2F` and the like read.
fn decoded(part: &str) -> String {
    // In a path a plus is a plus.
    let part = part.replace('+', "%2B");
    form_urlencoded::parse(part.as_bytes()).map(|(key, _)| key.into_owned()).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> (String, String, String, String, String) {
        let target = Target::read(path).unwrap();
        let subresource = target.subresource.clone().unwrap_or_default();
        (target.namespace().into(), target.resource.clone(), target.name().into(), subresource, target.rest)
    }

    #[test]
    fn reads_as_request_info_does() {
        let read = |path| {
            let (namespace, resource, name, subresource, rest) = read(path);
            [namespace, resource, name, subresource, rest].join("|")
        };
        assert_eq!(read("/api/v1/pods"), "|pods|||");
        assert_eq!(read("/api/v1/namespaces"), "|namespaces|||");
        assert_eq!(read("/api/v1/namespaces/a"), "|namespaces|a||");
        assert_eq!(read("/api/v1/namespaces/a/finalize"), "|namespaces|a|finalize|");
        assert_eq!(read("/api/v1/namespaces/a/pods/p%2Fq/log"), "a|pods|p/q|log|");
        assert_eq!(read("/api/v1/nodes/n/proxy/stats/summary"), "|nodes|n|proxy|stats/summary");
        assert_eq!(read("/apis/policy/v1/poddisruptionbudgets/"), "|poddisruptionbudgets|||");
        assert_eq!(Target::read("/apis/policy/v1"), None);
        assert_eq!(Target::read("/metrics"), None);
    }
}
