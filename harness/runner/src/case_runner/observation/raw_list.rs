//! Lists of objects as the API server returned them: with the fields that the types of this program
//! do not have.

use evictlab_cluster::without_managed_fields;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::api::ListParams;
use kube::core::Request;
use kube::{Client, Error, Resource};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Maximum number of objects of a list.
const MAX_LISTED: u32 = 10_000;

/// A list of objects.
pub(crate) struct RawList {
    /// The objects.
    pub items: Vec<Box<RawValue>>,
    /// False if there are more objects.
    pub is_complete: bool,
}

impl RawList {
    /// Lists the objects of a kind in a namespace.
    ///
    /// # Errors
    /// The API server does not answer, refuses the request, or answers with something else.
    pub(crate) async fn read<K: Resource<DynamicType = ()>>(
        client: &Client,
        namespace: &str,
        filter: &ListParams,
    ) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct List {
            #[serde(default)]
            metadata: ListMeta,
            items: Option<Vec<Box<RawValue>>>,
        }
        let filter = filter.clone().limit(MAX_LISTED);
        let request = Request::new(K::url_path(&(), Some(namespace))).list(&filter);
        let list: List = client.request(request.map_err(Error::BuildRequest)?).await?;
        let is_complete = list.metadata.continue_.is_none_or(|token| token.is_empty());
        Ok(Self { items: list.items.unwrap_or_default(), is_complete })
    }

    /// Describes why a list is not complete.
    pub(crate) fn describe_cut() -> String {
        format!("the list was cut after {MAX_LISTED}")
    }
}

/// Returns a core/v1 object in the form in which it is recorded: it begins with `apiVersion` and
/// `kind`, which the API server omits in the items of a list, and does not have `managedFields`.
pub(crate) fn recorded_form(object: Value, kind: &str) -> Value {
    let mut object = without_managed_fields(object);
    if let Some(fields) = object.as_object_mut() {
        fields.shift_insert(0, "kind".to_owned(), json!(kind));
        fields.shift_insert(0, "apiVersion".to_owned(), json!("v1"));
    }
    object
}

/// Removes the fields that are null. They mean the same as missing ones, and expressions tell them
/// apart.
pub(crate) fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_begins_with_its_type() {
        let listed = json!({"metadata": {"managedFields": [], "name": "a"}, "spec": {}});
        let watched = json!({"metadata": {"name": "a"}, "kind": "Pod", "spec": {}, "apiVersion": "v1"});
        let expected = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{}}"#;
        for object in [listed, watched] {
            assert_eq!(recorded_form(object, "Pod").to_string(), expected);
        }
    }

    #[test]
    fn removes_nulls_of_objects() {
        let mut value = json!({"a": null, "b": [{"c": null, "d": 1}, null], "e": {}});
        without_nulls(&mut value);
        assert_eq!(value, json!({"b": [{"d": 1}, null], "e": {}}));
    }
}
