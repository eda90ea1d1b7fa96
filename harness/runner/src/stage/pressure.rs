//! How far a threshold is set, and how a hog grows across it.

use std::time::Duration;

use evictlab_rules::quantity::Quantity;

use crate::case::{Pressure, Signal};

const MIB: u64 = 1024 * 1024;

/// How a hog grows: `steps` steps of `step` bytes with `pause` between them. It crosses the threshold on the way, and goes on a
/// little, so that the crossing is certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// Bytes, inodes or processes taken at once.
    pub step: u64,
    /// Time between two steps.
    pub pause: Duration,
    /// How many steps there are.
    pub steps: u64,
    /// What it takes: 1 Mi of bytes, or 1 for what is counted one by one.
    pub unit: u64,
}

impl Ramp {
    /// All that the hog takes: bytes, inodes or processes.
    pub fn total(&self) -> u64 {
        self.step * self.steps
    }

    /// The environment that a case's `$(NAME)` stands for. `STEP`, `PAUSE` and `TOTAL` are as agnhost's `stress` takes them; the others are
    /// plain numbers for a shell.
    pub fn environment(&self) -> [(&'static str, String); 7] {
        let quantity = |amount: u64| shown(amount, self.unit);
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

impl std::fmt::Display for Ramp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (total, step) = (shown(self.total(), self.unit), shown(self.step, self.unit));
        write!(f, "up to {total} in steps of {step} every {} ms", self.pause.as_millis())
    }
}

/// An amount as a quantity, in mebibytes if that is its unit.
fn shown(amount: u64, unit: u64) -> String {
    format!("{}{}", amount / unit, if unit == MIB { "Mi" } else { "" })
}

/// What a node has of a signal, as a quantity.
pub fn amount(pressure: &Pressure, available: u64) -> String {
    shown(available, unit(pressure))
}

/// The way of a hog: bytes, inodes or processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// How far below what the node has the threshold lies.
    pub distance: u64,
    /// How much more than that it takes.
    pub beyond: u64,
    /// In what steps it is gone: mebibytes, inodes or processes.
    pub unit: u64,
}

/// The way that a case asks for.
pub fn way(pressure: &Pressure) -> Way {
    let (distance, beyond) = match pressure.signal {
        Signal::MemoryAvailable => (320 * MIB, 96 * MIB),
        // The kubelet may free unused images before it evicts anybody: a hog has to outgrow that.
        Signal::NodefsAvailable => (512 * MIB, 2048 * MIB),
        Signal::NodefsInodesFree => (20_000, 4_000),
        Signal::PidAvailable => (1_000, 200),
    };
    let stated = pressure.distance.as_ref().and_then(|text| text.as_str().parse::<Quantity>().ok());
    Way {
        distance: stated.map_or(distance, |distance| distance.value().max(0) as u64),
        beyond,
        unit: unit(pressure),
    }
}

/// The threshold for a node that has `available` now (bytes, inodes, processes), as a quantity; none where the node has not even the distance.
pub fn threshold(pressure: &Pressure, available: u64) -> Option<String> {
    let left = available.checked_sub(way(pressure).distance)?;
    let unit = unit(pressure);
    (left >= unit).then(|| shown(left, unit))
}

/// In what steps are taken: mebibytes, inodes or processes.
fn unit(pressure: &Pressure) -> u64 {
    if pressure.signal.is_bytes() { MIB } else { 1 }
}

/// The ramp for a case of so many containers on a node where a container takes `start` to start: the threshold may be crossed only when all
/// of them run and the statistics show them.
pub fn ramp(pressure: &Pressure, containers: usize, start: Duration) -> Ramp {
    over(way(pressure), ramp_time(pressure, containers, start))
}

/// How long a case of so many containers takes to the crossing of the threshold.
pub fn ramp_time(pressure: &Pressure, containers: usize, start: Duration) -> Duration {
    let stated = pressure.ramp.map_or(Duration::from_secs(3), |ramp| ramp.get());
    stated.max(start.mul_f64(0.4 + 0.2 * containers as f64))
}

/// The ramp over a way, with so much time to the crossing. Its steps are small beside what it takes beyond the threshold.
pub fn over(way: Way, time: Duration) -> Ramp {
    let Way { distance, beyond, unit } = way;
    let crossing =
        (time.as_millis() as u64 / 250).clamp(8, 64).max(distance.div_ceil((beyond / 2).max(unit)));
    let step = distance.div_ceil(crossing).next_multiple_of(unit);
    let pause = Duration::from_millis(time.as_millis() as u64 / crossing);
    Ramp { step, pause, steps: (distance + beyond).div_ceil(step), unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressure(yaml: &str) -> Pressure {
        serde_yaml::from_str(yaml).unwrap()
    }

    #[test]
    fn a_threshold_is_set_below_what_the_node_has() {
        let memory = pressure("signal: memory.available");
        assert_eq!(threshold(&memory, 24_000 * MIB + 5), Some("23680Mi".to_owned()));
        let near = pressure("{signal: memory.available, distance: 1Gi}");
        assert_eq!(threshold(&near, 2048 * MIB), Some("1024Mi".to_owned()));
        assert_eq!(threshold(&near, 1024 * MIB), None, "nothing would be left");
    }

    #[test]
    fn a_ramp_crosses_when_it_should_and_goes_on_a_little() {
        for (case, containers, start) in [
            ("signal: memory.available", 6, 500),
            ("signal: memory.available", 6, 9000),
            ("{signal: memory.available, distance: 100Mi, ramp: 1s}", 1, 100),
            ("signal: nodefs.available", 2, 500),
            ("{signal: memory.available, ramp: 15s}", 2, 300),
        ] {
            let pressure = pressure(case);
            let ramp = ramp(&pressure, containers, Duration::from_millis(start));
            let Way { distance, .. } = way(&pressure);
            assert!(ramp.total() > distance + 64 * MIB && ramp.step.is_multiple_of(MIB), "{case}: {ramp:?}");
            let crossing = ramp.pause.as_millis() as u64 * (distance / ramp.step);
            let wanted = pressure.ramp.map_or(3000, |ramp| ramp.get().as_millis() as u64);
            assert!(crossing as f64 >= wanted as f64 * 0.8, "{case}: crosses after {crossing} ms: {ramp:?}");
        }
        let (quick, slow) = (Duration::from_millis(500), Duration::from_secs(9));
        let memory = pressure("signal: memory.available");
        assert!(ramp(&memory, 6, slow).pause > ramp(&memory, 6, quick).pause);
    }

    #[test]
    fn a_long_way_past_a_low_threshold_has_small_steps() {
        let ramp = over(Way { distance: 2000 * MIB, beyond: 50 * MIB, unit: MIB }, Duration::from_secs(60));
        assert!(ramp.step <= 25 * MIB && ramp.total() <= 2075 * MIB, "{ramp:?}");
    }

    #[test]
    fn the_environment_is_what_agnhost_and_shells_read() {
        let ramp = Ramp { step: 13 * MIB, pause: Duration::from_millis(250), steps: 28, unit: MIB };
        let text: Vec<String> =
            ramp.environment().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            text.join(" "),
            "STEP=13Mi PAUSE=250ms TOTAL=364Mi STEPS=28 STEP_BYTES=13631488 PAUSE_SECONDS=0.250 TOTAL_BYTES=381681664"
        );
    }
}
