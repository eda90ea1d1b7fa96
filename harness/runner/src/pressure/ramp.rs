//! Ramps: the allocation steps of a pod that drives its node across an eviction threshold.

use std::fmt;
use std::time::Duration;

use evictlab_case::{GROWTH_VARIABLES, Pressure};

use crate::pressure::thresholds::{format_in_unit, overshoot, stated_amount, unit};

/// Time to the crossing of the threshold where a case does not state `ramp`.
const DEFAULT_RAMP_DURATION: Duration = Duration::from_secs(3);

/// Allocation of `steps` × `step` bytes, inodes or process IDs, with `pause` between two steps.
///
/// The total exceeds the distance to the threshold by an overshoot, so that the threshold is
/// certainly crossed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// Bytes, inodes or process IDs of one step.
    pub step: u64,
    /// Time between two steps.
    pub pause: Duration,
    /// Number of steps.
    pub steps: u64,
    /// Unit of the amounts: 1 MiB, one inode or one process id.
    pub unit: u64,
    /// Amount that other containers of the case take.
    pub others: u64,
}

impl Ramp {
    /// Returns the amount that the growing container takes, in bytes, inodes or process IDs.
    pub fn total(&self) -> u64 {
        self.step * self.steps
    }

    /// Returns the amount that all containers of the case take.
    pub fn case_total(&self) -> u64 {
        self.total() + self.others
    }

    /// Returns the time from the first to the last step.
    pub fn duration(&self) -> Duration {
        self.pause * u32::try_from(self.steps).unwrap_or(u32::MAX)
    }

    /// Returns the values of [`GROWTH_VARIABLES`], which `$(NAME)` in a case refers to.
    ///
    /// `STEP`, `PAUSE` and `TOTAL` have the notation of agnhost's `stress`; the others are plain
    /// numbers for shells.
    pub fn environment(&self) -> [(&'static str, String); GROWTH_VARIABLES.len()] {
        let quantity = |amount: u64| format_in_unit(amount, self.unit);
        [
            ("STEP", quantity(self.step)),
            ("PAUSE", format!("{}ms", self.pause.as_millis())),
            ("TOTAL", quantity(self.total())),
            ("STEPS", self.steps.to_string()),
            ("STEP_BYTES", self.step.to_string()),
            ("PAUSE_SECONDS", format!("{:.3}", self.pause.as_secs_f64())),
            ("TOTAL_BYTES", self.total().to_string()),
        ]
    }
}

impl fmt::Display for Ramp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (total, step) = (format_in_unit(self.total(), self.unit), format_in_unit(self.step, self.unit));
        write!(f, "up to {total} in steps of {step} every {} ms", self.pause.as_millis())
    }
}

/// Target of a ramp, in bytes, inodes or process IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RampTarget {
    /// Distance from the available amount to the last threshold.
    pub distance: u64,
    /// Part of the distance that other containers of the case take.
    pub others: u64,
    /// Amount beyond the threshold.
    pub overshoot: u64,
    /// Granularity of the steps: 1 MiB, one inode or one process id.
    pub unit: u64,
}

/// Returns the target that a case states, with defaults by signal.
pub fn ramp_target(pressure: &Pressure) -> RampTarget {
    RampTarget {
        distance: pressure.last_distance(),
        others: stated_amount(pressure.others.as_ref()).unwrap_or(0),
        overshoot: overshoot(pressure.signal),
        unit: unit(pressure),
    }
}

/// Returns the ramp of a case with this number of containers on a node where a container starts in
/// `container_start_duration`: no threshold is crossed before all containers run and have
/// statistics.
pub fn ramp(pressure: &Pressure, containers: usize, container_start_duration: Duration) -> Ramp {
    ramp_to(ramp_target(pressure), ramp_duration(pressure, containers, container_start_duration))
}

/// Returns the time to the crossing of the threshold for a case with this number of containers.
pub fn ramp_duration(pressure: &Pressure, containers: usize, container_start_duration: Duration) -> Duration {
    let stated = pressure.ramp.map_or(DEFAULT_RAMP_DURATION, |ramp| ramp.get());
    stated.max(container_start_duration.mul_f64(0.4 + 0.2 * containers as f64))
}

/// Returns the ramp to a target that crosses the threshold after `duration`. A step is at most half
/// of the overshoot.
pub fn ramp_to(target: RampTarget, duration: Duration) -> Ramp {
    let RampTarget { others, overshoot, unit, .. } = target;
    let distance = target.distance.saturating_sub(others).max(unit);
    let steps_to_crossing =
        (duration.as_millis() as u64 / 250).clamp(8, 64).max(distance.div_ceil((overshoot / 2).max(unit)));
    let step = distance.div_ceil(steps_to_crossing).next_multiple_of(unit);
    let pause = Duration::from_millis(duration.as_millis() as u64 / steps_to_crossing);
    Ramp { step, pause, steps: (distance + overshoot).div_ceil(step), unit, others }
}

#[cfg(test)]
mod tests {
    use evictlab_rules::quantity::MIB;

    use super::*;

    fn pressure(yaml: &str) -> Pressure {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn excludes_the_part_of_other_containers_and_reaches_the_hard_threshold() {
        let start = Duration::from_millis(500);
        let others = pressure("{signal: memory.available, distance: 400Mi, others: 150Mi}");
        let with_others = ramp(&others, 2, start);
        assert!((346 * MIB..346 * MIB + with_others.step).contains(&with_others.total()), "{with_others:?}");
        assert_eq!(with_others.case_total(), with_others.total() + 150 * MIB);
        let both =
            pressure("{signal: memory.available, distance: 100Mi, soft-grace: 1s, hard-distance: 300Mi}");
        let both = ramp(&both, 2, start);
        assert!((396 * MIB..396 * MIB + both.step).contains(&both.total()), "{both:?}");
    }

    #[test]
    fn crosses_the_threshold_after_the_ramp_duration_and_overshoots() {
        for (case, containers, start) in [
            ("signal: memory.available", 6, 500),
            ("signal: memory.available", 6, 9000),
            ("{signal: memory.available, distance: 100Mi, ramp: 1s}", 1, 100),
            ("signal: nodefs.available", 2, 500),
            ("{signal: memory.available, ramp: 15s}", 2, 300),
        ] {
            let pressure = pressure(case);
            let ramp = ramp(&pressure, containers, Duration::from_millis(start));
            let RampTarget { distance, .. } = ramp_target(&pressure);
            assert!(ramp.total() > distance + 64 * MIB && ramp.step.is_multiple_of(MIB), "{case}: {ramp:?}");
            let crossing = ramp.pause.as_millis() as u64 * (distance / ramp.step);
            let expected = pressure.ramp.map_or(3000, |ramp| ramp.get().as_millis() as u64);
            assert!(
                crossing as f64 >= expected as f64 * 0.8,
                "{case}: crosses after {crossing} ms: {ramp:?}"
            );
        }
        let (fast, slow) = (Duration::from_millis(500), Duration::from_secs(9));
        let memory = pressure("signal: memory.available");
        assert!(ramp(&memory, 6, slow).pause > ramp(&memory, 6, fast).pause);
    }

    #[test]
    fn a_long_distance_has_small_steps() {
        let ramp = ramp_to(
            RampTarget { distance: 2000 * MIB, others: 0, overshoot: 50 * MIB, unit: MIB },
            Duration::from_secs(60),
        );
        assert!(ramp.step <= 25 * MIB && ramp.total() <= 2075 * MIB, "{ramp:?}");
    }

    #[test]
    fn the_environment_has_the_notation_of_agnhost_and_of_shells() {
        let ramp =
            Ramp { step: 13 * MIB, pause: Duration::from_millis(250), steps: 28, unit: MIB, others: 0 };
        assert_eq!(ramp.environment().map(|(name, _)| name), GROWTH_VARIABLES);
        let text: Vec<String> =
            ramp.environment().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            text.join(" "),
            "STEP=13Mi PAUSE=250ms TOTAL=364Mi STEPS=28 STEP_BYTES=13631488 PAUSE_SECONDS=0.250 TOTAL_BYTES=381681664"
        );
    }
}
