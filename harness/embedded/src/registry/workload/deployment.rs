//! Deployments: `pkg/apis/apps/v1/defaults.go`, `pkg/apis/apps/validation`.

use serde_json::{Value, json};

use super::super::field::{Errors, Path};
use super::super::share::{self, not_negative};
use super::default;

const STRATEGIES: [&str; 2] = ["Recreate", "RollingUpdate"];

/// Fills one in.
pub(super) fn fill(deployment: &mut Value) {
    let spec = &mut deployment["spec"];
    default(spec, "replicas", json!(1));
    default(spec, "strategy", json!({}));
    let strategy = &mut spec["strategy"];
    default(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == "RollingUpdate" {
        default(strategy, "rollingUpdate", json!({}));
        for field in ["maxUnavailable", "maxSurge"] {
            default(&mut strategy["rollingUpdate"], field, json!("25%"));
        }
    }
    default(spec, "revisionHistoryLimit", json!(10));
    default(spec, "progressDeadlineSeconds", json!(600));
}

/// Checks one.
pub(super) fn validate(deployment: &Value) -> Errors {
    let mut errors = super::metadata(deployment);
    super::replicated(deployment, &mut errors);
    let (spec, path) = (&deployment["spec"], Path::new("spec"));
    strategy(&spec["strategy"], &path.child("strategy"), &mut errors);
    for field in ["revisionHistoryLimit", "progressDeadlineSeconds"] {
        not_negative(spec[field].as_i64(), &path.child(field), &mut errors);
    }
    let seconds = |field: &str| spec[field].as_i64().unwrap_or(0);
    let deadline = seconds("progressDeadlineSeconds");
    if deadline <= seconds("minReadySeconds") {
        errors.invalid(
            &path.child("progressDeadlineSeconds"),
            deadline,
            "must be greater than minReadySeconds",
        );
    }
    errors
}

fn strategy(strategy: &Value, path: &Path, errors: &mut Errors) {
    let kind = strategy["type"].as_str().unwrap_or_default();
    let (rolling, place) = (&strategy["rollingUpdate"], path.child("rollingUpdate"));
    match kind {
        "RollingUpdate" => {
            for field in ["maxUnavailable", "maxSurge"] {
                share::check(&rolling[field], &place.child(field), errors);
            }
            let none = |field: &str| [json!(0), json!("0%")].contains(&rolling[field]);
            if none("maxUnavailable") && none("maxSurge") {
                let path = place.child("maxUnavailable");
                errors.invalid(&path, rolling["maxUnavailable"].clone(), "may not be 0 when `maxSurge` is 0");
            }
        }
        "Recreate" if !rolling.is_null() => {
            errors.forbidden(&place, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        other => errors.not_supported(&path.child("type"), other, &STRATEGIES),
    }
}
