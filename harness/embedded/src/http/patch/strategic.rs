//! Strategic merge patches, as `apimachinery/pkg/util/strategicpatch` applies them.

use serde_json::{Map, Value};

use super::strategy::{self, ListStrategy};
use crate::apiserver::Status;
use crate::resource::Kind;

const PATCH_DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";

type Fields = Map<String, Value>;

/// Applies a strategic merge patch to an object.
///
/// # Errors
/// 400 for an invalid patch.
pub(crate) fn strategic_merge_patch(kind: Kind, current: &Value, patch: Value) -> Result<Value, Status> {
    let (Value::Object(current), Value::Object(patch)) = (current.clone(), patch) else {
        return Err(invalid("invalid JSON document"));
    };
    Merger { kind, path: Vec::new() }.merge_object(current, patch).map(Value::Object)
}

/// A merge in progress.
struct Merger {
    kind: Kind,
    /// Field names from the root to the current value; list items add nothing.
    path: Vec<String>,
}

impl Merger {
    fn merge_object(&mut self, mut current: Fields, mut patch: Fields) -> Result<Fields, Status> {
        match patch.shift_remove(PATCH_DIRECTIVE) {
            None => {}
            Some(Value::String(directive)) if directive == "replace" => return Ok(patch),
            Some(Value::String(directive)) if directive == "delete" => return Ok(Map::new()),
            Some(Value::String(directive)) if directive == "merge" => {}
            Some(other) => return Err(invalid(format!("unknown patch type: {other}"))),
        }
        retain_keys(&mut current, &mut patch)?;
        // An element order may come with or without its list.
        let orders: Vec<String> =
            patch.keys().filter_map(|key| key.strip_prefix(ELEMENT_ORDER)).map(str::to_owned).collect();
        for field in orders {
            self.merge_ordered_list(field, &mut current, &mut patch)?;
        }
        for (key, value) in patch {
            if let Some(field) = key.strip_prefix(DELETE_FROM_LIST) {
                if let (Some(Value::Array(items)), Value::Array(deleted)) = (current.get_mut(field), &value) {
                    items.retain(|item| !deleted.contains(item));
                }
                continue;
            }
            self.merge_field(key, value, &mut current)?;
        }
        Ok(current)
    }

    /// Merges a list that has an element order, and removes both from the patch.
    fn merge_ordered_list(
        &mut self,
        field: String,
        current: &mut Fields,
        patch: &mut Fields,
    ) -> Result<(), Status> {
        let key = format!("{ELEMENT_ORDER}{field}");
        let Some(Value::Array(order)) = patch.shift_remove(&key) else {
            return Err(invalid(format!("{key} is not a list")));
        };
        let changes = match patch.shift_remove(&field) {
            None => None,
            Some(Value::Array(items)) => Some(items),
            // The order of a deleted list is ignored.
            Some(other) => {
                patch.insert(field, other);
                return Ok(());
            }
        };
        let old = match current.get(&field) {
            Some(Value::Array(items)) => items.clone(),
            _ => Vec::new(),
        };
        if old.is_empty() && changes.is_none() {
            return Ok(());
        }
        self.path.push(field.clone());
        let strategy = self.list_strategy();
        let merged = match changes {
            Some(changes) => self.merge_list(old.clone(), changes)?,
            None => old.clone(),
        };
        self.path.pop();
        let sorted = sort_by_order(merged, &order, &old, |item, entry| is_same(strategy, item, entry));
        current.insert(field, Value::Array(sorted));
        Ok(())
    }

    fn merge_field(&mut self, key: String, value: Value, current: &mut Fields) -> Result<(), Status> {
        if value.is_null() {
            current.shift_remove(&key);
            return Ok(());
        }
        self.path.push(key.clone());
        let old = current.get_mut(&key).map(Value::take).unwrap_or_default();
        let new = match (old, value) {
            (Value::Object(_), Value::Object(value))
                if strategy::replaces_object(self.kind, &self.field_names()) =>
            {
                without_directives(Value::Object(value))
            }
            (Value::Object(old), Value::Object(value)) => Some(Value::Object(self.merge_object(old, value)?)),
            (Value::Array(old), Value::Array(value)) => Some(Value::Array(self.merge_list(old, value)?)),
            (_, value) => without_directives(value),
        };
        self.path.pop();
        match new {
            Some(new) => current.insert(key, new),
            None => current.shift_remove(&key),
        };
        Ok(())
    }

    fn merge_list(&mut self, old: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, Status> {
        let strategy = self.list_strategy();
        let key = match strategy {
            ListStrategy::Replace => return Ok(patch.into_iter().filter_map(without_directives).collect()),
            ListStrategy::MergeValues => {
                let mut all = old.clone();
                for item in &patch {
                    if !all.contains(item) {
                        all.push(item.clone());
                    }
                }
                return Ok(sort_by_order(all, &patch, &old, |item, entry| item == entry));
            }
            ListStrategy::MergeBy(key) => key,
        };
        let mut merged = old;
        let mut changes = Vec::new();
        let mut replaces = false;
        for item in patch {
            match item[PATCH_DIRECTIVE].as_str() {
                None => changes.push(item),
                Some("replace") => replaces = true,
                Some("delete") => {
                    let deleted = merge_key(&item, key)?;
                    merged.retain(|item| item.get(key) != Some(deleted));
                }
                Some(other) => return Err(invalid(format!("unknown patch type: {other}"))),
            }
        }
        if replaces {
            return Ok(changes.into_iter().filter_map(without_directives).collect());
        }
        let (server_order, patch_order) = (merged.clone(), changes.clone());
        for item in changes {
            let name = merge_key(&item, key)?;
            let position = merged.iter().position(|other| other.get(key) == Some(name));
            match (position, item) {
                (Some(position), Value::Object(item)) => {
                    if let Value::Object(old) = merged[position].take() {
                        merged[position] = Value::Object(self.merge_object(old, item)?);
                    }
                }
                (_, item) => merged.extend(without_directives(item)),
            }
        }
        Ok(sort_by_order(merged, &patch_order, &server_order, |item, entry| is_same(strategy, item, entry)))
    }

    fn list_strategy(&self) -> ListStrategy {
        strategy::list_strategy(self.kind, &self.field_names())
    }

    fn field_names(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }
}

/// Applies `$retainKeys`: removes all other fields.
fn retain_keys(current: &mut Fields, patch: &mut Fields) -> Result<(), Status> {
    const ERROR: &str = "invalid patch format of retainKeys";
    let Some(retained) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(retained) = retained else { return Err(invalid(ERROR)) };
    let is_retained = |key: &String| retained.iter().any(|retained| retained == key.as_str());
    if patch.iter().any(|(key, value)| !value.is_null() && !key.starts_with('$') && !is_retained(key)) {
        return Err(invalid(ERROR));
    }
    current.retain(|key, _| is_retained(key));
    Ok(())
}

/// Sorts the items of a merged list (`normalizeElementOrder` of `strategicpatch/patch.go`): items
/// of the patch in the order of the patch, and items of the server between them, in the order of
/// the server.
///
/// `is_same` compares an item with an entry of an order.
fn sort_by_order(
    items: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    is_same: impl Fn(&Value, &Value) -> bool,
) -> Vec<Value> {
    let position = |order: &[Value], item: &Value| order.iter().position(|entry| is_same(item, entry));
    let (mut patched, mut others): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| position(patch_order, item).is_some());
    patched.sort_by_key(|item| position(patch_order, item));
    others.sort_by_key(|item| position(server_order, item).unwrap_or(usize::MAX));
    let mut sorted = Vec::with_capacity(patched.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in patched {
        let is_before = |other: &Value| match (position(server_order, other), position(server_order, &item)) {
            (Some(other), Some(item)) => other < item,
            _ => false,
        };
        while let Some(other) = others.next_if(is_before) {
            sorted.push(other);
        }
        sorted.push(item);
    }
    sorted.extend(others);
    sorted
}

/// Returns whether an item of a list corresponds to an entry of an element order.
fn is_same(strategy: ListStrategy, item: &Value, entry: &Value) -> bool {
    match strategy {
        ListStrategy::MergeBy(key) => item.get(key).is_some() && item.get(key) == entry.get(key),
        ListStrategy::MergeValues | ListStrategy::Replace => item == entry,
    }
}

/// Returns the value that a patch inserts where there was none: without directives and nulls;
/// `None` for a deletion.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(fields) => {
            if fields.get(PATCH_DIRECTIVE).is_some_and(|directive| directive == "delete") {
                return None;
            }
            let is_field = |key: &str| {
                key != PATCH_DIRECTIVE
                    && key != RETAIN_KEYS
                    && !key.starts_with(ELEMENT_ORDER)
                    && !key.starts_with(DELETE_FROM_LIST)
            };
            let fields = fields.into_iter().filter(|(key, _)| is_field(key));
            let fields = fields.filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(fields.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        value => Some(value),
    }
}

fn merge_key<'a>(item: &'a Value, key: &str) -> Result<&'a Value, Status> {
    item.get(key).ok_or_else(|| invalid(format!("map: {item} does not contain declared merge key: {key}")))
}

fn invalid(error: impl Into<String>) -> Status {
    Status::bad_request(error)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(current: Value, patch: Value) -> Value {
        strategic_merge_patch(Kind::Pod, &current, patch).unwrap()
    }

    fn names(list: &Value) -> Vec<&str> {
        list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
    }

    #[test]
    fn merges_containers_by_name_in_the_order_of_the_patch() {
        let current = json!({"spec": {"containers": [
            {"name": "a", "image": "x", "env": [{"name": "K", "value": "1"}], "args": ["1", "2"]},
            {"name": "b", "image": "y"},
        ]}});
        let patch = json!({"spec": {"containers": [
            {"name": "c", "image": "z"},
            {"name": "a", "env": [{"name": "L", "value": "2"}], "args": ["3"]},
        ]}});
        let new = pod(current, patch);
        assert_eq!(names(&new["spec"]["containers"]), ["c", "a", "b"]);
        let a = &new["spec"]["containers"][1];
        assert_eq!((names(&a["env"]), &a["args"], &a["image"]), (vec!["L", "K"], &json!(["3"]), &json!("x")));
    }

    #[test]
    fn applies_the_element_order() {
        let current = json!({"spec": {"ephemeralContainers": [{"name": "old", "image": "i"}]}});
        let patch = json!({"spec": {
            "$setElementOrder/ephemeralContainers": [{"name": "old"}, {"name": "new"}],
            "ephemeralContainers": [{"name": "new", "image": "j"}],
        }});
        assert_eq!(names(&pod(current.clone(), patch)["spec"]["ephemeralContainers"]), ["old", "new"]);
        let only_order = json!({"spec": {"$setElementOrder/ephemeralContainers": [{"name": "old"}]}});
        assert_eq!(pod(current.clone(), only_order), current);
    }

    #[test]
    fn applies_delete_replace_and_retain_directives() {
        let current = json!({
            "metadata": {"finalizers": ["a", "b"], "labels": {"x": "1", "y": "2"}},
            "spec": {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
                "tolerations": [{"key": "a"}, {"key": "b"}],
                "nodeSelector": {"a": "b"},
            },
        });
        let patch = json!({
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "labels": {"x": null, "z": "3"}},
            "spec": {
                "volumes": [
                    {"name": "w", "$patch": "delete"},
                    {"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "m"}},
                ],
                "tolerations": [{"key": "c"}],
                "nodeSelector": {"$patch": "replace", "c": "d"},
                "affinity": {"nodeAffinity": null},
            },
        });
        assert_eq!(
            pod(current, patch),
            json!({
                "metadata": {"finalizers": ["b"], "labels": {"y": "2", "z": "3"}},
                "spec": {
                    "volumes": [{"name": "v", "configMap": {"name": "m"}}],
                    "tolerations": [{"key": "c"}],
                    "nodeSelector": {"c": "d"},
                    "affinity": {},
                },
            })
        );
        let current = json!({"spec": {"containers": [{"name": "a"}], "imagePullSecrets": [{"name": "s"}]}});
        let patch =
            json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "b"}], "imagePullSecrets": null}});
        assert_eq!(pod(current, patch), json!({"spec": {"containers": [{"name": "b"}]}}));
    }

    #[test]
    fn merges_lists_by_the_strategy_of_the_kind() {
        let node = json!({"spec": {"taints": [{"key": "a"}]}, "status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "R"}, {"type": "DiskPressure", "status": "False"},
        ]}});
        let patch = json!({
            "spec": {"taints": [{"key": "b"}]},
            "status": {"conditions": [{"type": "DiskPressure", "status": "True"}], "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "DiskPressure"}]},
        });
        let new = strategic_merge_patch(Kind::Node, &node, patch).unwrap();
        assert_eq!(new["spec"]["taints"], json!([{"key": "b"}]));
        assert_eq!(
            new["status"]["conditions"],
            json!([
                {"type": "Ready", "status": "True", "reason": "R"}, {"type": "DiskPressure", "status": "True"},
            ])
        );
        let budget = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}});
        let patch = json!({"spec": {"selector": {"matchLabels": {"c": "d"}}}});
        assert_eq!(strategic_merge_patch(Kind::PodDisruptionBudget, &budget, patch.clone()), Ok(patch));
        let map = json!({"data": {"a": "b"}});
        let patch = json!({"data": {"c": "d"}, "metadata": {"finalizers": ["f"]}});
        assert_eq!(
            strategic_merge_patch(Kind::ConfigMap, &map, patch),
            Ok(json!({"data": {"a": "b", "c": "d"}, "metadata": {"finalizers": ["f"]}}))
        );
    }

    #[test]
    fn rejects_invalid_patches() {
        let current = json!({"spec": {"containers": [{"name": "a"}]}});
        for patch in [
            json!({"spec": {"containers": [{"image": "x"}]}}),
            json!({"spec": {"containers": [{"$patch": "delete"}]}}),
            json!({"spec": {"$patch": "clear"}}),
            json!({"spec": {"$retainKeys": ["a"], "b": 1}}),
        ] {
            assert!(strategic_merge_patch(Kind::Pod, &current, patch.clone()).is_err(), "{patch}");
        }
    }
}
