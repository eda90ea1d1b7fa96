//! Past states of objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::change::Change;
use super::store::{ResourceExpired, Store};
use crate::resource::{Kind, ObjectExt};

impl Store {
    /// Lists the objects of a kind at a version, in one namespace or in all, by namespace and name.
    pub fn list_at(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        version: u64,
    ) -> Result<Vec<Arc<Value>>, ResourceExpired> {
        let later: Vec<&Change> = self.since(version)?.filter(|change| change.kind == kind).collect();
        let mut all: BTreeMap<_, _> =
            self.list(kind, namespace).map(|object| (key(object), object.clone())).collect();
        let here = |change: &&&Change| namespace.is_none_or(|namespace| key(&change.object).0 == namespace);
        for change in later.iter().rev().filter(here) {
            match &change.before {
                Some(before) => all.insert(key(before), before.clone()),
                None => all.remove(&key(&change.object)),
            };
        }
        Ok(all.into_values().collect())
    }
}

fn key(object: &Value) -> (String, String) {
    let text = |field: &str| object["metadata"].text(field).to_owned();
    (text("namespace"), text("name"))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::sim::{Epoch, Time};

    #[test]
    fn lists_objects_at_an_old_version() {
        let mut store = Store::new(1, Epoch(Timestamp::UNIX_EPOCH));
        let map = |name: &str| json!({"metadata": {"namespace": "n", "name": name}});
        for name in ["a", "b"] {
            store.create(Kind::ConfigMap, map(name), Time::ZERO).unwrap();
        }
        let then = store.version();
        store.update(Kind::ConfigMap, "n", "a", |map| map["data"] = json!({"x": "y"}));
        store.remove(Kind::ConfigMap, "n", "b");
        store.create(Kind::ConfigMap, map("c"), Time::ZERO).unwrap();
        store.create(Kind::Lease, map("d"), Time::ZERO).unwrap();
        let names = |version| {
            let all = store.list_at(Kind::ConfigMap, Some("n"), version).unwrap();
            all.iter()
                .map(|map| (map["metadata"]["name"].clone(), map["data"].is_object()))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(then), [(json!("a"), false), (json!("b"), false)]);
        assert_eq!(names(store.version()), [(json!("a"), true), (json!("c"), false)]);
        assert!(store.list_at(Kind::ConfigMap, Some("other"), then).unwrap().is_empty());
        store.forget_history();
        assert!(store.list_at(Kind::ConfigMap, None, then).is_err());
    }
}
