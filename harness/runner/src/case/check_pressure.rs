//! Checks of how a case puts its node under pressure.

use evictlab_rules::quantity::Quantity;

use super::QuantityText;
use super::checks::Checker;
use super::positions::way;
use super::schema::{By, Pressure, Signal};

impl Checker<'_> {
    pub(super) fn pressure(&mut self) {
        let Some(pressure) = &self.case.pressure else { return };
        for (field, key) in set_by(pressure) {
            let way = way!["kubelet-config", field];
            let note = "leave it out, or leave out `pressure`";
            match self.case.kubelet_config.get(field).map(|map| (map.is_object(), map.get(key).is_some())) {
                Some((true, true)) => {
                    let what = format!(
                        "`{field}` of {key} is set by `pressure`, from what the node has when the case runs"
                    );
                    self.find(&[&way[..], &way![key][..]].concat(), what, note);
                }
                Some((false, _)) => {
                    let what = format!("`pressure` sets `{field}` of {key}, and this is no map");
                    self.find(way, what, note);
                }
                _ => {}
            }
        }
        self.kinds_of_pressure(pressure);
        let amounts = [
            ("distance", &pressure.distance),
            ("hard-distance", &pressure.hard_distance),
            ("others", &pressure.others),
        ];
        for (field, amount) in amounts {
            if amount.as_ref().is_some_and(|amount| amount.quantity() <= &Quantity::ZERO) {
                self.find(way!["pressure", field], format!("`{field}` must be more than 0"), "");
            }
        }
        for (field, value) in [("ramp", pressure.ramp), ("soft-grace", pressure.soft_grace)] {
            if value.is_some_and(|value| value.get().is_zero()) {
                self.find(way!["pressure", field], format!("`{field}` must be more than 0"), "");
            }
        }
    }

    /// What of `pressure` goes together.
    fn kinds_of_pressure(&mut self, pressure: &Pressure) {
        let soft = pressure.soft_grace.is_some();
        let amount = |text: &Option<QuantityText>| text.as_ref().map(|text| text.quantity().clone());
        let last = amount(&pressure.hard_distance).or_else(|| amount(&pressure.distance));
        let nearer = amount(&pressure.hard_distance) <= amount(&pressure.distance);
        let crossed =
            matches!((amount(&pressure.others), &last), (Some(others), Some(last)) if others >= *last);
        let reserved = pressure.by == By::KubeReserved;
        let wrong = [
            (
                "hard-distance",
                pressure.hard_distance.is_some() && !soft,
                "it stands beside a soft threshold: state `soft-grace`",
            ),
            (
                "hard-distance",
                pressure.hard_distance.is_some() && nearer,
                "the hard threshold is crossed after the soft one: state a smaller `distance`",
            ),
            ("others", crossed, "the others would cross the threshold by themselves"),
            ("by", reserved && pressure.signal != Signal::MemoryAvailable, "only memory is reserved here"),
            (
                "by",
                reserved && (soft || pressure.hard_distance.is_some() || pressure.as_percentage),
                "a reservation is no threshold",
            ),
        ];
        for (field, is_wrong, why) in wrong {
            if is_wrong {
                self.find(way!["pressure", field], format!("`{field}` does not fit: {why}"), "");
            }
        }
    }
}

/// The entries of a KubeletConfiguration that `pressure` sets.
fn set_by(pressure: &Pressure) -> Vec<(&'static str, &'static str)> {
    let signal = pressure.signal.as_str();
    let hard = ("evictionHard", signal);
    match (pressure.by, pressure.soft_grace) {
        (By::KubeReserved, _) => vec![("kubeReserved", "memory")],
        (By::Threshold, None) => vec![hard],
        (By::Threshold, Some(_)) => {
            let soft = [("evictionSoft", signal), ("evictionSoftGracePeriod", signal)];
            soft.into_iter().chain(pressure.hard_distance.as_ref().map(|_| hard)).collect()
        }
    }
}
