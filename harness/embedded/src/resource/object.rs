//! Typed reading of objects.
//!
//! Objects stay [`Value`]s, so that fields newer than k8s-openapi's types are kept. Other modules
//! read and write parts of objects as types by [`ObjectExt`].

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Fields of objects. A field that is missing or has another type is empty.
pub(crate) trait ObjectExt {
    /// Returns a string field.
    fn text(&self, field: &str) -> &str;
    /// Returns a string field, or the default if it is missing or empty.
    fn text_or<'a>(&'a self, field: &str, default: &'a str) -> &'a str;
    /// Returns an integer field; 0 if it is missing.
    fn integer(&self, field: &str) -> i64;
    /// Reads a field as a type. A field that is missing or has another type is the default: the API
    /// server has checked the types.
    fn read<T: DeserializeOwned + Default>(&self, field: &str) -> T;
    /// Sets a field to a typed value.
    fn write(&mut self, field: &str, value: impl Serialize);
    /// Reads a field as a type, changes it and writes it.
    fn change<T: DeserializeOwned + Default + Serialize>(&mut self, field: &str, by: impl FnOnce(&mut T));
    /// Returns the items of a list.
    fn items(&self, list: &str) -> std::slice::Iter<'_, Value>;
    /// Returns mutable items of a list.
    fn items_mut(&mut self, list: &str) -> std::slice::IterMut<'_, Value>;
    /// Appends an item to a list, which may be missing.
    fn push(&mut self, list: &str, item: Value);
    /// Removes a field.
    fn remove(&mut self, field: &str);
    /// Sets a field that is missing or an empty string.
    fn set_default(&mut self, field: &str, value: Value);
    /// Sets a field, or removes it if there is no value.
    fn set_or_remove(&mut self, field: &str, value: Option<&Value>);

    /// Returns `metadata`.
    fn metadata(&self) -> &Value;
    /// Returns `metadata` for changes.
    fn metadata_mut(&mut self) -> &mut Value;
    /// Returns `spec`.
    fn spec(&self) -> &Value;
    /// Returns `spec` for changes.
    fn spec_mut(&mut self) -> &mut Value;
    /// Returns `status`.
    fn status(&self) -> &Value;
    /// Returns `status` for changes.
    fn status_mut(&mut self) -> &mut Value;

    /// Returns `metadata.name`.
    fn name(&self) -> &str;
    /// Returns `metadata.namespace`.
    fn namespace(&self) -> &str;
    /// Returns `metadata.uid`.
    fn uid(&self) -> &str;
    /// Returns `metadata.resourceVersion`.
    fn resource_version(&self) -> &str;
    /// Returns `metadata.labels`.
    fn labels(&self) -> &Value;
    /// Returns an annotation.
    fn annotation(&self, key: &str) -> Option<&str>;
    /// Sets an annotation.
    fn set_annotation(&mut self, key: &str, value: &str);
    /// Returns `metadata.creationTimestamp`.
    fn created(&self) -> Option<Timestamp>;
    /// Returns `metadata.generation`.
    fn generation(&self) -> Option<i64>;
    /// Returns `metadata.finalizers`.
    fn finalizers(&self) -> impl Iterator<Item = &str>;
    /// Returns `metadata.ownerReferences`.
    fn owners(&self) -> Vec<OwnerReference>;
    /// Returns whether the object has an owner with a uid.
    fn is_owned_by(&self, uid: &str) -> bool;
    /// Returns the owner reference of the controller (`metav1.GetControllerOf`).
    fn controller(&self) -> Option<OwnerReference>;
    /// Returns whether the object with a uid controls the object.
    fn is_controlled_by(&self, uid: &str) -> bool;
    /// Returns whether the object is being deleted.
    fn is_deleting(&self) -> bool;
    /// Returns namespace and name.
    fn key(&self) -> (String, String);
    /// Returns `status.phase`.
    fn phase(&self) -> &str;
    /// Returns the condition of a type.
    fn condition(&self, kind: &str) -> Option<&Value>;
    /// Returns whether the condition of a type has the status `True`.
    fn has_condition(&self, kind: &str) -> bool;

    /// Returns the node that a pod is bound to.
    fn node_name(&self) -> &str;
    /// Returns the node that a pod without a node waits for.
    fn nominated_node(&self) -> &str;
    /// Returns the priority of a pod.
    fn priority(&self) -> i64;
    /// Returns whether a pod's phase is final, so that the pod holds no resources.
    fn is_terminal(&self) -> bool;
    /// Returns the names of a pod's sidecars (restartable init containers).
    fn sidecars(&self) -> impl Iterator<Item = &str>;
    /// Returns the taints of a node.
    fn taints(&self) -> Vec<Taint>;
    /// Returns whether a node is cordoned.
    fn is_unschedulable(&self) -> bool;
    /// Returns the internal IP address of a node.
    fn internal_ip(&self) -> Option<&str>;
}

impl ObjectExt for Value {
    fn text(&self, field: &str) -> &str {
        self[field].as_str().unwrap_or_default()
    }

    fn text_or<'a>(&'a self, field: &str, default: &'a str) -> &'a str {
        match self.text(field) {
            "" => default,
            text => text,
        }
    }

    fn integer(&self, field: &str) -> i64 {
        self[field].as_i64().unwrap_or(0)
    }

    fn read<T: DeserializeOwned + Default>(&self, field: &str) -> T {
        T::deserialize(&self[field]).unwrap_or_default()
    }

    fn write(&mut self, field: &str, value: impl Serialize) {
        self[field] = json!(value);
    }

    fn change<T: DeserializeOwned + Default + Serialize>(&mut self, field: &str, by: impl FnOnce(&mut T)) {
        let mut value = self.read(field);
        by(&mut value);
        self.write(field, value);
    }

    fn items(&self, list: &str) -> std::slice::Iter<'_, Value> {
        self[list].as_array().map_or(&[][..], Vec::as_slice).iter()
    }

    fn items_mut(&mut self, list: &str) -> std::slice::IterMut<'_, Value> {
        self.get_mut(list).and_then(Value::as_array_mut).map_or(&mut [][..], Vec::as_mut_slice).iter_mut()
    }

    fn push(&mut self, list: &str, item: Value) {
        match &mut self[list] {
            Self::Array(items) => items.push(item),
            other => *other = json!([item]),
        }
    }

    fn remove(&mut self, field: &str) {
        self.as_object_mut().and_then(|fields| fields.shift_remove(field));
    }

    fn set_default(&mut self, field: &str, value: Value) {
        if self[field].is_null() || self[field] == "" {
            self[field] = value;
        }
    }

    fn set_or_remove(&mut self, field: &str, value: Option<&Value>) {
        match value {
            Some(value) => self[field] = value.clone(),
            None => self.remove(field),
        }
    }

    fn metadata(&self) -> &Value {
        &self["metadata"]
    }

    fn metadata_mut(&mut self) -> &mut Value {
        &mut self["metadata"]
    }

    fn spec(&self) -> &Value {
        &self["spec"]
    }

    fn spec_mut(&mut self) -> &mut Value {
        &mut self["spec"]
    }

    fn status(&self) -> &Value {
        &self["status"]
    }

    fn status_mut(&mut self) -> &mut Value {
        &mut self["status"]
    }

    fn name(&self) -> &str {
        self.metadata().text("name")
    }

    fn namespace(&self) -> &str {
        self.metadata().text("namespace")
    }

    fn uid(&self) -> &str {
        self.metadata().text("uid")
    }

    fn resource_version(&self) -> &str {
        self.metadata().text("resourceVersion")
    }

    fn labels(&self) -> &Value {
        &self.metadata()["labels"]
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata()["annotations"].get(key).and_then(Self::as_str)
    }

    fn set_annotation(&mut self, key: &str, value: &str) {
        self.metadata_mut()["annotations"][key] = json!(value);
    }

    fn created(&self) -> Option<Timestamp> {
        self.metadata().text("creationTimestamp").parse().ok()
    }

    fn generation(&self) -> Option<i64> {
        self.metadata()["generation"].as_i64()
    }

    fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.metadata().items("finalizers").filter_map(Self::as_str)
    }

    fn owners(&self) -> Vec<OwnerReference> {
        self.metadata().read("ownerReferences")
    }

    fn is_owned_by(&self, uid: &str) -> bool {
        self.metadata().items("ownerReferences").any(|owner| owner.text("uid") == uid)
    }

    fn controller(&self) -> Option<OwnerReference> {
        self.owners().into_iter().find(|owner| owner.controller == Some(true))
    }

    fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller().is_some_and(|owner| owner.uid == uid)
    }

    fn is_deleting(&self) -> bool {
        self.metadata()["deletionTimestamp"].is_string()
    }

    fn key(&self) -> (String, String) {
        (self.namespace().to_owned(), self.name().to_owned())
    }

    fn phase(&self) -> &str {
        self.status().text("phase")
    }

    fn condition(&self, kind: &str) -> Option<&Value> {
        self.status().items("conditions").find(|condition| condition.text("type") == kind)
    }

    fn has_condition(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.text("status") == "True")
    }

    fn node_name(&self) -> &str {
        self.spec().text("nodeName")
    }

    fn nominated_node(&self) -> &str {
        self.status().text("nominatedNodeName")
    }

    fn priority(&self) -> i64 {
        self.spec().integer("priority")
    }

    fn is_terminal(&self) -> bool {
        matches!(self.phase(), "Failed" | "Succeeded")
    }

    fn sidecars(&self) -> impl Iterator<Item = &str> {
        let inits = self.spec().items("initContainers");
        inits.filter(|init| init.text("restartPolicy") == "Always").map(|init| init.text("name"))
    }

    fn taints(&self) -> Vec<Taint> {
        self.spec().read("taints")
    }

    fn is_unschedulable(&self) -> bool {
        self.spec().read("unschedulable")
    }

    fn internal_ip(&self) -> Option<&str> {
        let mut addresses = self.status().items("addresses");
        addresses.find(|address| address.text("type") == "InternalIP").map(|address| address.text("address"))
    }
}
