//! Lists of objects, as the API server returns them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde::{Deserialize, Deserializer};

/// A list of objects, or one page of it. Unlike kube's type of this name, it does not hold a copy
/// of the text while the items are decoded.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub struct ObjectList<T> {
    #[serde(default)]
    metadata: ListMeta,
    /// The objects.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub items: Vec<T>,
}

impl<T> ObjectList<T> {
    /// Returns the token for the next page; `None` if the list is complete.
    pub fn next_page(&self) -> Option<&str> {
        self.metadata.continue_.as_deref().filter(|token| !token.is_empty())
    }
}

/// The API server writes an empty list of some kinds as `null`.
fn null_is_empty<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_with_a_token_is_not_the_last_one() {
        let rows = [
            (r#"{"metadata": {"continue": "more"}, "items": [1, 2]}"#, 2, Some("more")),
            (r#"{"metadata": {"continue": ""}, "items": [1]}"#, 1, None),
            (r#"{"metadata": {}, "items": null}"#, 0, None),
            (r#"{"kind": "PodList"}"#, 0, None),
        ];
        for (text, items, next_page) in rows {
            let list: ObjectList<u8> = serde_json::from_str(text).unwrap();
            assert_eq!((list.items.len(), list.next_page()), (items, next_page), "{text}");
        }
    }
}
