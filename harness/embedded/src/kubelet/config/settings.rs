//! Settings of the model, and validation.

use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::{MIB, Quantity};
use evictlab_rules::threshold::{
    Signal, Threshold, ThresholdConfig, ThresholdValue, parse_threshold_config_of,
};
use serde_json::{Map, Value};

use super::error::ConfigError;
use super::feature_gates::FeatureGates;
use super::fields::length;
use crate::defect::Defect;
use crate::kubelet::identity::Identity;
use crate::options::CgroupVersion;

/// Default of `containerLogMonitorInterval`.
const LOG_MONITOR_INTERVAL: Duration = Duration::from_secs(10);

/// Period of node status updates if `nodeStatusUpdateFrequency` is negative: the kubelet updates
/// without a pause.
const FASTEST_STATUS_UPDATE: Duration = Duration::from_millis(100);

/// Default of `nodeLeaseDurationSeconds`.
const LEASE_SECONDS: i32 = 40;

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
    /// Memory limit of the cgroup of all pods, in bytes; `None` if it is not enforced.
    pub pods_limit: Option<u64>,
    /// Limit of the tasks of all pods; `None` if it is not enforced.
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

impl Default for Settings {
    fn default() -> Self {
        Self {
            gates: FeatureGates::default(),
            thresholds: Vec::new(),
            hard_thresholds: Vec::new(),
            transition: Duration::from_secs(300),
            max_pod_grace: 0,
            memcg_notification: false,
            local_storage: true,
            volume_period: Some(Duration::from_secs(60)),
            status_update: Duration::from_secs(10),
            status_report: Duration::from_secs(300),
            lease_seconds: LEASE_SECONDS,
            reserved: BTreeMap::new(),
            pods_limit: None,
            pods_task_limit: None,
            image_min_age: Duration::from_secs(120),
            image_gc_high: 85,
            image_gc_low: 80,
            max_pods: 110,
            log_max_size: Some(10 * MIB),
            log_max_files: 5,
            log_monitor_interval: LOG_MONITOR_INTERVAL,
        }
    }
}

impl Settings {
    /// Reads the settings from all fields of a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] for values that the kubelet rejects.
    pub(super) fn read(all: &Map<String, Value>, identity: &Identity) -> Result<Self, ConfigError> {
        let is = |field: &str| all.get(field).and_then(Value::as_bool).unwrap_or(false);
        let number = |field: &str| all.get(field).and_then(Value::as_i64);
        let percentage = |field: &str| number(field).and_then(|percent| u64::try_from(percent).ok());
        // Before the validation of other fields.
        let gates = FeatureGates::read(all, &identity.version).map_err(ConfigError::FeatureGates)?;
        if identity.cgroup == CgroupVersion::V1 && is("failCgroupV1") {
            return Err(unsupported_cgroup_v1(&identity.version));
        }
        let enforced = texts(all.get("enforceNodeAllocatable"));
        validate(&number, all, &enforced, &identity.version)?;
        let config: ThresholdConfig = serde_json::from_value(Value::Object(all.clone()))
            .map_err(|error| ConfigError::Decode(format!("json: {error}")))?;
        let hard = ThresholdConfig { eviction_hard: config.eviction_hard.clone(), ..Default::default() };
        let hard_thresholds =
            parse_threshold_config_of(&identity.version, &hard).map_err(ConfigError::HardThresholds)?;
        let mut thresholds = parse_threshold_config_of(&identity.version, &config)?;
        if identity.options.defects.has(Defect::HundredPercentMet) {
            thresholds.extend(hundred_percent(&config));
        }
        let reserved = reserved(all)?;
        let left = |capacity: u64, kept: i64| capacity.saturating_sub(u64::try_from(kept).unwrap_or(0));
        let left_for_pods = |resource: &str, capacity: u64| {
            let kept = reserved.get(resource).map_or(0, Quantity::value);
            enforced.iter().any(|what| what == "pods").then(|| left(capacity, kept))
        };
        let mut settings = Self {
            gates,
            transition: all.get("evictionPressureTransitionPeriod").and_then(length).unwrap_or_default(),
            max_pod_grace: number("evictionMaxPodGracePeriod").unwrap_or(0),
            memcg_notification: is("kernelMemcgNotification"),
            local_storage: is("localStorageCapacityIsolation"),
            // A negative period disables volume statistics, too.
            volume_period: all.get("volumeStatsAggPeriod").and_then(length),
            status_update: all
                .get("nodeStatusUpdateFrequency")
                .and_then(length)
                .unwrap_or(FASTEST_STATUS_UPDATE),
            status_report: all.get("nodeStatusReportFrequency").and_then(length).unwrap_or_default(),
            lease_seconds: number("nodeLeaseDurationSeconds")
                .and_then(|seconds| i32::try_from(seconds).ok())
                .unwrap_or(LEASE_SECONDS),
            pods_limit: left_for_pods("memory", identity.options.memory),
            pods_task_limit: left_for_pods("pid", identity.options.max_pid),
            image_min_age: all.get("imageMinimumGCAge").and_then(length).unwrap_or_default(),
            image_gc_high: percentage("imageGCHighThresholdPercent").unwrap_or(85),
            image_gc_low: percentage("imageGCLowThresholdPercent").unwrap_or(80),
            max_pods: number("maxPods").and_then(|pods| u64::try_from(pods).ok()).unwrap_or(110),
            log_max_size: log_max_size(all)?,
            log_max_files: number("containerLogMaxFiles")
                .and_then(|files| usize::try_from(files).ok())
                .unwrap_or(5),
            log_monitor_interval: all
                .get("containerLogMonitorInterval")
                .and_then(length)
                .unwrap_or(LOG_MONITOR_INTERVAL),
            thresholds,
            hard_thresholds,
            reserved,
        };
        if identity.options.defects.has(Defect::PodsLimitIsAllocatable) {
            let memory = identity.options.memory;
            let kept = settings.reserved_amount("memory", memory).value();
            settings.pods_limit = settings.pods_limit.map(|_| left(memory, kept));
        }
        settings.check_allocatable(identity)?;
        Ok(settings)
    }

    /// Returns the amount of a resource that is reserved for the system: the reservations, and the
    /// hard threshold on memory or disk (`GetNodeAllocatableReservation` in
    /// `pkg/kubelet/cm/node_container_manager_linux.go`).
    pub(crate) fn reserved_amount(&self, resource: &str, capacity: u64) -> Quantity {
        let reserved = self.reserved.get(resource).cloned().unwrap_or(Quantity::ZERO);
        let signal = match resource {
            "memory" => Signal::MemoryAvailable,
            "ephemeral-storage" => Signal::NodefsAvailable,
            _ => return reserved,
        };
        let hard = self.hard_thresholds.iter().find(|threshold| threshold.signal == signal);
        let capacity = Quantity::from_bytes(i64::try_from(capacity).unwrap_or(i64::MAX));
        match hard.and_then(|threshold| threshold.value.resolve(Some(&capacity))) {
            Some(hard) => reserved + &hard,
            None => reserved,
        }
    }

    fn check_allocatable(&self, identity: &Identity) -> Result<(), ConfigError> {
        let options = &identity.options;
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
    let future = match version.at_least(35) {
        true => "unsupported and will be removed in a future release",
        false => "in maintenance mode",
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
fn validate(
    number: &dyn Fn(&str) -> Option<i64>,
    all: &Map<String, Value>,
    enforced: &[String],
    version: &KubeletVersion,
) -> Result<(), ConfigError> {
    let mut invalid = Vec::new();
    if number("nodeLeaseDurationSeconds").is_some_and(|seconds| seconds <= 0) {
        invalid.push("invalid configuration: nodeLeaseDurationSeconds must be greater than 0".to_owned());
    }
    invalid.extend(invalid_percentages(number));
    for field in ["imageMinimumGCAge", "imageMaximumGCAge"] {
        if let Some(age) = all.get(field).and_then(Value::as_str).filter(|age| age.starts_with('-')) {
            invalid.push(format!("invalid configuration: {field} {age} must not be negative"));
        }
    }
    if let Some(files) = number("containerLogMaxFiles").filter(|files| *files <= 1) {
        if !version.at_least(33) {
            return Err(ConfigError::Logs(format!("invalid MaxFiles {files}, must be > 1")));
        }
        invalid.push("invalid configuration: containerLogMaxFiles must be greater than 1".to_owned());
    }
    invalid.extend(invalid_enforcements(enforced));
    match &invalid[..] {
        [] => Ok(()),
        [one] => Err(ConfigError::Invalid(one.clone())),
        all => Err(ConfigError::Invalid(format!("[{}]", all.join(", ")))),
    }
}

/// Validates percentages, as `ValidateKubeletConfiguration` does.
fn invalid_percentages(number: &dyn Fn(&str) -> Option<i64>) -> Vec<String> {
    let percentages = [
        ("imageGCHighThresholdPercent", "image-gc-high-threshold"),
        ("imageGCLowThresholdPercent", "image-gc-low-threshold"),
    ];
    let is_invalid = |(field, flag): (&str, &str)| {
        let stated = number(field).filter(|number| !(0..=100).contains(number))?;
        Some(format!(
            "invalid configuration: {field} (--{flag}) {stated} must be between 0 and 100, inclusive"
        ))
    };
    let mut invalid: Vec<String> = percentages.into_iter().filter_map(is_invalid).collect();
    if let [Some(high), Some(low)] = percentages.map(|(field, _)| number(field))
        && low >= high
    {
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
    let unknown = enforced.iter().filter(|what| !KNOWN.contains(&what.as_str()));
    let message = |what: &String| {
        format!(
            "invalid configuration: option {what:?} specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid \
             options are \"pods\", \"system-reserved\", \"system-reserved-compressible\", \"kube-reserved\", \
             \"kube-reserved-compressible\" or \"none\""
        )
    };
    unknown.map(message).collect()
}

/// Returns `containerLogMaxSize` in bytes; `None` if it is negative.
fn log_max_size(all: &Map<String, Value>) -> Result<Option<u64>, ConfigError> {
    let text = all.get("containerLogMaxSize").and_then(Value::as_str).unwrap_or("10Mi");
    let size: Quantity = text.parse().map_err(|_| {
        ConfigError::Logs(format!(
            "failed to parse container log max size {text:?}: quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ))
    })?;
    Ok(u64::try_from(size.value()).ok())
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let all = value.and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the sums of `kubeReserved` and `systemReserved`.
fn reserved(all: &Map<String, Value>) -> Result<BTreeMap<String, Quantity>, ConfigError> {
    let mut sums: BTreeMap<String, Quantity> = BTreeMap::new();
    for field in ["kubeReserved", "systemReserved"] {
        for (resource, amount) in all.get(field).and_then(Value::as_object).into_iter().flatten() {
            let text = amount.as_str().unwrap_or_default();
            let amount: Quantity = text.parse().map_err(|_| {
                let flag = if field == "kubeReserved" { "--kube-reserved" } else { "--system-reserved" };
                ConfigError::Invalid(format!("{flag} value failed to parse: {text:?}"))
            })?;
            let sum = sums.remove(resource).unwrap_or(Quantity::ZERO) + &amount;
            sums.insert(resource.clone(), sum);
        }
    }
    Ok(sums)
}
