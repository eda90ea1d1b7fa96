//! Settings of the model, and validation.

use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::Quantity;
use evictlab_rules::threshold::{
    Signal, Threshold, ThresholdConfig, ThresholdValue, parse_threshold_config_of,
};
use serde_json::{Map, Value};

use super::config_fields::ConfigFields;
use super::error::ConfigError;
use super::feature_gates::FeatureGates;
use super::fields::defaults;
use crate::defect::Defect;
use crate::options::{CgroupVersion, NodeOptions};

/// Interval of log rotation before 1.30, which has no `containerLogMonitorInterval`.
const OLD_LOG_MONITOR_INTERVAL: Duration = Duration::from_secs(10);

/// Period of node status updates if `nodeStatusUpdateFrequency` is negative: the kubelet updates
/// without a pause.
const FASTEST_STATUS_UPDATE: Duration = Duration::from_millis(100);

/// Settings of a running kubelet.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `featureGates`.
    pub gates: FeatureGates,
    /// Eviction thresholds.
    pub thresholds: Vec<Threshold>,
    /// Thresholds of `evictionHard`, which node allocatable leaves out. A soft threshold without a
    /// grace period is not one of them.
    pub hard_thresholds: Vec<Threshold>,
    /// `evictionPressureTransitionPeriod`.
    pub transition: Duration,
    /// `evictionMaxPodGracePeriod`, in seconds.
    pub max_pod_grace: i64,
    /// `kernelMemcgNotification`.
    pub memcg_notification: bool,
    /// `localStorageCapacityIsolation`.
    pub local_storage: bool,
    /// `volumeStatsAggPeriod`; `None` disables volume statistics.
    pub volume_period: Option<Duration>,
    /// `nodeStatusUpdateFrequency`.
    pub status_update: Duration,
    /// `nodeStatusReportFrequency`.
    pub status_report: Duration,
    /// `nodeLeaseDurationSeconds`.
    pub lease_seconds: i32,
    /// `kubeReserved` and `systemReserved`, by resource.
    pub reserved: BTreeMap<String, Quantity>,
    /// True with the defect that reserves storage by the threshold on imagefs.
    reserves_by_imagefs: bool,
    /// Memory limit of the cgroup of all pods, in bytes; `None` before the start.
    pub pods_limit: Option<u64>,
    /// Limit of the tasks of all pods; `None` before the start.
    pub pods_task_limit: Option<u64>,
    /// `imageMinimumGCAge`.
    pub image_min_age: Duration,
    /// `imageGCHighThresholdPercent`.
    pub image_gc_high: u64,
    /// `imageGCLowThresholdPercent`.
    pub image_gc_low: u64,
    /// `maxPods`.
    pub max_pods: u64,
    /// `containerLogMaxSize`, in bytes; `None` disables the rotation of logs.
    pub log_max_size: Option<u64>,
    /// `containerLogMaxFiles`.
    pub log_max_files: usize,
    /// `containerLogMonitorInterval`; 10 s before 1.30.
    pub log_monitor_interval: Duration,
}

impl Settings {
    /// Returns the settings of a kubelet that has not started yet: the defaults of its version.
    pub(super) fn before_start(version: &KubeletVersion) -> Self {
        // A test checks that the defaults can be read.
        let fields = ConfigFields::read(&defaults(version)).unwrap_or_default();
        let log_max_size = log_max_size(&fields.container_log_max_size).unwrap_or_default();
        Self::of_fields(&fields, FeatureGates::default(), log_max_size)
    }

    /// Reads the settings from all fields of a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] for values that the kubelet rejects.
    pub(super) fn read(all: &Map<String, Value>, options: &NodeOptions) -> Result<Self, ConfigError> {
        let fields = ConfigFields::read(all)?;
        // Before the validation of other fields.
        let gates = FeatureGates::read(all, &options.version).map_err(ConfigError::FeatureGates)?;
        if options.cgroup == CgroupVersion::V1 && fields.fail_cgroup_v1 {
            return Err(unsupported_cgroup_v1(&options.version));
        }
        validate(&fields, &options.version)?;
        let config: ThresholdConfig = serde_json::from_value(Value::Object(all.clone()))
            .map_err(|error| ConfigError::Decode(format!("json: {error}")))?;
        let hard = ThresholdConfig { eviction_hard: config.eviction_hard.clone(), ..Default::default() };
        let mut hard_thresholds =
            parse_threshold_config_of(&options.version, &hard).map_err(ConfigError::HardThresholds)?;
        let mut thresholds = parse_threshold_config_of(&options.version, &config)?;
        if options.defects.has(Defect::SoftReservesCapacity) {
            let is_soft = |threshold: &&Threshold| threshold.grace.is_some();
            hard_thresholds.extend(thresholds.iter().filter(is_soft).cloned());
        }
        if options.defects.has(Defect::HundredPercentMet) {
            thresholds.extend(hundred_percent(&config));
        }
        let reserved = reserved(&fields)?;
        let log_max_size = log_max_size(&fields.container_log_max_size)?;
        let mut settings =
            Self { thresholds, hard_thresholds, reserved, ..Self::of_fields(&fields, gates, log_max_size) };
        settings.reserves_by_imagefs = options.defects.has(Defect::ReservedStorageOfImagefs);
        settings.limit_pods(&fields, options);
        settings.check_allocatable(options)?;
        Ok(settings)
    }

    /// Returns the settings that do not depend on the node, without thresholds and reservations.
    fn of_fields(fields: &ConfigFields, gates: FeatureGates, log_max_size: Option<u64>) -> Self {
        let monitor_interval = fields.container_log_monitor_interval.as_ref();
        Self {
            gates,
            thresholds: Vec::new(),
            hard_thresholds: Vec::new(),
            transition: fields.eviction_pressure_transition_period.length.unwrap_or_default(),
            max_pod_grace: fields.eviction_max_pod_grace_period,
            memcg_notification: fields.kernel_memcg_notification,
            local_storage: fields.local_storage_capacity_isolation,
            // A negative period disables volume statistics, too.
            volume_period: fields.volume_stats_agg_period.length,
            status_update: fields.node_status_update_frequency.length.unwrap_or(FASTEST_STATUS_UPDATE),
            status_report: fields.node_status_report_frequency.length.unwrap_or_default(),
            lease_seconds: fields.node_lease_duration_seconds,
            reserved: BTreeMap::new(),
            reserves_by_imagefs: false,
            pods_limit: None,
            pods_task_limit: None,
            image_min_age: fields.image_minimum_gc_age.length.unwrap_or_default(),
            image_gc_high: to_unsigned(fields.image_gc_high_threshold_percent),
            image_gc_low: to_unsigned(fields.image_gc_low_threshold_percent),
            max_pods: to_unsigned(fields.max_pods),
            log_max_size,
            log_max_files: usize::try_from(fields.container_log_max_files).unwrap_or_default(),
            log_monitor_interval: monitor_interval
                .and_then(|interval| interval.length)
                .unwrap_or(OLD_LOG_MONITOR_INTERVAL),
        }
    }

    /// Limits memory and tasks of all pods: to what is not reserved if the configuration enforces
    /// node allocatable, otherwise to the capacity (`enforceNodeAllocatableCgroups` of
    /// `pkg/kubelet/cm/node_container_manager_linux.go`).
    fn limit_pods(&mut self, fields: &ConfigFields, options: &NodeOptions) {
        let is_enforced = fields.enforce_node_allocatable.iter().any(|enforced| enforced == "pods");
        let left = |capacity: u64, kept: i64| {
            if is_enforced { capacity.saturating_sub(to_unsigned(kept)) } else { capacity }
        };
        let reserved = |resource: &str| self.reserved.get(resource).map_or(0, Quantity::value);
        let memory = options.memory;
        let kept_memory = if options.defects.has(Defect::PodsLimitIsAllocatable) {
            self.reserved_amount("memory", memory).value()
        } else {
            reserved("memory")
        };
        self.pods_limit = Some(left(memory, kept_memory));
        self.pods_task_limit = Some(left(options.max_pid, reserved("pid")));
    }

    /// Returns the amount of a resource that is reserved for the system: the reservations, and the
    /// hard threshold on memory or disk (`GetNodeAllocatableReservation` in
    /// `pkg/kubelet/cm/node_container_manager_linux.go`).
    pub(crate) fn reserved_amount(&self, resource: &str, capacity: u64) -> Quantity {
        let reserved = self.reserved.get(resource).cloned().unwrap_or(Quantity::ZERO);
        let signal = match resource {
            "memory" => Signal::MemoryAvailable,
            "ephemeral-storage" if self.reserves_by_imagefs => Signal::ImagefsAvailable,
            "ephemeral-storage" => Signal::NodefsAvailable,
            _ => return reserved,
        };
        let hard = self.hard_thresholds.iter().rfind(|threshold| threshold.signal == signal);
        let capacity = Quantity::from_bytes(i64::try_from(capacity).unwrap_or(i64::MAX));
        match hard.and_then(|threshold| threshold.value.resolve(Some(&capacity))) {
            Some(hard) => reserved + &hard,
            None => reserved,
        }
    }

    fn check_allocatable(&self, options: &NodeOptions) -> Result<(), ConfigError> {
        let mut errors = Vec::new();
        for (resource, capacity) in [("memory", options.memory), ("ephemeral-storage", options.disk)] {
            let kept = self.reserved_amount(resource, capacity).value();
            if i128::from(kept) > i128::from(capacity) {
                errors.push(format!(
                    "Resource {resource:?} has a reservation of {{{{{kept} 0}} {{<nil>}}  BinarySI}} but capacity of \
                     {{{{{capacity} 0}} {{<nil>}}  BinarySI}}. Expected capacity >= reservation."
                ));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(ConfigError::Allocatable(errors.join(" "))) }
    }
}

/// Returns the error of a kubelet that rejects cgroup v1 (`validateKubeletOSConfiguration`).
fn unsupported_cgroup_v1(version: &KubeletVersion) -> ConfigError {
    let future = if version.at_least(35) {
        "unsupported and will be removed in a future release"
    } else {
        "in maintenance mode"
    };
    ConfigError::Invalid(format!(
        "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is {future}"
    ))
}

/// Returns the hard thresholds of 100 %, which are disabled.
fn hundred_percent(config: &ThresholdConfig) -> impl Iterator<Item = Threshold> {
    let whole = config.eviction_hard.iter().filter(|(_, value)| *value == "100%");
    whole.filter_map(|(signal, _)| Some(Threshold::hard(signal.parse().ok()?, ThresholdValue::Fraction(1.0))))
}

/// Validates numbers and enforcements, as `ValidateKubeletConfiguration` does.
fn validate(fields: &ConfigFields, version: &KubeletVersion) -> Result<(), ConfigError> {
    let mut invalid = Vec::new();
    if fields.node_lease_duration_seconds <= 0 {
        invalid.push("invalid configuration: nodeLeaseDurationSeconds must be greater than 0".to_owned());
    }
    invalid.extend(invalid_percentages(fields));
    for (field, age) in [
        ("imageMinimumGCAge", &fields.image_minimum_gc_age),
        ("imageMaximumGCAge", &fields.image_maximum_gc_age),
    ] {
        if age.is_negative() {
            invalid.push(format!("invalid configuration: {field} {} must not be negative", age.text));
        }
    }
    if fields.max_pods < 0 {
        let pods = fields.max_pods;
        invalid.push(format!(
            "invalid configuration: maxPods (--max-pods) {pods} must not be a negative number"
        ));
    }
    let files = fields.container_log_max_files;
    if files <= 1 {
        if !version.at_least(33) {
            return Err(ConfigError::Logs(format!("invalid MaxFiles {files}, must be > 1")));
        }
        invalid.push("invalid configuration: containerLogMaxFiles must be greater than 1".to_owned());
    }
    invalid.extend(invalid_enforcements(&fields.enforce_node_allocatable));
    match &invalid[..] {
        [] => Ok(()),
        [one] => Err(ConfigError::Invalid(one.clone())),
        all => Err(ConfigError::Invalid(format!("[{}]", all.join(", ")))),
    }
}

/// Validates percentages, as `ValidateKubeletConfiguration` does.
fn invalid_percentages(fields: &ConfigFields) -> Vec<String> {
    let (high, low) = (fields.image_gc_high_threshold_percent, fields.image_gc_low_threshold_percent);
    let percentages = [
        ("imageGCHighThresholdPercent", "image-gc-high-threshold", high),
        ("imageGCLowThresholdPercent", "image-gc-low-threshold", low),
    ];
    let invalid = percentages.into_iter().filter(|(_, _, percent)| !(0..=100).contains(percent));
    let mut invalid: Vec<String> = invalid
        .map(|(field, flag, percent)| {
            format!(
                "invalid configuration: {field} (--{flag}) {percent} must be between 0 and 100, inclusive"
            )
        })
        .collect();
    if low >= high {
        invalid.push(format!(
            "invalid configuration: imageGCLowThresholdPercent (--image-gc-low-threshold) {low} must be less than \
             imageGCHighThresholdPercent (--image-gc-high-threshold) {high}"
        ));
    }
    invalid
}

fn invalid_enforcements(enforced: &[String]) -> Vec<String> {
    const KNOWN: [&str; 6] = [
        "none",
        "pods",
        "system-reserved",
        "system-reserved-compressible",
        "kube-reserved",
        "kube-reserved-compressible",
    ];
    let unknown = enforced.iter().filter(|option| !KNOWN.contains(&option.as_str()));
    let message = |option: &String| {
        format!(
            "invalid configuration: option {option:?} specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid \
             options are \"pods\", \"system-reserved\", \"system-reserved-compressible\", \"kube-reserved\", \
             \"kube-reserved-compressible\" or \"none\""
        )
    };
    unknown.map(message).collect()
}

/// Returns `containerLogMaxSize` in bytes; `None` if it is negative.
fn log_max_size(text: &str) -> Result<Option<u64>, ConfigError> {
    let size: Quantity = text.parse().map_err(|_| {
        ConfigError::Logs(format!(
            "failed to parse container log max size {text:?}: quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ))
    })?;
    Ok(u64::try_from(size.value()).ok())
}

/// Returns a number, or 0 instead of a negative one.
fn to_unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Returns the sums of `kubeReserved` and `systemReserved`.
fn reserved(fields: &ConfigFields) -> Result<BTreeMap<String, Quantity>, ConfigError> {
    let mut sums: BTreeMap<String, Quantity> = BTreeMap::new();
    for (flag, amounts) in
        [("--kube-reserved", &fields.kube_reserved), ("--system-reserved", &fields.system_reserved)]
    {
        for (resource, amount) in amounts {
            let text = amount.as_deref().unwrap_or_default();
            let amount: Quantity = text
                .parse()
                .map_err(|_| ConfigError::Invalid(format!("{flag} value failed to parse: {text:?}")))?;
            let sum = sums.remove(resource).unwrap_or(Quantity::ZERO) + &amount;
            sums.insert(resource.clone(), sum);
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_all_versions_can_be_read() {
        for minor in 27..=KubeletVersion::NEWEST_MINOR {
            let version: KubeletVersion = format!("v1.{minor}.0").parse().unwrap();
            let fields = ConfigFields::read(&defaults(&version)).unwrap();
            log_max_size(&fields.container_log_max_size).unwrap();
            assert_eq!(Settings::before_start(&version).max_pods, 110);
        }
    }
}
