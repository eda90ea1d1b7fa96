//! Reasons to skip a case on a node. The text of a reason completes a sentence about the case.

use std::fmt;

use evictlab_case::PressureSignal;
use evictlab_cluster::PressureForbidden;
use evictlab_rules::CgroupVersion;
use evictlab_rules::quantity::MIB;

/// Kind of an eviction threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThresholdKind {
    /// Without a grace period.
    Hard,
    /// With a grace period.
    Soft,
}

impl fmt::Display for ThresholdKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hard => "hard",
            Self::Soft => "soft",
        })
    }
}

/// Resource that the limits of pods bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitedResource {
    /// Memory.
    Memory,
    /// Local ephemeral storage.
    Disk,
}

impl fmt::Display for LimitedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
        })
    }
}

/// Reason to skip a case on a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SkipReason {
    /// The node's host has the other cgroup version.
    #[error("requires cgroup {}", .0.as_str())]
    Cgroup(CgroupVersion),
    /// The node cannot have the file systems of the case.
    #[error("{0}")]
    FileSystems(String),
    /// The host of the node has fewer huge pages than the case needs.
    #[error(
        "requires {}Mi of huge pages; the node has {}Mi: reserve them on its host before the kubelet starts, with \
         `sysctl vm.nr_hugepages={}`",
        .needs / MIB,
        .has / MIB,
        .needs.div_ceil(2 * MIB)
    )]
    HugePages {
        /// Huge pages of 2Mi that the case needs, in bytes.
        needs: u64,
        /// Those of the node, in bytes.
        has: u64,
    },
    /// The host of the node has less swap space than the case needs.
    #[error("requires {}Mi of swap space; the node has {}Mi", .needs / MIB, .has / MIB)]
    Swap {
        /// Swap space that the case needs, in bytes.
        needs: u64,
        /// Swap space of the node, in bytes.
        has: u64,
    },
    /// The node has more memory than the case can have a percentage of.
    #[error(
        "the percentage threshold supports nodes with at most {}Mi of memory; the node has {}Mi",
        .most / MIB,
        .has / MIB
    )]
    MemoryTooLarge {
        /// Memory of the node, in bytes.
        has: u64,
        /// Maximum memory, in bytes.
        most: u64,
    },
    /// Pressure on the node is forbidden, and the case causes it or could cause it.
    #[error("{cause}, {forbidden}")]
    PressureForbidden {
        /// Effect of the case, such as `the case puts a node under pressure`.
        cause: String,
        /// The reason that it is forbidden.
        forbidden: PressureForbidden,
    },
    /// A pod has privileges that the user did not allow.
    #[error("{0}, which requires --allow-privileged")]
    Privileged(String),
    /// The limits of the pods are higher than `--pressure-cap`.
    #[error(
        "the pods may take {}Mi by their limits, more than the cap of {}Mi (--pressure-cap)",
        .limits / MIB,
        .cap / MIB
    )]
    LimitsOverCap {
        /// Sum of the limits, in bytes.
        limits: u64,
        /// The cap, in bytes.
        cap: u64,
    },
    /// The node has less left above its thresholds than the limits of the pods.
    #[error(
        "the pods may take {}Mi of {resource} by their limits, and the node has {}Mi left above its thresholds",
        .limits.div_ceil(MIB),
        .room / MIB
    )]
    LimitsOverRoom {
        /// The resource.
        resource: LimitedResource,
        /// Sum of the limits, in bytes.
        limits: u64,
        /// Amount above the nearest threshold of the node, in bytes.
        room: u64,
    },
    /// The case needs another kubelet configuration.
    #[error("requires another kubelet configuration, which is not supported on existing clusters: {0}")]
    Configuration(String),
    /// The case changes the node itself.
    #[error("changes the node ({0}), which is not supported on existing clusters")]
    ChangesNode(String),
    /// The case runs commands in containers, through the container runtime.
    #[error("runs commands through the container runtime, which is not supported on existing clusters")]
    RunsCommands,
    /// The kubelet would not admit the pods.
    #[error(
        "the pods request {}Mi of memory, and the node has {}Mi allocatable",
        .requested / MIB,
        .allocatable / MIB
    )]
    InsufficientMemory {
        /// Memory requests of all pods, in bytes.
        requested: u64,
        /// The node's allocatable memory, in bytes.
        allocatable: u64,
    },
    /// The scheduler places no pods on the node.
    #[error("leaves the placement of its pods to the scheduler, and the node is cordoned")]
    Cordoned,
    /// The case creates cluster-scoped objects.
    #[error(
        "creates priority or runtime classes, which are cluster-scoped: on an existing cluster, evictlab \
         creates only namespaces"
    )]
    ClusterScoped,
    /// The case reads the kubelet's log, which the API server does not serve.
    #[error("reads the kubelet's log, which existing clusters do not provide")]
    NoKubeletLog,
    /// The node cannot pull an image.
    #[error("the node has no image {image} and cannot pull it: {why}")]
    NoImage {
        /// The image.
        image: String,
        /// The kubelet's message.
        why: String,
    },
    /// The signal is not measured in bytes.
    #[error("exhausts {}, which is not supported on existing clusters: --pressure-cap limits only bytes", .0.as_str())]
    NotBytes(PressureSignal),
    /// Other nodes share the resource.
    #[error("exhausts {}, which this node shares with {}: they run on one kernel", .signal.as_str(), .shared_with.join(", "))]
    SharedResource {
        /// The signal.
        signal: PressureSignal,
        /// The other nodes.
        shared_with: Vec<String>,
    },
    /// The kubelet has no such threshold.
    #[error("the node has no {kind} threshold on {}, and its kubelet is not reconfigured", .signal.as_str())]
    NoThreshold {
        /// The signal.
        signal: PressureSignal,
        /// Kind of the threshold.
        kind: ThresholdKind,
    },
    /// A threshold of the other kind is crossed first.
    #[error(
        "{} crosses the node's {first} threshold of {}Mi before the {tested} threshold of {}Mi, which the case tests",
        .signal.as_str(),
        .first_threshold / MIB,
        .tested_threshold / MIB
    )]
    OtherThresholdFirst {
        /// The signal.
        signal: PressureSignal,
        /// Kind of the threshold that is crossed first.
        first: ThresholdKind,
        /// The threshold that is crossed first, in bytes.
        first_threshold: u64,
        /// Kind of the threshold that the case tests.
        tested: ThresholdKind,
        /// The threshold that the case tests, in bytes.
        tested_threshold: u64,
    },
    /// The Summary does not contain the signal.
    #[error("the node's Summary does not report {}", .0.as_str())]
    NoStatistics(PressureSignal),
    /// The threshold is crossed already, or closer than the case's own distance.
    #[error(
        "{} is {}Mi, the node's threshold {}Mi: the case needs {}Mi between them",
        .signal.as_str(),
        .available / MIB,
        .threshold / MIB,
        .needs / MIB
    )]
    TooClose {
        /// The signal.
        signal: PressureSignal,
        /// Available amount, in bytes.
        available: u64,
        /// The threshold, in bytes.
        threshold: u64,
        /// Distance that the case needs, in bytes.
        needs: u64,
    },
    /// The case would take more than `--pressure-cap` allows.
    #[error(
        "{} is {}Mi, the node's threshold {}Mi: the case would take {}Mi, more than the cap of {}Mi (--pressure-cap)",
        .signal.as_str(),
        .available / MIB,
        .threshold / MIB,
        .takes / MIB,
        .cap / MIB
    )]
    OverCap {
        /// The signal.
        signal: PressureSignal,
        /// Available amount, in bytes.
        available: u64,
        /// The threshold, in bytes.
        threshold: u64,
        /// Amount that the case takes, in bytes.
        takes: u64,
        /// The cap, in bytes.
        cap: u64,
    },
}
