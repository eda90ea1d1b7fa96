//! Vectors of the kubelet's own tests of thresholds, percentages and configurations.

use std::time::Duration;

use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::{MIB, Quantity};
use evictlab_rules::summary::NodeStats;
use evictlab_rules::threshold::{
    ContainerfsThresholds, FsLayout, Observation, Signal, Threshold, ThresholdConfig, ThresholdValue,
    parse_threshold_config, parse_threshold_config_of, sort_by_eviction_priority,
    update_containerfs_thresholds,
};
use serde_json::{Value, from_value, json};

const MI: i64 = MIB as i64;

fn config(config: Value) -> Result<Vec<Threshold>, String> {
    parse_threshold_config(&from_value::<ThresholdConfig>(config).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn resolves_percentages_in_single_precision() {
    let rows = [
        (17_179_869_184, "10%", 0.100_000_001_490_116_12, "1717986944"),
        (1_048_576_000, "20%", 0.200_000_002_980_232_24, "209715203"),
        (1_048_576_000, "5%", 0.050_000_000_745_058_06, "50Mi"),
        (100_000_000_000, "15%", 0.150_000_005_960_464_48, "15000000596"),
        (6_553_600, "5%", 0.050_000_000_745_058_06, "320Ki"),
        (25_769_803_776, "90%", 0.899_999_976_158_142_1, "22649241Ki"),
        (4_294_967_296, "10.5%", 0.104_999_996_721_744_54, "450971552"),
    ];
    for (capacity, text, fraction, print) in rows {
        let value = ThresholdValue::percentage(text).unwrap();
        let ThresholdValue::Fraction(part) = value else { panic!("{value:?}") };
        assert_eq!(f64::from(part), fraction, "{text}");
        assert_eq!(
            value.resolve(Some(&Quantity::from_bytes(capacity))).unwrap().to_string(),
            print,
            "{text} of {capacity}"
        );
    }
    for text in ["blah", "foo%", "12%345", "%", ""] {
        assert!(ThresholdValue::percentage(text).is_err(), "{text}");
    }
}

#[test]
fn threshold_is_met_below_its_value() {
    let percent = |text| ThresholdValue::percentage(text).unwrap();
    let quantity = |text: &str| ThresholdValue::Quantity(text.parse().unwrap());
    // Value, minimum reclaim, capacity and available MiB; is the threshold met without and with
    // the reclaim?
    let rows = [
        (quantity("1Gi"), Some(quantity("500Mi")), 4096, 500, true, true),
        (quantity("1Gi"), Some(quantity("500Mi")), 4096, 2048, false, false),
        (quantity("1Gi"), Some(quantity("500Mi")), 4096, 1075, false, true),
        (quantity("1Gi"), None, 4096, 1024, false, false),
        (percent("20%"), None, 1000, 100, true, true),
        (percent("20%"), None, 1000, 300, false, false),
        (percent("20%"), Some(percent("5%")), 1000, 225, false, true),
        (percent("20%"), Some(percent("5%")), 1000, 300, false, false),
        (percent("30%"), None, 1000 << 10, 100 << 10, true, true),
        (percent("30%"), None, 1000 << 10, 400 << 10, false, false),
    ];
    for (value, min_reclaim, capacity, available, without, with) in rows {
        let observation = Observation {
            signal: Signal::MemoryAvailable,
            available: Quantity::from_bytes(available * MI),
            capacity: Some(Quantity::from_bytes(capacity * MI)),
            time: None,
        };
        let threshold = Threshold { signal: Signal::MemoryAvailable, value, grace: None, min_reclaim };
        assert_eq!(threshold.is_met(&observation, false), without, "{threshold:?} {available}");
        assert_eq!(threshold.is_met(&observation, true), with, "{threshold:?} {available}");
    }
}

#[test]
fn parses_configurations() {
    let parsed = config(json!({"evictionHard": {"memory.available": "150Mi"},
        "evictionSoft": {"memory.available": "300Mi"}, "evictionSoftGracePeriod": {"memory.available": "30s"},
        "evictionMinimumReclaim": {"memory.available": "0"}}))
    .unwrap();
    let signals: Vec<_> =
        parsed.iter().map(|threshold| (threshold.signal.as_str(), threshold.grace)).collect();
    let grace = Some(Duration::from_secs(30));
    assert_eq!(
        signals,
        [("memory.available", None), ("memory.available", grace), ("allocatableMemory.available", None)]
    );
    assert_eq!(parsed[0].value, parsed[2].value);
    assert!(
        parsed
            .iter()
            .all(|threshold| threshold.min_reclaim == Some(ThresholdValue::Quantity(Quantity::ZERO)))
    );

    // `isHardEvictionThreshold`: without a grace period the kubelet evicts at once.
    let immediate = config(json!({"evictionSoft": {"memory.available": "300Mi"},
        "evictionSoftGracePeriod": {"memory.available": "0s"}}))
    .unwrap();
    let signals: Vec<_> =
        immediate.iter().map(|threshold| (threshold.signal.as_str(), threshold.grace)).collect();
    assert_eq!(signals, [("memory.available", None), ("allocatableMemory.available", None)]);

    for (enforced, count) in [(json!(null), 2), (json!(["pods", "x"]), 2), (json!(["none"]), 1)] {
        let config =
            config(json!({"evictionHard": {"memory.available": "1Gi"}, "enforceNodeAllocatable": enforced}));
        assert_eq!(config.unwrap().len(), count, "{enforced}");
    }
    for off in ["0%", "100%"] {
        assert_eq!(
            config(json!({"evictionHard": {"memory.available": off, "nodefs.available": off}})),
            Ok(vec![])
        );
    }
    let part = config(json!({"evictionHard": {"nodefs.available": "10.5%"}})).unwrap();
    assert_eq!(part[0].value, ThresholdValue::Fraction(0.105));
}

#[test]
fn rejects_invalid_configurations() {
    let rows = [
        (json!({"evictionHard": {"mem.available": "150Mi"}}), "unsupported eviction signal mem.available"),
        (
            json!({"evictionHard": {"memory.available": "-150Mi"}}),
            "eviction threshold memory.available must be positive: -150Mi",
        ),
        (
            json!({"evictionHard": {"memory.available": "-2048Mi"}}),
            "eviction threshold memory.available must be positive: -2Gi",
        ),
        (
            json!({"evictionHard": {"memory.available": "-15%"}}),
            "eviction percentage threshold memory.available must be >= 0%: -15%",
        ),
        (
            json!({"evictionHard": {"memory.available": "150%"}}),
            "eviction percentage threshold memory.available must be <= 100%: 150%",
        ),
        (json!({"evictionHard": {"memory.available": ""}}), "memory.available: invalid quantity \"\""),
        (
            json!({"evictionHard": {"memory.available": "10..5%"}}),
            "memory.available: invalid percentage \"10..5%\"",
        ),
        (
            json!({"evictionSoft": {"memory.available": "1Gi"}}),
            "grace period must be specified for the soft eviction threshold memory.available",
        ),
        (
            json!({"evictionSoftGracePeriod": {"memory.available": "-30s"}}),
            "invalid eviction grace period specified: -30s, must be a positive value",
        ),
        (json!({"evictionSoftGracePeriod": {"memory.available": "30mins"}}), "invalid duration \"30mins\""),
        (
            json!({"evictionSoftGracePeriod": {"mem.available": "30s"}}),
            "unsupported eviction signal mem.available",
        ),
        (
            json!({"evictionMinimumReclaim": {"memory.available": "-300Mi"}}),
            "negative eviction minimum reclaim specified for memory.available",
        ),
        (
            json!({"evictionMinimumReclaim": {"memory.available": "-15%"}}),
            "eviction percentage minimum reclaim memory.available must be positive: -15%",
        ),
        (
            json!({"evictionMinimumReclaim": {"memory.available": ""}}),
            "memory.available: invalid quantity \"\"",
        ),
        (
            json!({"evictionMinimumReclaim": {"mem.available": "1Gi"}}),
            "unsupported eviction signal mem.available",
        ),
    ];
    for (wrong, expected) in rows {
        let error = config(wrong.clone()).unwrap_err();
        assert!(error.starts_with(expected), "{wrong}: {error}");
    }
}

/// 1.27 and 1.28 do not have the signals, not even with a value that disables them (`validSignal`).
#[test]
fn containerfs_is_a_signal_since_1_29() {
    for field in ["evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"] {
        for signal in ["containerfs.available", "containerfs.inodesFree"] {
            let value = if field == "evictionSoftGracePeriod" { "1m" } else { "0%" };
            let value = if field == "evictionMinimumReclaim" { "1" } else { value };
            let config: ThresholdConfig = from_value(json!({field: {signal: value}})).unwrap();
            for (minor, is_accepted) in [(27, false), (28, false), (29, true), (36, true)] {
                let parsed = parse_threshold_config_of(&KubeletVersion::from_minor(minor), &config);
                let expected = if is_accepted {
                    Ok(vec![])
                } else {
                    Err(format!("unsupported eviction signal {signal}"))
                };
                assert_eq!(parsed.map_err(|error| error.to_string()), expected, "{field} 1.{minor}");
            }
        }
    }
}

/// Rows of `TestUpdateContainerFsThresholds`, and the thresholds of the pass that replaces them:
/// configured containerfs thresholds are overwritten in place, others are appended and count from
/// the next pass on.
#[test]
fn containerfs_thresholds_are_overwritten() {
    let hard = json!({"nodefs.available": "10Gi", "imagefs.available": "20Gi", "nodefs.inodesFree": "5"});
    let with = |extra: Value| {
        let mut config = json!({"evictionHard": hard, "enforceNodeAllocatable": []});
        for (field, values) in extra.as_object().unwrap() {
            for (signal, value) in values.as_object().unwrap() {
                config[field][signal] = value.clone();
            }
        }
        config
    };
    let containerfs = json!({"evictionHard": {"containerfs.available": "1Gi"}});
    let soft = json!({"evictionSoft": {"containerfs.inodesFree": "7"},
        "evictionSoftGracePeriod": {"containerfs.inodesFree": "1m"}});
    // Both are hard, and only the last one of a kind is overwritten.
    let twice = json!({"evictionHard": {"containerfs.available": "1Gi"},
        "evictionSoft": {"containerfs.available": "2Gi"},
        "evictionSoftGracePeriod": {"containerfs.available": "0s"}});
    use FsLayout::{DedicatedImagefs, Single, SplitImagefs};
    // Layout, configuration, containerfs.available in the first pass and later; the conflict.
    let rows: [(_, _, &[&str], &[&str], _); 6] = [
        (Single, json!({}), &[], &["10Gi"], None),
        (DedicatedImagefs, json!({}), &[], &["20Gi"], None),
        (SplitImagefs, json!({}), &[], &["10Gi"], None),
        (
            Single,
            containerfs.clone(),
            &["10Gi"],
            &["10Gi"],
            Some("found containerfs.available for hard eviction. ignoring"),
        ),
        (
            DedicatedImagefs,
            containerfs,
            &["20Gi"],
            &["20Gi"],
            Some("found containerfs.available for hard eviction. ignoring"),
        ),
        (
            Single,
            twice,
            &["1Gi", "10Gi"],
            &["1Gi", "10Gi"],
            Some("found containerfs.available for hard eviction. ignoring"),
        ),
    ];
    let values = |thresholds: &[Threshold]| -> Vec<String> {
        let all = thresholds.iter().filter(|one| one.signal == Signal::ContainerfsAvailable);
        all.map(|one| one.value.to_string()).collect()
    };
    for (layout, extra, first, later, conflict) in rows {
        let thresholds = config(with(extra.clone())).unwrap();
        let updated = update_containerfs_thresholds(&KubeletVersion::from_minor(29), &thresholds, layout);
        assert_eq!(values(&updated.first), first, "{layout:?} {extra}");
        assert_eq!(values(&updated.later), later, "{layout:?} {extra}");
        assert_eq!(updated.conflict.as_deref(), conflict, "{layout:?} {extra}");
    }
    // Without a soft threshold on nodefs, the configured one has no replacement.
    let thresholds = config(with(soft)).unwrap();
    let ContainerfsThresholds { first, later, conflict } =
        update_containerfs_thresholds(&KubeletVersion::from_minor(36), &thresholds, FsLayout::Single);
    let inodes =
        |all: &[Threshold]| all.iter().filter(|one| one.signal == Signal::ContainerfsInodesFree).count();
    assert_eq!((inodes(&thresholds), inodes(&first), inodes(&later)), (1, 0, 1));
    assert!(later.iter().all(|threshold| threshold.grace.is_none()));
    assert_eq!(conflict.as_deref(), Some("found containerfs.inodesFree for soft eviction. ignoring"));
    // Older kubelets do not have the signal.
    let thresholds = config(with(json!({}))).unwrap();
    let old = update_containerfs_thresholds(&KubeletVersion::from_minor(28), &thresholds, FsLayout::Single);
    assert_eq!((&old.first, &old.later), (&thresholds, &thresholds));
}

#[test]
fn memory_thresholds_come_first() {
    let of = |signals: [Signal; 3]| {
        signals.map(|signal| Threshold::hard(signal, ThresholdValue::Quantity(Quantity::ZERO)))
    };
    for memory in [Signal::MemoryAvailable, Signal::AllocatableMemoryAvailable] {
        let mut thresholds = of([Signal::NodefsAvailable, Signal::PidAvailable, memory]);
        sort_by_eviction_priority(&mut thresholds);
        assert_eq!(thresholds[0].signal, memory);
    }
    let (memory, pods) = (Signal::MemoryAvailable, Signal::AllocatableMemoryAvailable);
    let mut thresholds = of([memory, Signal::PidAvailable, pods]);
    sort_by_eviction_priority(&mut thresholds);
    assert_eq!(thresholds.map(|threshold| threshold.signal), [pods, memory, Signal::PidAvailable]);
}

#[test]
fn observes_signals_in_a_summary() {
    let node: NodeStats = from_value(json!({
        "memory": {"availableBytes": 1500 * MI, "workingSetBytes": 500 * MI},
        "systemContainers": [{"name": "pods", "memory": {"availableBytes": 2 * MI, "workingSetBytes": MI}}],
        "fs": {"availableBytes": 3 * MI, "capacityBytes": 4 * MI, "inodesFree": 12000, "inodes": 1_000_000},
        "runtime": {"imageFs": {"availableBytes": 5 * MI}, "containerFs": {"availableBytes": 6 * MI,
            "capacityBytes": 7 * MI, "inodesFree": 1}},
        "rlimit": {"maxpid": 255_816, "curproc": 1000}
    }))
    .unwrap();
    let rows = [
        (Signal::MemoryAvailable, Some(("1500Mi", Some("2000Mi")))),
        (Signal::AllocatableMemoryAvailable, Some(("2Mi", Some("3Mi")))),
        (Signal::NodefsAvailable, Some(("3Mi", Some("4Mi")))),
        (Signal::NodefsInodesFree, Some(("12k", Some("1M")))),
        // `makeSignalObservations` needs the capacity, too.
        (Signal::ImagefsAvailable, None),
        (Signal::ImagefsInodesFree, None),
        (Signal::ContainerfsAvailable, Some(("6Mi", Some("7Mi")))),
        (Signal::ContainerfsInodesFree, None),
        (Signal::PidAvailable, Some(("254816", Some("255816")))),
    ];
    for (signal, expected) in rows {
        let observed = Observation::from_node_stats(signal, &node);
        let printed =
            observed.map(|it| (it.available.to_string(), it.capacity.map(|capacity| capacity.to_string())));
        let expected =
            expected.map(|(available, capacity)| (available.to_owned(), capacity.map(str::to_owned)));
        assert_eq!(printed, expected, "{signal}");
    }
}
