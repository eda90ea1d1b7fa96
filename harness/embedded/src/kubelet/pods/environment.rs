//! Environment variables of containers, and their expansion (`makeEnvironmentVariables`,
//! `third_party/forked/golang/expansion`). Of `valueFrom`, only the field `spec.nodeName` is
//! implemented, which kube-proxy uses; of `envFrom`, ConfigMaps.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::EnvVarSource;

use super::spec::{Container, Manifest};
use crate::resource::Kind;
use crate::storage::Store;

/// Returns the environment variables of a container.
///
/// # Errors
/// A ConfigMap is missing (`CreateContainerConfigError`).
pub(super) fn variables(
    manifest: &Manifest,
    container: &Container,
    node: &str,
    store: &Store,
) -> Result<BTreeMap<String, String>, String> {
    let mut variables = BTreeMap::from([("HOSTNAME".to_owned(), manifest.name.clone())]);
    for from in &container.env_from {
        let Some(reference) = &from.config_map_ref else { continue };
        let prefix = from.prefix.as_deref().unwrap_or_default();
        match store.get(Kind::ConfigMap, &manifest.namespace, &reference.name) {
            Some(map) => {
                for (key, value) in map["data"].as_object().into_iter().flatten() {
                    variables.insert(format!("{prefix}{key}"), value.as_str().unwrap_or_default().to_owned());
                }
            }
            None if reference.optional == Some(true) => {}
            None => return Err(format!("configmap {:?} not found", reference.name)),
        }
    }
    for env in &container.env {
        let field = |source: &EnvVarSource| source.field_ref.as_ref().map(|field| field.field_path.clone());
        let value = match env.value_from.as_ref().map(field) {
            Some(Some(field)) if field == "spec.nodeName" => node.to_owned(),
            Some(_) => "valueFrom is not supported by this model".to_owned(),
            None => expand(env.value.as_deref().unwrap_or_default(), &variables),
        };
        variables.insert(env.name.clone(), value);
    }
    Ok(variables)
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
