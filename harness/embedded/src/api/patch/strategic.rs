//! Strategic merge patches, as `apimachinery/pkg/util/strategicpatch` applies them. No library does.

use serde_json::{Map, Value};

use super::order::ordered;
use super::strategy::{self, Strategy};
use crate::registry::Status;
use crate::store::Kind;

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// What an object becomes by a patch.
pub fn strategic(kind: Kind, current: &Value, patch: Value) -> Result<Value, Status> {
    let (Value::Object(current), Value::Object(patch)) = (current.clone(), patch) else {
        return Err(bad("invalid JSON document"));
    };
    object(kind, &mut Vec::new(), current, patch).map(Value::Object)
}

fn object(
    kind: Kind,
    path: &mut Vec<String>,
    mut current: Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Result<Map<String, Value>, Status> {
    match patch.shift_remove(DIRECTIVE) {
        None => {}
        Some(Value::String(what)) if what == "replace" => return Ok(patch),
        Some(Value::String(what)) if what == "delete" => return Ok(Map::new()),
        Some(Value::String(what)) if what == "merge" => {}
        Some(other) => return Err(bad(format!("unknown patch type: {other}"))),
    }
    retain(&mut current, &mut patch)?;
    // Orders come with the lists that they are about, or alone.
    let orders: Vec<String> = patch.keys().filter(|key| key.starts_with(ORDER)).cloned().collect();
    for key in orders {
        let Some(Value::Array(order)) = patch.shift_remove(&key) else {
            return Err(bad(format!("{key} is no list")));
        };
        let field = &key[ORDER.len()..];
        let changed = match patch.shift_remove(field) {
            None => None,
            Some(Value::Array(items)) => Some(items),
            // A list that is removed has no order.
            Some(other) => {
                patch.insert(field.to_owned(), other);
                continue;
            }
        };
        let old = match current.get(field) {
            Some(Value::Array(items)) => items.clone(),
            _ => Vec::new(),
        };
        if old.is_empty() && changed.is_none() {
            continue;
        }
        path.push(field.to_owned());
        let how = at(kind, path);
        let merged = match changed {
            Some(items) => list(kind, path, old.clone(), items)?,
            None => old.clone(),
        };
        path.pop();
        current.insert(field.to_owned(), Value::Array(ordered(merged, &order, &old, |a, b| same(how, a, b))));
    }
    for (key, value) in patch {
        if let Some(field) = key.strip_prefix(DELETE) {
            if let (Some(Value::Array(items)), Value::Array(gone)) = (current.get_mut(field), &value) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if value.is_null() {
            current.shift_remove(&key);
            continue;
        }
        path.push(key.clone());
        let new = match (current.get_mut(&key).map(Value::take).unwrap_or_default(), value) {
            (Value::Object(old), Value::Object(value)) => {
                let names: Vec<&str> = path.iter().map(String::as_str).collect();
                if strategy::replaces_object(kind, &names) {
                    plain(Value::Object(value))
                } else {
                    Some(Value::Object(object(kind, path, old, value)?))
                }
            }
            (Value::Array(old), Value::Array(value)) => Some(Value::Array(list(kind, path, old, value)?)),
            (_, value) => plain(value),
        };
        path.pop();
        match new {
            Some(new) => current.insert(key, new),
            None => current.shift_remove(&key),
        };
    }
    Ok(current)
}

/// `$retainKeys`: all other fields go.
fn retain(current: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), Status> {
    let Some(retained) = patch.shift_remove(RETAIN) else { return Ok(()) };
    let Value::Array(retained) = retained else { return Err(bad_retain()) };
    let is_kept = |key: &String| retained.iter().any(|kept| kept == key.as_str());
    if patch.iter().any(|(key, value)| !value.is_null() && !key.starts_with('$') && !is_kept(key)) {
        return Err(bad_retain());
    }
    current.retain(|key, _| is_kept(key));
    Ok(())
}

fn list(
    kind: Kind,
    path: &mut Vec<String>,
    old: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>, Status> {
    let how = at(kind, path);
    let key = match how {
        Strategy::Replace => return Ok(patch.into_iter().filter_map(plain).collect()),
        Strategy::MergeValues => {
            let mut all = old.clone();
            for item in &patch {
                if !all.contains(item) {
                    all.push(item.clone());
                }
            }
            return Ok(ordered(all, &patch, &old, |a, b| a == b));
        }
        Strategy::MergeBy(key) => key,
    };
    let mut merged = old;
    let mut changes = Vec::new();
    let mut replace = false;
    for item in patch {
        match item[DIRECTIVE].as_str() {
            None => changes.push(item),
            Some("replace") => replace = true,
            Some("delete") => {
                let gone = item.get(key).ok_or_else(|| no_key(&item, key))?;
                merged.retain(|item| item.get(key) != Some(gone));
            }
            Some(other) => return Err(bad(format!("unknown patch type: {other}"))),
        }
    }
    if replace {
        return Ok(changes.into_iter().filter_map(plain).collect());
    }
    let server = merged.clone();
    let order = changes.clone();
    for item in changes {
        let name = item.get(key).ok_or_else(|| no_key(&item, key))?;
        let place = merged.iter().position(|other| other.get(key) == Some(name));
        match (place, item) {
            (Some(place), Value::Object(item)) => {
                if let Value::Object(old) = merged[place].take() {
                    merged[place] = Value::Object(object(kind, path, old, item)?);
                }
            }
            (_, item) => merged.extend(plain(item)),
        }
    }
    Ok(ordered(merged, &order, &server, |a, b| same(how, a, b)))
}

fn at(kind: Kind, path: &[String]) -> Strategy {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    strategy::list(kind, &names)
}

/// Whether an item of a list is the one that an entry of an order stands for.
fn same(how: Strategy, item: &Value, entry: &Value) -> bool {
    match how {
        Strategy::MergeBy(key) => item.get(key).is_some() && item.get(key) == entry.get(key),
        Strategy::MergeValues | Strategy::Replace => item == entry,
    }
}

/// What a patch puts where nothing was: itself without directives and nulls; nothing if it only deletes.
fn plain(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(fields) => {
            if fields.get(DIRECTIVE).is_some_and(|what| what == "delete") {
                return None;
            }
            let kept = fields.into_iter().filter(|(key, _)| {
                key != DIRECTIVE && key != RETAIN && !key.starts_with(ORDER) && !key.starts_with(DELETE)
            });
            Some(Value::Object(kept.filter_map(|(key, value)| Some((key, plain(value)?))).collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(plain).collect())),
        value => Some(value),
    }
}

fn no_key(item: &Value, key: &str) -> Status {
    bad(format!("map: {item} does not contain declared merge key: {key}"))
}

fn bad_retain() -> Status {
    bad("invalid patch format of retainKeys")
}

fn bad(problem: impl Into<String>) -> Status {
    Status::bad_request(problem)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(current: Value, patch: Value) -> Value {
        strategic(Kind::Pod, &current, patch).unwrap()
    }

    fn names(list: &Value) -> Vec<&str> {
        list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
    }

    #[test]
    fn merges_containers_by_name_and_puts_new_ones_first() {
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
    fn keeps_the_order_that_is_asked_for() {
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
    fn deletes_replaces_and_retains() {
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
    fn merges_what_the_kind_says() {
        let node = json!({"spec": {"taints": [{"key": "a"}]}, "status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "R"}, {"type": "DiskPressure", "status": "False"},
        ]}});
        let patch = json!({
            "spec": {"taints": [{"key": "b"}]},
            "status": {"conditions": [{"type": "DiskPressure", "status": "True"}], "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "DiskPressure"}]},
        });
        let new = strategic(Kind::Node, &node, patch).unwrap();
        assert_eq!(new["spec"]["taints"], json!([{"key": "b"}]));
        assert_eq!(
            new["status"]["conditions"],
            json!([
                {"type": "Ready", "status": "True", "reason": "R"}, {"type": "DiskPressure", "status": "True"},
            ])
        );
        let budget = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}});
        let patch = json!({"spec": {"selector": {"matchLabels": {"c": "d"}}}});
        assert_eq!(strategic(Kind::PodDisruptionBudget, &budget, patch.clone()), Ok(patch));
        let map = json!({"data": {"a": "b"}});
        let patch = json!({"data": {"c": "d"}, "metadata": {"finalizers": ["f"]}});
        assert_eq!(
            strategic(Kind::ConfigMap, &map, patch),
            Ok(json!({"data": {"a": "b", "c": "d"}, "metadata": {"finalizers": ["f"]}}))
        );
    }

    #[test]
    fn refuses_what_has_no_key() {
        let current = json!({"spec": {"containers": [{"name": "a"}]}});
        for patch in [
            json!({"spec": {"containers": [{"image": "x"}]}}),
            json!({"spec": {"containers": [{"$patch": "delete"}]}}),
            json!({"spec": {"$patch": "clear"}}),
            json!({"spec": {"$retainKeys": ["a"], "b": 1}}),
        ] {
            assert!(strategic(Kind::Pod, &current, patch.clone()).is_err(), "{patch}");
        }
    }
}
