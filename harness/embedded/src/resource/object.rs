//! Typed reading of objects.
//!
//! Objects stay [`Value`]s, so that fields newer than k8s-openapi's types are kept. Other modules
//! read and write parts of objects as types by [`ObjectExt`].

use evictlab_rules::quantity::Quantity;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Fields of a pod spec that list containers with resources.
pub(crate) const RESOURCE_CONTAINER_LISTS: [&str; 2] = ["containers", "initContainers"];
/// All fields of a pod spec that list containers.
pub(crate) const ALL_CONTAINER_LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Fields of objects. A field that is missing or has another type is empty.
pub(crate) trait ObjectExt {
    /// Returns the object as JSON.
    fn value(&self) -> &Value;
    /// Returns the object as JSON for changes.
    fn value_mut(&mut self) -> &mut Value;

    /// Returns a string field.
    fn text(&self, field: &str) -> &str {
        self.value()[field].as_str().unwrap_or_default()
    }

    /// Returns a string field, or the default if it is missing or empty.
    fn text_or<'a>(&'a self, field: &str, default: &'a str) -> &'a str {
        match self.text(field) {
            "" => default,
            text => text,
        }
    }

    /// Returns an integer field; 0 if it is missing.
    fn integer(&self, field: &str) -> i64 {
        self.value()[field].as_i64().unwrap_or(0)
    }

    /// Reads a field as a type. A field that is missing or has another type is the default: the API
    /// server has checked the types.
    fn read<T: DeserializeOwned + Default>(&self, field: &str) -> T {
        evictlab_api_types::read(&self.value()[field]).unwrap_or_default()
    }

    /// Sets a field to a typed value.
    fn write(&mut self, field: &str, value: impl Serialize) {
        self.value_mut()[field] = json!(value);
    }

    /// Reads a field as a type, changes it and writes it.
    fn change<T: DeserializeOwned + Default + Serialize>(&mut self, field: &str, by: impl FnOnce(&mut T)) {
        let mut value = self.read(field);
        by(&mut value);
        self.write(field, value);
    }

    /// Returns the items of a list.
    fn items(&self, list: &str) -> std::slice::Iter<'_, Value> {
        self.value()[list].as_array().map_or(&[][..], Vec::as_slice).iter()
    }

    /// Returns mutable items of a list.
    fn items_mut(&mut self, list: &str) -> std::slice::IterMut<'_, Value> {
        self.value_mut()
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .map_or(&mut [][..], Vec::as_mut_slice)
            .iter_mut()
    }

    /// Appends an item to a list, which may be missing.
    fn push(&mut self, list: &str, item: Value) {
        match &mut self.value_mut()[list] {
            Value::Array(items) => items.push(item),
            other => *other = json!([item]),
        }
    }

    /// Removes a field.
    fn remove(&mut self, field: &str) {
        self.value_mut().as_object_mut().and_then(|fields| fields.shift_remove(field));
    }

    /// Sets a field that is missing or an empty string.
    fn set_default(&mut self, field: &str, value: Value) {
        if self.value()[field].is_null() || self.value()[field] == "" {
            self.value_mut()[field] = value;
        }
    }

    /// Sets a field, or removes it if there is no value.
    fn set_or_remove(&mut self, field: &str, value: Option<&Value>) {
        match value {
            Some(value) => self.value_mut()[field] = value.clone(),
            None => self.remove(field),
        }
    }

    /// Returns `metadata`.
    fn metadata(&self) -> &Value {
        &self.value()["metadata"]
    }

    /// Returns `metadata` for changes.
    fn metadata_mut(&mut self) -> &mut Value {
        &mut self.value_mut()["metadata"]
    }

    /// Returns `spec`.
    fn spec(&self) -> &Value {
        &self.value()["spec"]
    }

    /// Returns `spec` for changes.
    fn spec_mut(&mut self) -> &mut Value {
        &mut self.value_mut()["spec"]
    }

    /// Returns `status`.
    fn status(&self) -> &Value {
        &self.value()["status"]
    }

    /// Returns `status` for changes.
    fn status_mut(&mut self) -> &mut Value {
        &mut self.value_mut()["status"]
    }

    /// Returns `metadata.name`.
    fn name(&self) -> &str {
        self.metadata().text("name")
    }

    /// Returns `metadata.namespace`.
    fn namespace(&self) -> &str {
        self.metadata().text("namespace")
    }

    /// Returns `metadata.uid`.
    fn uid(&self) -> &str {
        self.metadata().text("uid")
    }

    /// Returns `metadata.resourceVersion`.
    fn resource_version(&self) -> &str {
        self.metadata().text("resourceVersion")
    }

    /// Returns `metadata.labels`.
    fn labels(&self) -> &Value {
        &self.metadata()["labels"]
    }

    /// Returns an annotation.
    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata()["annotations"].get(key).and_then(Value::as_str)
    }

    /// Sets an annotation.
    fn set_annotation(&mut self, key: &str, value: &str) {
        self.metadata_mut()["annotations"][key] = json!(value);
    }

    /// Returns `metadata.creationTimestamp`.
    fn created(&self) -> Option<Timestamp> {
        self.metadata().text("creationTimestamp").parse().ok()
    }

    /// Returns `metadata.generation`.
    fn generation(&self) -> Option<i64> {
        self.metadata()["generation"].as_i64()
    }

    /// Returns `metadata.finalizers`.
    fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.metadata().items("finalizers").filter_map(Value::as_str)
    }

    /// Returns `metadata.ownerReferences`.
    fn owners(&self) -> Vec<OwnerReference> {
        self.metadata().read("ownerReferences")
    }

    /// Returns the owner reference of the controller (`metav1.GetControllerOf`).
    fn controller(&self) -> Option<OwnerReference> {
        self.owners().into_iter().find(|owner| owner.controller == Some(true))
    }

    /// Returns whether the object with a uid controls the object.
    fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller().is_some_and(|owner| owner.uid == uid)
    }

    /// Returns whether the object is being deleted.
    fn is_deleting(&self) -> bool {
        self.metadata()["deletionTimestamp"].is_string()
    }

    /// Returns namespace and name.
    fn key(&self) -> (String, String) {
        (self.namespace().to_owned(), self.name().to_owned())
    }

    /// Returns `status.phase`.
    fn phase(&self) -> &str {
        self.status().text("phase")
    }

    /// Returns the condition of a type.
    fn condition(&self, kind: &str) -> Option<&Value> {
        self.status().items("conditions").find(|condition| condition.text("type") == kind)
    }

    /// Returns whether the condition of a type has the status `True`.
    fn has_condition(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.text("status") == "True")
    }

    /// Returns the node that a pod is bound to.
    fn node_name(&self) -> &str {
        self.spec().text("nodeName")
    }

    /// Returns the node that a pod without a node waits for.
    fn nominated_node(&self) -> &str {
        self.status().text("nominatedNodeName")
    }

    /// Returns the priority of a pod.
    fn priority(&self) -> i64 {
        self.spec().integer("priority")
    }

    /// Returns whether a pod's phase is final, so that the pod holds no resources.
    fn is_terminal(&self) -> bool {
        matches!(self.phase(), "Failed" | "Succeeded")
    }

    /// Returns the names of a pod's sidecars (restartable init containers).
    fn sidecars(&self) -> impl Iterator<Item = &str> {
        let inits = self.spec().items("initContainers");
        inits.filter(|init| init.text("restartPolicy") == "Always").map(|init| init.text("name"))
    }

    /// Returns the taints of a node.
    fn taints(&self) -> Vec<Taint> {
        self.spec().read("taints")
    }

    /// Returns whether a node is cordoned.
    fn is_unschedulable(&self) -> bool {
        self.spec().read("unschedulable")
    }

    /// Returns the internal IP address of a node.
    fn internal_ip(&self) -> Option<&str> {
        let mut addresses = self.status().items("addresses");
        addresses.find(|address| address.text("type") == "InternalIP").map(|address| address.text("address"))
    }
}

impl ObjectExt for Value {
    fn value(&self) -> &Value {
        self
    }

    fn value_mut(&mut self) -> &mut Value {
        self
    }
}

/// Returns the amount of a resource as the scheduler and the kubelet compare it: CPU in millicores.
pub(crate) fn amount(resource: &str, quantity: &Quantity) -> i64 {
    if resource == "cpu" { quantity.milli_value() } else { quantity.value() }
}

/// Parses an object in YAML as Kubernetes does: `y` and `n` are texts.
///
/// # Errors
/// The first mistake, with its position.
pub(crate) fn parse_yaml(text: &[u8]) -> Result<Value, String> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_slice_with_options(text, options).map_err(|error| error.to_string())
}
