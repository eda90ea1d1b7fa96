//! Environment variables of containers, and their expansion (`makeEnvironmentVariables`,
//! `third_party/forked/golang/expansion`).

use std::collections::BTreeMap;

use evictlab_rules::pod::{Pod, ResourceRequirements};
use evictlab_rules::quantity::Quantity;
use serde_json::Value;

use super::spec::{Container, Manifest};
use crate::resource::{Kind, ObjectExt};
use crate::storage::Store;

/// Objects that variables refer to.
pub(super) struct Sources<'a> {
    pub object: &'a Value,
    pub manifest: &'a Manifest,
    pub ip: &'a str,
    pub host: &'a str,
    pub node: &'a str,
    pub allocatable: &'a Value,
    pub store: &'a Store,
}

/// Reference to a missing object (`CreateContainerConfigError`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing(pub String);

impl Sources<'_> {
    /// Returns the environment variables of a container.
    pub fn variables(&self, container: &Container) -> Result<BTreeMap<String, String>, Missing> {
        let mut variables = BTreeMap::from([("HOSTNAME".to_owned(), self.manifest.name.clone())]);
        for from in &container.env_from {
            let prefix = from.text("prefix");
            let Some(name) = from["configMapRef"]["name"].as_str() else { continue };
            let optional = from["configMapRef"]["optional"] == true;
            match self.store.get(Kind::ConfigMap, &self.manifest.namespace, name) {
                Some(map) => {
                    for (key, value) in map["data"].as_object().into_iter().flatten() {
                        let value = value.as_str().unwrap_or_default();
                        variables.insert(format!("{prefix}{key}"), value.to_owned());
                    }
                }
                None if optional => {}
                None => return Err(Missing(format!("configmap {name:?} not found"))),
            }
        }
        for env in &container.env {
            let value = if env.value_from.is_null() {
                Some(expand(&env.value, &variables))
            } else {
                self.value_from(&env.value_from, container)?
            };
            if let Some(value) = value {
                variables.insert(env.name.clone(), value);
            }
        }
        Ok(variables)
    }

    fn value_from(&self, from: &Value, container: &Container) -> Result<Option<String>, Missing> {
        if let Some(path) = from["fieldRef"]["fieldPath"].as_str() {
            return Ok(Some(self.field(path)));
        }
        if let Some(resource) = from["resourceFieldRef"]["resource"].as_str() {
            let of = from["resourceFieldRef"]["containerName"].as_str().unwrap_or(&container.name);
            let divisor = from["resourceFieldRef"]["divisor"].as_str().and_then(|text| text.parse().ok());
            return Ok(Some(self.resource(resource, of, divisor)));
        }
        let reference = &from["configMapKeyRef"];
        let (Some(name), Some(key)) = (reference["name"].as_str(), reference["key"].as_str()) else {
            return Ok(None);
        };
        let optional = reference["optional"] == true;
        let map = self.store.get(Kind::ConfigMap, &self.manifest.namespace, name);
        match map.map(|map| map["data"][key].as_str()) {
            Some(Some(value)) => Ok(Some(value.to_owned())),
            _ if optional => Ok(None),
            Some(None) => Err(Missing(format!(
                "couldn't find key {key} in ConfigMap {}/{name}",
                self.manifest.namespace
            ))),
            None => Err(Missing(format!("configmap {name:?} not found"))),
        }
    }

    fn field(&self, path: &str) -> String {
        let subscript = |prefix: &str| path.strip_prefix(prefix)?.strip_suffix("']");
        for (prefix, list) in [("metadata.labels['", "labels"), ("metadata.annotations['", "annotations")] {
            if let Some(key) = subscript(prefix) {
                return self.object["metadata"][list][key].as_str().unwrap_or_default().to_owned();
            }
        }
        match path {
            "metadata.name" => self.manifest.name.clone(),
            "metadata.namespace" => self.manifest.namespace.clone(),
            "metadata.uid" => self.manifest.uid.clone(),
            "spec.nodeName" => self.node.to_owned(),
            "spec.serviceAccountName" => self.manifest.spec.service_account_name.clone(),
            "status.hostIP" | "status.hostIPs" => self.host.to_owned(),
            "status.podIP" | "status.podIPs" => self.ip.to_owned(),
            _ => String::new(),
        }
    }

    /// Returns a request or limit in units of the divisor, rounded up. Without a limit, returns the
    /// allocatable amount of the node.
    fn resource(&self, path: &str, container: &str, divisor: Option<Quantity>) -> String {
        let resources = resources(&self.manifest.pod, container);
        let (kind, name) = path.split_once('.').unwrap_or((path, ""));
        let stated = match (kind, resources) {
            ("limits", Some(resources)) => resources.limits.get(name),
            (_, Some(resources)) => resources.requests.get(name).or_else(|| resources.limits.get(name)),
            (_, None) => None,
        };
        let quantity = stated
            .cloned()
            .or_else(|| if kind == "limits" { self.allocatable[name].as_str()?.parse().ok() } else { None });
        let value = quantity.map_or(0, |quantity| quantity.value());
        let divisor = divisor.map_or(1, |divisor| divisor.value()).max(1);
        // Rounded up, as in the kubelet's converters.
        ((value + divisor - 1) / divisor).to_string()
    }
}

fn resources<'a>(pod: &'a Pod, container: &str) -> Option<&'a ResourceRequirements> {
    let spec = &pod.spec;
    let mut all = spec.containers.iter().chain(&spec.init_containers).chain(&spec.ephemeral_containers);
    all.find(|of| of.name == container).map(|of| &of.resources)
}

/// Replaces `$(NAME)` with the value of the variable and `$$` with a dollar sign; references to
/// unknown variables are kept.
pub(super) fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded += &rest[..at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            match variables.get(name) {
                Some(value) => expanded += value,
                None => expanded += &format!("$({name})"),
            }
            rest = after;
        } else {
            expanded.push('$');
        }
    }
    expanded + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_as_kubernetes_does() {
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        for (text, expanded) in
            [("x$(A)y", "x1y"), ("$$(A)", "$(A)"), ("$(B)", "$(B)"), ("$A $", "$A $"), ("$(A", "$(A")]
        {
            assert_eq!(expand(text, &variables), expanded, "{text}");
        }
    }
}
