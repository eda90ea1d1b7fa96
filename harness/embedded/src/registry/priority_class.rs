//! Priority classes.

use serde_json::{Value, json};

use super::field::{Errors, Path};
use super::{Status, meta, names};
use crate::store::Kind;
use crate::world::Ctx;

/// The highest value of a class that is none of the system's.
const HIGHEST: i64 = 1_000_000_000;

/// The classes that every cluster has, and their values.
pub(crate) const SYSTEM: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Fills a new class in; a second default is refused.
pub(super) fn prepare(ctx: &Ctx, name: &str, class: &mut Value) -> Result<(), Status> {
    if class["preemptionPolicy"].is_null() {
        class["preemptionPolicy"] = json!("PreemptLowerPriority");
    }
    if class["value"].is_null() {
        class["value"] = json!(0);
    }
    if class["globalDefault"] != true {
        return Ok(());
    }
    let other = ctx.store.list(Kind::PriorityClass, None).find(|other| other["globalDefault"] == true);
    let Some(other) = other else { return Ok(()) };
    let other = meta::text(other, "name");
    let why = format!("PriorityClass {other} is already marked as default. Only one default can exist");
    Err(Status::forbidden(Kind::PriorityClass, name, &why))
}

/// Checks a class.
pub(super) fn validate(class: &Value) -> Errors {
    let mut errors = meta::validate(class, names::subdomain);
    let (name, value) = (meta::text(class, "name"), class["value"].as_i64().unwrap_or(0));
    if name.starts_with("system-") {
        if let Some(why) = no_system_class(name, value, class["globalDefault"] == true) {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            );
            errors.forbidden(&Path::new("metadata").child("name"), &why);
        }
    } else if value > HIGHEST {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.forbidden(&Path::new("value"), &why);
    }
    const POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];
    if let Some(policy) = class["preemptionPolicy"].as_str().filter(|policy| !POLICIES.contains(policy)) {
        errors.not_supported(&Path::new("preemptionPolicy"), policy, &POLICIES);
    }
    errors
}

/// Checks a change.
pub(super) fn update(class: &Value, old: &Value) -> Errors {
    let mut errors = Errors::default();
    if class["value"].as_i64().unwrap_or(0) != old["value"].as_i64().unwrap_or(0) {
        errors.forbidden(&Path::new("value"), "may not be changed in an update.");
    }
    if class["preemptionPolicy"] != old["preemptionPolicy"] {
        errors.invalid(
            &Path::new("preemptionPolicy"),
            class["preemptionPolicy"].clone(),
            "field is immutable",
        );
    }
    errors
}

/// Why a class is none of the system's (`IsKnownSystemPriorityClass`).
fn no_system_class(name: &str, value: i64, default: bool) -> Option<String> {
    let Some((_, own)) = SYSTEM.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if *own != value {
        return Some(format!("value of {name} PriorityClass must be {own}"));
    }
    default.then(|| format!("globalDefault of {name} PriorityClass must be false"))
}
