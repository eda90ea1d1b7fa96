//! Checks of the pressure of a case.

use evictlab_rules::quantity::{GIB, Quantity};
use serde_json::Value;

use super::checker::Checker;
use crate::positions::PathSegment;
use crate::pressure::{Pressure, PressureMechanism};
use crate::pressure_signal::PressureSignal;
use crate::values::QuantityText;
use crate::yaml_path;

/// Maximum distance of a threshold on memory, in bytes.
const MAX_MEMORY_DISTANCE: i64 = 64 * GIB as i64;

/// Maximum distance of a threshold on a file system, in bytes.
const MAX_DISK_DISTANCE: i64 = 8 << 40;

impl Checker<'_> {
    pub(crate) fn check_pressure(&mut self) {
        let Some(pressure) = &self.case.pressure else { return };
        for (field, key) in entries_set_by(pressure) {
            let path = yaml_path!["kubelet-config", field];
            let note = "omit it, or omit `pressure`";
            match self.case.kubelet_config.get(field) {
                Some(Value::Object(map)) if map.contains_key(key) => {
                    let what = format!("`{field}` of {key} is set by `pressure` when the case runs");
                    self.report(&[&path[..], &yaml_path![key][..]].concat(), what, note);
                }
                Some(Value::Object(_)) | None => {}
                Some(_) => {
                    let what = format!("`{field}` must be a map: `pressure` sets {key} in it");
                    self.report(path, what, note);
                }
            }
        }
        self.check_combination(pressure);
        for (signal, distance) in &pressure.also {
            let path = yaml_path!["pressure", "also", signal.as_str()];
            if *signal == pressure.signal {
                self.report(
                    path,
                    format!("`{}` is both `signal` and in `also`", signal.as_str()),
                    "remove it from `also`",
                );
            } else if distance.quantity() <= &Quantity::ZERO {
                self.report(path, "the distance must be more than 0", "");
            }
            self.check_size(path, *signal, distance);
        }
        let amounts = [
            ("distance", &pressure.distance),
            ("hard-distance", &pressure.hard_distance),
            ("others", &pressure.others),
        ];
        for (field, amount) in amounts {
            if amount.as_ref().is_some_and(|amount| amount.quantity() <= &Quantity::ZERO) {
                self.report(yaml_path!["pressure", field], format!("`{field}` must be more than 0"), "");
            }
        }
        for (field, distance) in
            [("distance", &pressure.distance), ("hard-distance", &pressure.hard_distance)]
        {
            if let Some(distance) = distance {
                self.check_size(yaml_path!["pressure", field], pressure.signal, distance);
            }
        }
        for (field, value) in [("ramp", pressure.ramp), ("soft-grace", pressure.soft_grace)] {
            if value.is_some_and(|value| value.get().is_zero()) {
                self.report(yaml_path!["pressure", field], format!("`{field}` must be more than 0"), "");
            }
        }
    }

    /// Checks that a node can have a distance available.
    fn check_size(&mut self, path: &[PathSegment], signal: PressureSignal, distance: &QuantityText) {
        let (most, resource) = match signal {
            PressureSignal::MemoryAvailable => (MAX_MEMORY_DISTANCE, "memory"),
            PressureSignal::NodefsAvailable | PressureSignal::ImagefsAvailable => {
                (MAX_DISK_DISTANCE, "a disk")
            }
            PressureSignal::NodefsInodesFree
            | PressureSignal::ImagefsInodesFree
            | PressureSignal::PidAvailable => return,
        };
        if distance.quantity().value() > most {
            let note = format!("state at most {} of {resource}", Quantity::from_bytes(most));
            self.report(path, format!("a distance of {distance} is larger than that of any node"), note);
        }
    }

    /// Checks that the fields of `pressure` fit together.
    fn check_combination(&mut self, pressure: &Pressure) {
        let is_soft = pressure.soft_grace.is_some();
        let [hard, others] =
            [&pressure.hard_distance, &pressure.others].map(|text| text.as_ref().map(QuantityText::amount));
        let is_too_far = hard.is_some_and(|hard| hard <= pressure.distance());
        let others_cross = others.is_some_and(|others| others >= pressure.last_distance());
        let is_reservation = pressure.by == PressureMechanism::KubeReserved;
        let conflicts = [
            (
                "hard-distance",
                pressure.hard_distance.is_some() && !is_soft,
                "it needs a soft threshold: state `soft-grace`",
            ),
            (
                "hard-distance",
                is_too_far,
                "the hard threshold would be crossed before the soft one: state a smaller `distance`",
            ),
            ("others", others_cross, "the other containers would cross the threshold alone"),
            (
                "by",
                is_reservation && pressure.signal.reservable_resource().is_none(),
                "only memory, space of nodefs and process IDs can be reserved",
            ),
            (
                "also",
                !pressure.also.is_empty() && (pressure.hard_distance.is_some() || pressure.as_percentage),
                "it has one threshold per signal, a quantity",
            ),
            (
                "by",
                is_reservation && (is_soft || pressure.hard_distance.is_some()),
                "a reservation does not set a threshold",
            ),
            (
                "as-percentage",
                is_reservation
                    && pressure.as_percentage
                    && pressure.signal != PressureSignal::MemoryAvailable,
                "of what is reserved, only memory has a threshold",
            ),
        ];
        for (field, is_conflict, why) in conflicts {
            if is_conflict {
                self.report(yaml_path!["pressure", field], format!("invalid `{field}`: {why}"), "");
            }
        }
    }
}

/// Returns the entries of a KubeletConfiguration that `pressure` sets.
fn entries_set_by(pressure: &Pressure) -> Vec<(&'static str, &'static str)> {
    if pressure.by == PressureMechanism::KubeReserved {
        let reserved = pressure.signal.reservable_resource().map(|resource| ("kubeReserved", resource));
        let threshold = pressure.as_percentage.then_some(("evictionHard", pressure.signal.as_str()));
        let others = pressure.also.keys().map(|signal| ("evictionHard", signal.as_str()));
        return reserved.into_iter().chain(threshold).chain(others).collect();
    }
    let is_hard = pressure.soft_grace.is_none() || pressure.hard_distance.is_some();
    let is_soft = pressure.soft_grace.is_some();
    let fields = [("evictionHard", is_hard), ("evictionSoft", is_soft), ("evictionSoftGracePeriod", is_soft)];
    let entries_of = |signal: PressureSignal| {
        let fields = fields.into_iter().filter(|(_, is_set)| *is_set);
        fields.map(move |(field, _)| (field, signal.as_str()))
    };
    pressure.signals().flat_map(entries_of).collect()
}

#[cfg(test)]
mod tests {
    use crate::fixtures::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[
            ("no distance", "ramp: 15s", "distance: 0Mi"),
            (
                "set by pressure",
                "expect:\n",
                "kubelet-config: {evictionHard: {memory.available: 1Gi, pid.available: 5%}}\nexpect:\n",
            ),
            ("not a map", "expect:\n", "kubelet-config: {evictionHard: memory.available<1Gi}\nexpect:\n"),
            ("a hard threshold beside a hard one", "ramp: 15s", "hard-distance: 1Gi"),
            (
                "a hard threshold before the soft one",
                "ramp: 15s",
                "distance: 1Gi, hard-distance: 1Gi, soft-grace: 1s",
            ),
            (
                "a hard threshold before the soft one, by default",
                "ramp: 15s",
                "hard-distance: 320Mi, soft-grace: 1s",
            ),
            ("two thresholds of one signal", "ramp: 15s", "also: {memory.available: 1Gi}"),
            ("a second signal without a distance", "ramp: 15s", "also: {pid.available: \"0\"}"),
            (
                "a second signal beside a percentage",
                "ramp: 15s",
                "as-percentage: true, also: {pid.available: \"9\"}",
            ),
            ("others cross alone", "ramp: 15s", "distance: 100Mi, others: 100Mi"),
            ("others cross alone, by default", "ramp: 15s", "others: 320Mi"),
            (
                "others cross alone with a hard threshold",
                "ramp: 15s",
                "hard-distance: 1Gi, soft-grace: 1s, others: 1Gi",
            ),
            ("a soft reservation", "ramp: 15s", "by: kube-reserved, soft-grace: 1s"),
            (
                "a percentage of reserved process IDs",
                "{signal: memory.available, ramp: 15s}",
                "{signal: pid.available, by: kube-reserved, as-percentage: true}",
            ),
            ("more memory than a node has", "ramp: 15s", "distance: 900Gi"),
            ("more of a disk than a node has", "ramp: 15s", "also: {nodefs.available: 9Ti}"),
        ]));
    }
}
