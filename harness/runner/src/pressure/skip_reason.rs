//! Reasons to skip a case on a node.

use evictlab_cluster::PressureForbidden;
use evictlab_rules::CgroupVersion;
use evictlab_rules::quantity::MIB;

/// Reason to skip a case on a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SkipReason {
    /// The node's host has the other cgroup version.
    #[error("it applies to cgroup {}", .0.as_str())]
    Cgroup(CgroupVersion),
    /// The node cannot have the file systems of the case.
    #[error("{0}")]
    FileSystems(String),
    /// The host of the node has fewer huge pages than the case needs.
    #[error(
        "it needs {}Mi of huge pages, and the node has {}Mi: reserve them on its host before the kubelet starts, with \
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
    #[error("it needs {}Mi of swap space, and the node has {}Mi", .needs / MIB, .has / MIB)]
    Swap {
        /// Swap space that the case needs, in bytes.
        needs: u64,
        /// Swap space of the node, in bytes.
        has: u64,
    },
    /// The node has more memory than the case can have a percentage of.
    #[error(
        "its threshold is a percentage of the node's memory, of at most {}Mi, and the node has {}Mi",
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
    #[error("{0}, which takes --allow-privileged")]
    Privileged(String),
    /// The limits of the pods are higher than `--pressure-cap`.
    #[error(
        "its pods may take {}Mi by their limits, more than the cap of {}Mi (--pressure-cap)",
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
        "its pods may take {}Mi of {resource} by their limits, and the node has {}Mi left above its thresholds",
        .limits.div_ceil(MIB),
        .room / MIB
    )]
    LimitsOverRoom {
        /// `memory` or `disk`.
        resource: &'static str,
        /// Sum of the limits, in bytes.
        limits: u64,
        /// Amount above the nearest threshold of the node, in bytes.
        room: u64,
    },
    /// The case needs another kubelet configuration.
    #[error("it needs to change the kubelet's configuration, which is not done on an existing cluster: {0}")]
    Configuration(String),
    /// The case changes the node itself.
    #[error("it changes the node ({0}), which is not done on an existing cluster")]
    ChangesNode(String),
    /// The case runs commands in containers, through the container runtime.
    #[error(
        "it runs commands in containers (exec) through the runtime, which is not done on an existing cluster"
    )]
    RunsCommands,
    /// The kubelet would not admit the pods.
    #[error(
        "its pods request {}Mi of memory, and the node has {}Mi allocatable",
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
    #[error("its pods are placed by the scheduler, and the node is cordoned")]
    Cordoned,
    /// The case creates cluster-scoped objects.
    #[error(
        "it creates priority or runtime classes, which are cluster-scoped: on an existing cluster, evictlab \
         creates only namespaces"
    )]
    ClusterScoped,
    /// The case reads the kubelet's log, which the API server does not serve.
    #[error("it reads the kubelet's log, which an existing cluster does not provide")]
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
    #[error("it exhausts {0}, which is not done on an existing cluster: --pressure-cap limits only bytes")]
    NotBytes(&'static str),
    /// Other nodes share the resource.
    #[error("it exhausts {signal}, which this node shares with {}: they run on one kernel", .shared_with.join(", "))]
    SharedResource {
        /// The signal.
        signal: &'static str,
        /// The other nodes.
        shared_with: Vec<String>,
    },
    /// The kubelet has no such threshold.
    #[error("the node has no {kind} threshold on {signal}, and its kubelet is not reconfigured")]
    NoThreshold {
        /// The signal.
        signal: &'static str,
        /// `hard` or `soft`.
        kind: &'static str,
    },
    /// A threshold of the other kind is crossed first.
    #[error(
        "{signal} crosses the node's {first} threshold of {first_mib}Mi before the {tested} threshold of \
         {tested_mib}Mi, which the case tests"
    )]
    OtherThresholdFirst {
        /// The signal.
        signal: &'static str,
        /// Kind of the threshold that is crossed first.
        first: &'static str,
        /// Value of the threshold that is crossed first, in MiB.
        first_mib: u64,
        /// Kind of the threshold that the case tests.
        tested: &'static str,
        /// Value of the threshold that the case tests, in MiB.
        tested_mib: u64,
    },
    /// The Summary does not contain the signal.
    #[error("the node's Summary does not report {0}")]
    NoStatistics(&'static str),
    /// The threshold is crossed already, or closer than the case's own distance.
    #[error(
        "{signal} is {available}Mi, the node's threshold {threshold}Mi: the case needs {needs}Mi between them"
    )]
    TooClose {
        /// The signal.
        signal: &'static str,
        /// Available amount, in MiB.
        available: u64,
        /// The threshold, in MiB.
        threshold: u64,
        /// Distance that the case needs, in MiB.
        needs: u64,
    },
    /// The case would take more than `--pressure-cap` allows.
    #[error(
        "{signal} is {available}Mi, the node's threshold {threshold}Mi: the case would take {takes}Mi, more than \
         the cap of {cap}Mi (--pressure-cap)"
    )]
    OverCap {
        /// The signal.
        signal: &'static str,
        /// Available amount, in MiB.
        available: u64,
        /// The threshold, in MiB.
        threshold: u64,
        /// Amount that the case takes, in MiB.
        takes: u64,
        /// The cap, in MiB.
        cap: u64,
    },
}
