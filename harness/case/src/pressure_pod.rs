//! The pod that creates the pressure of a case which does not state one itself.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::pressure_signal::PressureSignal;
use crate::values::{Name, QuantityText, WholeSeconds};

/// Image of the pod.
const IMAGE: &str = "agnhost:2.52";
/// Name of its only container.
const CONTAINER: &str = "el1";

/// Appends to a file of a volume, whose space is free as soon as the pod is gone.
const WRITE_BYTES: &str = r#"trap '' TERM
step=0
while [ "$step" -lt "$STEPS" ]; do
  dd if=/dev/zero bs="$STEP_BYTES" count=1 >> /data/f
  step=$((step + 1))
  sleep "$PAUSE_SECONDS"
done
sleep infinity
"#;

/// Creates empty files.
const CREATE_FILES: &str = r#"step=0
while [ "$step" -lt "$STEPS" ]; do
  file=0
  while [ "$file" -lt "$STEP" ]; do
    : > "/data/$step-$file"
    file=$((file + 1))
  done
  step=$((step + 1))
  sleep "$PAUSE_SECONDS"
done
sleep infinity
"#;

/// Starts processes.
const FORK: &str = r#"trap '' TERM
step=0
while [ "$step" -lt "$STEPS" ]; do
  child=0
  while [ "$child" -lt "$STEP" ]; do
    sleep infinity &
    child=$((child + 1))
  done
  step=$((step + 1))
  sleep "$PAUSE_SECONDS"
done
wait
"#;

/// Returns a script that fills the directory `/data` of the container's writable layer.
fn in_layer(script: &str) -> String {
    format!("mkdir /data\n{script}")
}

/// A pod with one container, `el1`, that grows past the threshold: memory, the size or the number
/// of its files, or its processes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PressurePod {
    /// Name of the pod.
    pub name: Name,
    /// Requests of the container.
    #[serde(default)]
    pub requests: BTreeMap<String, QuantityText>,
    /// Limits of the container.
    #[serde(default)]
    pub limits: BTreeMap<String, QuantityText>,
    /// Priority class, one of `priority-classes` or of Kubernetes.
    #[serde(default)]
    pub priority_class: Option<Name>,
    /// Termination grace period; the default is 1s.
    #[serde(default)]
    pub grace_period: Option<WholeSeconds>,
}

impl PressurePod {
    /// Returns the manifest of the pod.
    pub fn manifest(&self, signal: PressureSignal) -> Map<String, Value> {
        let shell = |script: &str| json!({"command": ["sh", "-c", script]});
        let mut container = match signal {
            PressureSignal::MemoryAvailable => json!({"args": [
                "stress", "--mem-alloc-size", "$(STEP)", "--mem-alloc-sleep", "$(PAUSE)", "--mem-total", "$(TOTAL)",
            ]}),
            PressureSignal::NodefsAvailable => shell(WRITE_BYTES),
            PressureSignal::ImagefsAvailable => shell(&in_layer(WRITE_BYTES)),
            PressureSignal::NodefsInodesFree => shell(CREATE_FILES),
            PressureSignal::ImagefsInodesFree => shell(&in_layer(CREATE_FILES)),
            PressureSignal::PidAvailable => shell(FORK),
        };
        container["name"] = json!(CONTAINER);
        container["image"] = json!(IMAGE);
        let quantities = |amounts: &BTreeMap<String, QuantityText>| -> Map<String, Value> {
            amounts.iter().map(|(resource, quantity)| (resource.clone(), json!(quantity.as_str()))).collect()
        };
        for (field, amounts) in [("requests", &self.requests), ("limits", &self.limits)] {
            if !amounts.is_empty() {
                container["resources"][field] = Value::Object(quantities(amounts));
            }
        }
        let grace_period = self.grace_period.map_or(1, |grace| grace.get().as_secs());
        let mut spec = json!({
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": grace_period,
        });
        if let Some(class) = &self.priority_class {
            spec["priorityClassName"] = json!(class.as_str());
        }
        // A volume is on nodefs, the writable layer on imagefs.
        if signal.is_on_nodefs() {
            container["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
            spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
        }
        spec["containers"] = json!([container]);
        Map::from_iter([
            ("metadata".to_owned(), json!({"name": self.name.as_str()})),
            ("spec".to_owned(), spec),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(signal: PressureSignal, pod: &str) -> Value {
        let pod: PressurePod = serde_saphyr::from_str(pod).unwrap();
        Value::Object(pod.manifest(signal))
    }

    #[test]
    fn the_pod_has_the_stated_resources_priority_and_grace_period() {
        let pod = "{name: hog, requests: {memory: 10Mi}, limits: {memory: 1Gi}, priority-class: high, grace-period: 5s}";
        let manifest = manifest(PressureSignal::MemoryAvailable, pod);
        let container = &manifest["spec"]["containers"][0];
        assert_eq!(
            container["resources"],
            json!({"requests": {"memory": "10Mi"}, "limits": {"memory": "1Gi"}})
        );
        assert_eq!(manifest["spec"]["priorityClassName"], "high");
        assert_eq!(manifest["spec"]["terminationGracePeriodSeconds"], 5);
        assert_eq!(manifest["metadata"]["name"], "hog");
    }

    #[test]
    fn a_pod_that_fills_nodefs_has_a_volume() {
        for signal in [PressureSignal::NodefsAvailable, PressureSignal::NodefsInodesFree] {
            let manifest = manifest(signal, "{name: hog}");
            assert_eq!(manifest["spec"]["volumes"][0]["name"], "data", "{signal:?}");
            assert_eq!(
                manifest["spec"]["containers"][0]["volumeMounts"][0]["mountPath"], "/data",
                "{signal:?}"
            );
        }
        for signal in [
            PressureSignal::MemoryAvailable,
            PressureSignal::PidAvailable,
            PressureSignal::ImagefsAvailable,
            PressureSignal::ImagefsInodesFree,
        ] {
            assert!(manifest(signal, "{name: hog}")["spec"].get("volumes").is_none(), "{signal:?}");
        }
    }
}
