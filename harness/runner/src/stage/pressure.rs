//! How far a threshold is set, and how a hog grows across it.

use std::time::Duration;

use crate::case::{Pressure, QuantityText, Signal};

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
    /// What the case's other containers take.
    pub others: u64,
}

/// What a node has of a signal: bytes, inodes or processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// What is left.
    pub available: u64,
    /// All there is.
    pub capacity: u64,
    /// What its pods use.
    pub of_pods: u64,
}

impl Ramp {
    /// All that the hog takes: bytes, inodes or processes.
    pub fn total(&self) -> u64 {
        self.step * self.steps
    }

    /// All that the case takes.
    pub fn takes(&self) -> u64 {
        self.total() + self.others
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
    /// How far below what the node has the last threshold lies.
    pub distance: u64,
    /// What the case's other containers take of that.
    pub others: u64,
    /// How much more it takes.
    pub beyond: u64,
    /// In what steps it is gone: mebibytes, inodes or processes.
    pub unit: u64,
}

/// How far a threshold lies below what a node has where a case does not say, and how much more a hog takes.
fn by_default(signal: Signal) -> (u64, u64) {
    match signal {
        Signal::MemoryAvailable => (320 * MIB, 96 * MIB),
        // The kubelet may free unused images before it evicts anybody: a hog has to outgrow that.
        Signal::NodefsAvailable => (512 * MIB, 2048 * MIB),
        // Nor by some thousand files of an image.
        Signal::NodefsInodesFree => (20_000, 12_000),
        Signal::PidAvailable => (1_000, 200),
    }
}

/// The way that a case asks for.
pub fn way(pressure: &Pressure) -> Way {
    Way {
        distance: stated(pressure.hard_distance.as_ref()).unwrap_or_else(|| distance(pressure)),
        others: stated(pressure.others.as_ref()).unwrap_or(0),
        beyond: by_default(pressure.signal).1,
        unit: unit(pressure),
    }
}

/// How far below what the node has the first threshold lies.
fn distance(pressure: &Pressure) -> u64 {
    stated(pressure.distance.as_ref()).unwrap_or(by_default(pressure.signal).0)
}

fn stated(quantity: Option<&QuantityText>) -> Option<u64> {
    quantity.map(|text| text.quantity().value().max(0) as u64)
}

/// The threshold for a node that has so much now, as a quantity or a percentage; none where the node has not even the distance.
pub fn threshold(pressure: &Pressure, node: Supply) -> Option<String> {
    left(pressure, node, distance(pressure))
}

/// The hard threshold beside a soft one, in the same way, where the case has one.
pub fn hard_threshold(pressure: &Pressure, node: Supply) -> Option<Option<String>> {
    stated(pressure.hard_distance.as_ref()).map(|distance| left(pressure, node, distance))
}

fn left(pressure: &Pressure, node: Supply, distance: u64) -> Option<String> {
    let left = node.available.checked_sub(distance)?;
    let unit = unit(pressure);
    if left < unit {
        return None;
    }
    // To a hundred-thousandth, and never above what was meant.
    let share = u128::from(left) * 100_000 / u128::from(node.capacity.max(left));
    Some(match pressure.as_percentage {
        true => format!("{}.{:03}%", share / 1000, share % 1000),
        false => shown(left, unit),
    })
}

/// What is reserved so that pods can take the distance and no more; none where the node has not even that.
pub fn reservation(pressure: &Pressure, node: Supply) -> Option<String> {
    let left = node.capacity.checked_sub(node.of_pods + distance(pressure))?;
    (left >= MIB).then(|| shown(left, MIB))
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
    let Way { others, beyond, unit, .. } = way;
    let distance = way.distance.saturating_sub(others).max(unit);
    let crossing =
        (time.as_millis() as u64 / 250).clamp(8, 64).max(distance.div_ceil((beyond / 2).max(unit)));
    let step = distance.div_ceil(crossing).next_multiple_of(unit);
    let pause = Duration::from_millis(time.as_millis() as u64 / crossing);
    Ramp { step, pause, steps: (distance + beyond).div_ceil(step), unit, others }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressure(yaml: &str) -> Pressure {
        serde_yaml::from_str(yaml).unwrap()
    }

    #[test]
    fn a_threshold_is_set_below_what_the_node_has() {
        let of = |yaml: &str, available: u64| {
            let node = Supply { available, capacity: 25_000 * MIB, of_pods: 300 * MIB };
            let pressure = pressure(yaml);
            [threshold(&pressure, node), hard_threshold(&pressure, node).flatten()]
        };
        let some = |text: &str| Some(text.to_owned());
        for (case, available, soft_or_hard, hard) in [
            ("signal: memory.available", 24_000 * MIB + 5, some("23680Mi"), None),
            ("{signal: memory.available, distance: 1Gi}", 2048 * MIB, some("1024Mi"), None),
            ("{signal: memory.available, distance: 1Gi}", 1024 * MIB, None, None),
            ("{signal: memory.available, as-percentage: true}", 24_000 * MIB, some("94.720%"), None),
            ("{signal: pid.available, as-percentage: true}", 1001, some("0.000%"), None),
            (
                "{signal: memory.available, distance: 100Mi, soft-grace: 1s, hard-distance: 1Gi}",
                2048 * MIB,
                some("1948Mi"),
                some("1024Mi"),
            ),
        ] {
            assert_eq!(of(case, available), [soft_or_hard, hard], "{case}");
        }
    }

    #[test]
    fn what_is_reserved_leaves_pods_the_distance() {
        let reserved = pressure("{signal: memory.available, by: kube-reserved, distance: 200Mi}");
        let node = Supply { available: 24_000 * MIB, capacity: 25_000 * MIB, of_pods: 300 * MIB };
        assert_eq!(reservation(&reserved, node), Some("24500Mi".to_owned()));
        assert_eq!(reservation(&reserved, Supply { capacity: 500 * MIB, ..node }), None);
    }

    #[test]
    fn a_ramp_leaves_others_what_they_take_and_goes_as_far_as_the_hard_threshold() {
        let start = Duration::from_millis(500);
        let others = pressure("{signal: memory.available, distance: 400Mi, others: 150Mi}");
        let ramp_of_others = ramp(&others, 2, start);
        assert!(
            (346 * MIB..346 * MIB + ramp_of_others.step).contains(&ramp_of_others.total()),
            "{ramp_of_others:?}"
        );
        assert_eq!(ramp_of_others.takes(), ramp_of_others.total() + 150 * MIB);
        let both =
            pressure("{signal: memory.available, distance: 100Mi, soft-grace: 1s, hard-distance: 300Mi}");
        let both = ramp(&both, 2, start);
        assert!((396 * MIB..396 * MIB + both.step).contains(&both.total()), "{both:?}");
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
        let ramp = over(
            Way { distance: 2000 * MIB, others: 0, beyond: 50 * MIB, unit: MIB },
            Duration::from_secs(60),
        );
        assert!(ramp.step <= 25 * MIB && ramp.total() <= 2075 * MIB, "{ramp:?}");
    }

    #[test]
    fn the_environment_is_what_agnhost_and_shells_read() {
        let ramp =
            Ramp { step: 13 * MIB, pause: Duration::from_millis(250), steps: 28, unit: MIB, others: 0 };
        let text: Vec<String> =
            ramp.environment().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            text.join(" "),
            "STEP=13Mi PAUSE=250ms TOTAL=364Mi STEPS=28 STEP_BYTES=13631488 PAUSE_SECONDS=0.250 TOTAL_BYTES=381681664"
        );
    }
}
