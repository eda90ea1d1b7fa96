//! The expected outcome of a case.

use std::collections::BTreeMap;
use std::ops::Deref;

use evictlab_rules::threshold::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::assertion::{Assertion, ExpectedRate};
use crate::values::{DurationText, Name, QuantityText, UsageBound};

/// Expected outcome. Fields that are not stated are not checked; the invariants of eviction always
/// are.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Expect {
    /// Pods that are evicted, in any order; all other pods are not. `message` applies to the first
    /// one.
    #[serde(default)]
    #[schemars(with = "Vec<Name>")]
    pub evicted: ExpectedEvictions,
    /// Content of the eviction message.
    #[serde(default)]
    pub message: Option<ExpectedMessage>,
    /// Reports of the eviction that must exist. Reports that exist must agree in any case.
    #[serde(default)]
    pub witnesses: Option<Vec<Witness>>,
    /// Presence of the offender annotations in the Evicted event.
    #[serde(default)]
    pub annotations: Option<Presence>,
    /// Presence of a `DisruptionTarget` condition in the status of the pod.
    #[serde(default)]
    pub disruption_target: Option<Presence>,
    /// Maximum time from the Evicted event to the end of the last container of the pod.
    #[serde(default)]
    pub killed_within: Option<DurationText>,
    /// Minimum time from the Evicted event to the end of the last container of the pod, with a
    /// tolerance of 1 s.
    #[serde(default)]
    pub killed_after: Option<DurationText>,
    /// Error with which the API rejects an ephemeral container of the case.
    #[serde(default, rename = "refused")]
    pub api_rejection: Option<ExpectedApiRejection>,
    /// Containers that the Summary API of the node lists, by pod.
    #[serde(default)]
    pub summary: BTreeMap<Name, Vec<Name>>,
    /// Pods that may be evicted or not.
    #[serde(default)]
    pub may_be_evicted: Vec<Name>,
    /// Containers that the kernel OOM-kills, in any order; no other container of the case is. If it
    /// is stated, an OOM kill does not make the case inconclusive.
    #[serde(default)]
    pub oom_killed: Option<Vec<Name>>,
    /// Pods that the kubelet rejects at admission, in any order; it admits all others. If it is
    /// stated, a rejection does not make the case inconclusive.
    #[serde(default)]
    pub rejected: Option<Vec<Name>>,
    /// Assertions on everything that was observed.
    #[serde(default)]
    pub that: Vec<Assertion>,
    /// Rate at which a property holds, counted over many pods or many runs of the case.
    #[serde(default)]
    pub rate: Option<ExpectedRate>,
}

impl Expect {
    /// Returns whether the outcome states nothing beside the evicted pods.
    pub(crate) fn has_only_evictions(&self) -> bool {
        // Without `..`, so that a new field is not forgotten.
        let Self {
            evicted: _,
            may_be_evicted: _,
            message,
            witnesses,
            annotations,
            disruption_target,
            killed_within,
            killed_after,
            api_rejection,
            summary,
            oom_killed,
            rejected,
            that,
            rate,
        } = self;
        message.is_none()
            && witnesses.is_none()
            && annotations.is_none()
            && disruption_target.is_none()
            && killed_within.is_none()
            && killed_after.is_none()
            && api_rejection.is_none()
            && summary.is_empty()
            && oom_killed.is_none()
            && rejected.is_none()
            && that.is_empty()
            && rate.is_none()
    }
}

/// Pods that are expected to be evicted.
#[derive(Clone, Debug, Default)]
pub struct ExpectedEvictions {
    names: Vec<Name>,
    is_stated: bool,
}

impl ExpectedEvictions {
    /// Returns whether the case states the list, which may be empty.
    pub(crate) fn is_stated(&self) -> bool {
        self.is_stated
    }
}

impl Deref for ExpectedEvictions {
    type Target = Vec<Name>;

    fn deref(&self) -> &Vec<Name> {
        &self.names
    }
}

impl<'de> Deserialize<'de> for ExpectedEvictions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { names: Vec::deserialize(deserializer)?, is_stated: true })
    }
}

/// Content of an eviction message. `containers`, if stated, lists all containers that the message
/// names, in any order.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Message")]
pub struct ExpectedMessage {
    /// Resource under pressure.
    #[serde(default)]
    pub resource: Option<Resource>,
    /// Containers that the message names, with their figures.
    #[serde(default)]
    pub containers: Option<BTreeMap<Name, ResourceAmounts>>,
    /// Figures of the pod (1.34 and newer). If `containers` is stated and this is not, the message
    /// must not have them.
    #[serde(default)]
    pub pod: Option<ResourceAmounts>,
    /// Limit in "Usage of EmptyDir volume … exceeds the limit …".
    #[serde(default)]
    pub emptydir_limit: Option<VolumeLimit>,
    /// Limit in "Pod ephemeral local storage usage exceeds the total limit of containers …".
    #[serde(default)]
    pub pod_limit: Option<QuantityText>,
    /// Limit in "Container … exceeded its local ephemeral storage limit …".
    #[serde(default)]
    pub container_limit: Option<ContainerLimit>,
}

/// Figures of a container or pod in an eviction message.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Figures")]
pub struct ResourceAmounts {
    /// Request, exactly as printed.
    #[serde(default)]
    pub request: Option<QuantityText>,
    /// Bound on the usage, such as `>=200Mi`.
    #[serde(default)]
    pub usage: Option<UsageBound>,
}

/// An emptyDir volume that exceeds its `sizeLimit`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VolumeLimit {
    /// Name of the volume.
    pub volume: Name,
    /// Limit, exactly as printed.
    pub limit: QuantityText,
}

/// A container that exceeds its `ephemeral-storage` limit.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ContainerLimit {
    /// Name of the container.
    pub container: Name,
    /// Limit, exactly as printed.
    pub limit: QuantityText,
}

/// Places where the kubelet reports an eviction.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Witness {
    /// The `Evicted` event.
    Event,
    /// `status.reason` and `status.message` of the pod.
    Status,
    /// The `DisruptionTarget` condition of the pod.
    Condition,
}

/// Presence or absence.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// Must be present.
    Present,
    /// Must be absent.
    Absent,
}

/// Error of the API that rejects a request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Refused")]
pub struct ExpectedApiRejection {
    /// HTTP status code.
    pub code: u16,
    /// Reason of the Status, such as `Invalid`.
    pub reason: String,
    /// Complete message; `$(POD)` is replaced by the name of the pod.
    pub message: String,
}
