//! All defects.

use std::fmt;
use std::str::FromStr;

use evictlab_rules::KubeletVersion;

use super::area::{Area, kebab_case};

macro_rules! defects {
    ($($area:ident {
        $($name:ident $(since $minor:literal)? $(except $from:literal to $to:literal)? = $about:literal,)+
    })+) => {
        /// Defect of a kubelet. Its name is the variant's in kebab case.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Defect {
            $($(#[doc = $about] $name,)+)+
        }

        impl Defect {
            /// All defects, by area.
            pub const ALL: &'static [Self] = &[$($(Self::$name,)+)+];

            /// Returns the part of the kubelet that the defect is in.
            pub fn area(self) -> Area {
                match self { $($(Self::$name => Area::$area,)+)+ }
            }

            /// Returns a description in one sentence.
            pub fn about(self) -> &'static str {
                match self { $($(Self::$name => $about,)+)+ }
            }

            /// Returns the first minor version whose kubelets differ with the defect; `None` if all
            /// do. Older kubelets behave as if they had the defect, or lack the feature.
            pub fn since(self) -> Option<u32> {
                match self { $($(Self::$name => defects!(@optional $($minor)?),)+)+ }
            }

            /// Returns the first and last minor version of kubelets that behave like the defect at
            /// random, although older and newer ones do not.
            pub fn except(self) -> Option<(u32, u32)> {
                match self { $($(Self::$name => defects!(@optional $(($from, $to))?),)+)+ }
            }
        }
    };
    (@optional) => { None };
    (@optional $value:expr) => { Some($value) };
}

defects! {
    Message {
        MessageOmitsSidecars since 32 = "The message does not name init containers and sidecars.",
        MessageNamesWithinRequest = "The message names containers within their requests.",
        MessageNamesOnlyFirst = "The message names only the first container over its request.",
        MessageNamesEphemeral = "The message names ephemeral containers.",
        MessageRequestIsZero = "The message gives 0 as the request of every container.",
        MessageUsageOfPod = "The message gives the usage of the pod as that of each container.",
        MessageUsageInBytes = "The message gives the usage in bytes, without a binary unit.",
        MessageUsageRounded = "The message gives usages in whole Mi, rounded down.",
        MessageThresholdInBytes = "The message gives the threshold in bytes, without a binary unit.",
        MessageAvailableInBytes = "The message gives the available amount in bytes, without a binary unit.",
        MessageOmitsThreshold = "The message does not contain the threshold.",
        MessageSwapsThreshold = "The message gives the available amount as the threshold, and vice versa.",
        MessageQuotesOtherThreshold = "The message of a soft eviction contains the hard threshold of the signal.",
        MessageResourceIsMemory = "The message names memory as the resource of every eviction.",
        MessageOmitsPodRequest since 34 = "The message does not name a pod with a pod-level request.",
        MessageOmitsLogs = "The usage of ephemeral storage in the message does not include logs.",
        MessageOmitsLayers = "The usage of ephemeral storage in the message does not include writable layers.",
        MessageThresholdWithReclaim = "The threshold in the message includes evictionMinimumReclaim.",
        MessageRequestIsPending since 33 = "The message gives the requests of a resize that the node has no room for.",
        MessageRequestIsLimit = "The message gives limits instead of requests.",
    }
    Annotations {
        AnnotationsMissing = "The Evicted event has no annotations.",
        AnnotationsOmitResource = "The annotation starved_resource is missing.",
        AnnotationsOmitUsage = "The annotation offending_containers_usage is missing.",
        AnnotationsGiveRequests = "The annotation offending_containers_usage gives the requests of the containers.",
        AnnotationsOmitEmpty = "The annotations are missing if no container is over its request.",
        AnnotationsOmitPod since 34 = "The annotations do not name a pod with a pod-level request.",
        AnnotationsOnLimits = "The event of a pod over its own limit has annotations.",
    }
    Ranking {
        MemoryRankIgnoresRequests = "Pods over their memory requests do not rank before others.",
        MemoryRankIgnoresPriority = "Priority does not decide under memory pressure.",
        MemoryRankReversesPriority = "The pod of higher priority ranks first under memory pressure.",
        MemoryRankPriorityFirst = "Priority ranks before the comparison with the memory request.",
        ResizeIgnored since 33 = "A resize does not change the requests that eviction reads.",
        PendingResizeCounts since 33 = "Eviction reads the requests of a resize that the node has no room for.",
        MemoryRankByUsage = "The memory usage decides instead of the excess over the request.",
        MemoryRankLeastFirst = "The pod with the smallest excess over its memory request ranks first.",
        MemoryRankUsageOfFirst = "The memory usage of a pod is that of its first container.",
        RankNegativePriorityIsZero = "A negative priority counts as 0.",
        RankPriorityOverflows = "The difference of two priorities overflows 32 bits.",
        RankRequestOfFirst = "The request of a pod is that of its first container.",
        RankByLimits = "Limits decide instead of requests.",
        RankOmitsSidecarRequests since 34 = "Requests of sidecars do not count in the request of the pod.",
        RankOmitsPodRequests since 34 = "Pod-level requests do not count in the request of the pod.",
        DiskRankIgnoresRequests = "Pods over their storage requests do not rank before others.",
        DiskRankIgnoresPriority = "Priority does not decide under disk pressure.",
        DiskRankByUsage = "The disk usage decides instead of the excess over the request.",
        DiskRankLeastFirst = "The pod with the smallest excess over its storage request ranks first.",
        DiskRankIgnoresLayout = "Layers, logs and volumes count for every file system that is short of space.",
        DiskRankOmitsVolumes = "Volumes do not count in the disk usage of a pod.",
        DiskRankOmitsLogs = "Logs do not count in the disk usage of a pod.",
        DiskRankOmitsLayers = "Writable layers do not count in the disk usage of a pod.",
        DiskRankCountsMemoryVolumes = "Memory-backed volumes count in the disk usage of a pod.",
        InodeRequestIsStorage = "A request for ephemeral storage is compared with the number of files under inode pressure.",
        InodeRankOmitsLayers = "Files in writable layers do not count under inode pressure.",
        InodeRankVolumesAreFileSystems = "A volume counts with all files of its file system under inode pressure.",
        InodeRankByBytes = "Bytes decide instead of inodes under inode pressure.",
        PidRankIgnoresPriority = "Priority does not decide under PID pressure.",
        PidRankIgnoresProcesses since 31 = "The number of processes does not decide under PID pressure.",
        PidRankFewestFirst since 31 = "The pod with the fewest processes ranks first under PID pressure.",
        RankEvictsTwo = "One pass evicts two pods.",
        RankOmitsInitRequests = "Requests of plain init containers do not count in the request of the pod.",
        MemoryRankByRatio = "The usage in proportion to the memory request decides instead of the excess over it.",
        DiskRankOmitsSidecars since 29 = "Layers and logs of sidecars do not count in the disk usage of a pod.",
        DiskRankSplitOmitsLayers since 29 = "With different file systems for images and layers, layers do not count for nodefs.",
        RankSparesTerminating = "A pod that is being deleted is not evicted.",
        RankOmitsOverhead = "The overhead of a runtime class does not count in the request of the pod.",
        RankOverheadAlone = "The overhead of a runtime class is the request of a pod without requests.",
        DiskRankImagefsIsDedicated = "For imagefs.available, only writable layers count, even if there is one file system.",
        DiskRankNodefsOmitsLogs = "Beside a dedicated imagefs, logs do not count for nodefs.",
        DiskRankNodefsOmitsVolumes = "Beside a dedicated imagefs, volumes do not count for nodefs.",
        InodeRankNodefsByBytes = "Beside a dedicated imagefs, bytes decide instead of inodes on nodefs.",
        // Older kubelets have no default threshold on imagefs.inodesFree, and no case sets one.
        InodeRankImagefsByBytes since 30 = "Bytes decide instead of inodes on a dedicated imagefs.",
        AllocatableRankIsOfPids = "Priority and processes decide if allocatable memory is short.",
        MemoryRankCountsCache = "The inactive file cache counts in the memory usage of a pod.",
        MemoryRankByRss = "The memory usage of a pod is its resident set, without shared memory.",
    }
    Grace {
        HardGraceIsOwn since 31 = "A pod evicted by a hard threshold gets its own grace period.",
        HardGraceIsMaximum since 31 = "A pod evicted by a hard threshold gets evictionMaxPodGracePeriod, if that is set.",
        HardGraceTenSeconds = "A pod evicted by a hard threshold gets a grace period of 10 s.",
        HardGraceFiveSeconds = "A pod evicted by a hard threshold gets a grace period of 5 s.",
        LimitGraceIsOwn since 31 = "A pod over its own limit gets its own grace period.",
        LimitGraceIsMaximum since 31 = "A pod over its own limit gets evictionMaxPodGracePeriod, if that is set.",
        LimitGraceTenSeconds = "A pod over its own limit gets a grace period of 10 s.",
        LimitGraceFiveSeconds = "A pod over its own limit gets a grace period of 5 s.",
        SoftGraceIsMaximum since 32 = "A soft eviction gives a pod evictionMaxPodGracePeriod, even if its own period is shorter.",
        SoftGraceIsOwn = "A soft eviction ignores evictionMaxPodGracePeriod.",
        SoftGraceZeroIsOwn = "An evictionMaxPodGracePeriod of 0 does not limit the grace period of a soft eviction.",
        SoftGraceIsImmediate = "A soft eviction gives a pod a grace period of 1 s.",
        VolumeLimitGraceIsOwn since 31 = "A pod over the size limit of a volume gets its own grace period.",
        ContainerLimitGraceIsOwn since 31 = "A pod over the limit of a container gets its own grace period.",
        ContainerLimitGraceIsMaximum since 31 = "A pod over the limit of a container gets evictionMaxPodGracePeriod, if that is set.",
    }
    Termination {
        PreStopHookSkipped = "A killed container ends without its preStop hook.",
        HookTimeNotSubtracted = "The grace period of a container begins after its preStop hook.",
        SidecarsStopAtOnce since 29 = "Sidecars are stopped together with the regular containers.",
        SidecarsStopInOrder since 29 = "Sidecars are stopped in the order of their start.",
        SidecarsWaitForEnded since 29 = "Sidecars wait for regular containers that have ended, until the grace period is over.",
        SidecarsEndAfterSuccess since 29 = "A sidecar that exits with code 0 is not restarted.",
        SidecarWaitNotSubtracted since 29 = "The grace period of a sidecar begins after the end of the regular containers.",
        MinimumGraceMissing = "A container whose grace period is used up gets no time between SIGTERM and SIGKILL.",
        PreStopHookUnlimited = "A preStop hook is not ended by the end of the grace period.",
    }
    Threshold {
        SoftActsAtOnce = "A soft threshold acts without its grace period.",
        SoftDiskActsAtOnce = "Soft thresholds of disks act without their grace period.",
        SoftWaitsTwice = "A soft threshold acts after twice its grace period.",
        HardWaitsForSoft = "A hard threshold acts after the grace period of the soft threshold of its signal.",
        SoftNeverActs = "A soft threshold never acts.",
        SoftGraceRemembers = "A soft threshold that is crossed again acts without another grace period.",
        SoftConditionLate = "A soft threshold changes the node condition only after its grace period.",
        SoftLimitsAllocatable = "Soft memory thresholds apply to the memory that is allocatable to pods, too.",
        MinimumReclaimIgnored = "evictionMinimumReclaim has no effect.",
        SoftMinimumReclaimIgnored = "evictionMinimumReclaim has no effect on soft thresholds.",
        MinimumReclaimDoubled = "evictionMinimumReclaim counts twice.",
        MinimumReclaimAlways = "evictionMinimumReclaim applies before the threshold is crossed, too.",
        TransitionIgnored = "A node condition ends with the pressure.",
        TransitionFromFirst = "The transition period counts from the begin of the pressure.",
        TransitionDoubled = "A node condition holds for twice the transition period.",
        TransitionHalved = "A node condition holds for half of the transition period.",
        TransitionIsDefault = "A node condition holds for the default of five minutes.",
        DiskReclaimedFirst = "A node that is short of memory and of disk space reclaims disk space.",
        PercentOfAvailable = "A percentage refers to the available amount instead of the capacity.",
        MemoryAvailableOmitsCache = "The inactive file cache does not count as available memory.",
        PercentIgnored = "Thresholds in percent are never met.",
        // Nodes of kind state all default thresholds of older kubelets.
        ThresholdDefaultsMerged since 30 = "Explicit hard thresholds do not replace the default ones.",
        MergedDefaultsWin since 33 = "With mergeDefaultEvictionSettings, the default thresholds replace the configured ones.",
        AllocatablePercentOfMemory = "A storage threshold in percent reserves that share of the memory.",
        ImagefsInodesUndefaulted since 30 = "imagefs.inodesFree has no default threshold.",
        TransitionZeroKept = "A transition period of 0 s stays 0 s.",
        AllocatablePercentOfAvailable = "A memory threshold in percent, for the memory that is allocatable to pods, refers to what is available of it.",
        AllocatablePercentOfCapacity = "A memory threshold in percent, for the memory that is allocatable to pods, refers to the memory of the node.",
        AllocatableIgnored = "A hard memory threshold does not apply to the memory that is allocatable to pods.",
        AllocatableCountsHugePages = "Memory that huge pages reserve is allocatable.",
        AllocatableTasksUnlimited = "The cgroup of all pods has no limit of tasks.",
        AllocatableUnlimited = "The cgroup of all pods has no memory limit.",
        HundredPercentMet = "A threshold of 100 % is always met instead of disabled.",
        LoopWaitsAfterEviction = "The eviction manager evaluates thresholds 10 s after an evicted pod was cleaned up, not at once.",
        LoopEveryThirtySeconds = "The eviction manager evaluates thresholds every 30 s.",
        LoopSkipsCleanup = "The eviction manager evaluates thresholds before the volumes of an evicted pod are removed.",
        SoftGraceIsShortest = "All soft thresholds have the shortest of the configured grace periods.",
        ImagefsInodesOfNodefs = "The free inodes of imagefs and containerfs are those of nodefs.",
        ContainerfsThresholdOfNodefs since 29 = "Layers on a dedicated imagefs have the threshold of nodefs.",
        PodsLimitIsAllocatable = "The memory limit of the cgroup of all pods does not include the hard threshold.",
        SoftGraceIsLongest = "All soft thresholds have the longest of the configured grace periods.",
        SoftGraceOfAnother = "The grace period of a soft threshold begins when a threshold of any signal is crossed.",
        TransitionOfAnother = "A node condition holds as long as there is pressure of another kind.",
        MinimumReclaimInGrace = "evictionMinimumReclaim prolongs the pressure on a soft threshold before its grace period is over.",
        MinimumReclaimOfNodeOnly = "evictionMinimumReclaim of memory.available does not apply to the memory allocatable to pods.",
        MinimumReclaimPercentIgnored = "evictionMinimumReclaim in percent has no effect.",
        AllocatableReclaimedLast = "A node that is short of allocatable memory and of disk space reclaims disk space.",
        InodePercentOfFree = "A percentage of inodes refers to the free ones.",
        ReservedStorageOfImagefs = "The threshold on imagefs instead of nodefs reduces the storage that is allocatable.",
        PidsReclaimedFirst = "A node that is short of memory and of process IDs reclaims process IDs.",
        ContainerfsBytesActAtOnce since 29 = "The copy of a soft threshold for containerfs.available acts without its grace period.",
        ContainerfsInodesActAtOnce since 29 = "The copy of a soft threshold for containerfs.inodesFree acts without its grace period.",
        NodefsDefaultHalved = "The default threshold on nodefs.available is 5 %.",
        SoftReservesCapacity = "A soft threshold reduces what is allocatable to pods like a hard one.",
    }
    Conditions {
        MemoryPressureMissing = "The node does not report MemoryPressure.",
        DiskPressureMissing = "The node does not report DiskPressure.",
        PidPressureMissing = "The node does not report PIDPressure.",
        PressureReasonStale = "A pressure condition that is True has the reason of False.",
        PressureEndMessageStale = "A pressure condition that is False has the message of True.",
        PressureOfAllocatableMissing = "Too little allocatable memory does not cause MemoryPressure.",
        PressureMessageStale = "A pressure condition that is True has the message of False.",
        PressureTransitionStays = "The end of pressure does not change the lastTransitionTime of its condition.",
        PressureTransitionMoves = "Each status update changes the lastTransitionTime of pressure conditions.",
        PressureEventMissing = "A change of a pressure condition causes no event.",
        PressureEventReasonDiffers = "The event about a changed pressure condition has the reason NodeConditionChanged.",
        MemoryTaintMissing = "Memory pressure does not taint the node.",
        DiskTaintMissing = "Disk pressure does not taint the node.",
        PidTaintMissing = "PID pressure does not taint the node.",
        PressureOfInodesMissing = "Too few free inodes do not cause DiskPressure.",
        PressureTransitionOfAll = "A change of one pressure condition changes the lastTransitionTime of all.",
        MemoryPressureReportedLate = "A change of MemoryPressure waits for the next regular report of the node's status.",
        DiskPressureReportedLate = "A change of DiskPressure waits for the next regular report of the node's status.",
        PidPressureReportedLate = "A change of PIDPressure waits for the next regular report of the node's status.",
        PressureHeartbeatStale = "The lastHeartbeatTime of a pressure condition changes only with its status.",
        PressureOfNodefsMissing = "Too little space on nodefs does not cause DiskPressure.",
        PressureOfImagefsMissing = "Too little space on imagefs does not cause DiskPressure.",
        PressureOfNodefsInodesMissing = "Too few free inodes on nodefs do not cause DiskPressure.",
        PressureEndsAtThreshold = "A node condition does not last until evictionMinimumReclaim is met.",
        MemoryPressureEndWithoutEvent = "The end of MemoryPressure causes no event.",
        DiskPressureEndWithoutEvent = "The end of DiskPressure causes no event.",
        PidPressureEndWithoutEvent = "The end of PIDPressure causes no event.",
    }
    Admission {
        AdmissionAdmitsBestEffort = "A node under memory pressure admits BestEffort pods.",
        AdmissionRejectsBurstable = "A node under memory pressure rejects Burstable pods.",
        AdmissionRejectsGuaranteed = "A node under memory pressure rejects Guaranteed pods.",
        AdmissionIgnoresToleration = "A node under memory pressure rejects BestEffort pods that tolerate it.",
        AdmissionAcceptsOtherToleration = "A node under memory pressure admits BestEffort pods that tolerate another taint of effect NoSchedule.",
        AdmissionRejectsCritical = "A node under pressure rejects critical pods.",
        AdmissionRejectsClusterCritical = "A node under pressure rejects pods of the class system-cluster-critical.",
        AdmissionRejectsStatic = "A node under pressure rejects static pods without a system priority.",
        AdmissionIgnoresDisk = "A node under disk pressure admits all pods.",
        AdmissionDiskSparesBurstable = "A node under disk pressure admits Burstable pods.",
        AdmissionMemoryHidesDisk = "A node under memory and disk pressure admits Burstable pods.",
        AdmissionDiskSparesTolerant = "A node under disk pressure admits pods that tolerate memory pressure.",
        AdmissionIgnoresPids = "A node under PID pressure admits all pods.",
        AdmissionIgnoresNodeSelector = "The kubelet admits pods whose node selector does not match.",
        AdmissionReasonDiffers = "A rejected pod has the reason NodePressure instead of Evicted.",
        AdmissionWithoutEvent = "The rejection of a pod causes no event.",
        AdmissionIsCounted = "kubelet_evictions counts rejected pods.",
        AdmissionIgnoresTolerationOfAll = "A node under memory pressure rejects BestEffort pods that tolerate all taints.",
        AdmissionNamesFirstCondition = "The message of a rejection names only one of several conditions.",
        AdmissionIgnoresTransition = "A node admits pods as soon as the pressure has ended, although it still reports the condition.",
        AdmissionSwapsUsedAndCapacity = "The message of a pod that does not fit gives the capacity as used, and vice versa.",
        AdmissionCountedAsOther since 32 = "kubelet_admission_rejections_total counts rejections under pressure under the reason Other.",
        AdmissionTolerationOfNoExecute = "Only tolerations of the effect NoExecute count for the exception of memory pressure.",
        TerminatingPodsHoldNothing = "The requests of an evicted pod do not count any more while its containers terminate.",
        AdmissionCountsEnded = "Requests of pods that have ended count at admission until their objects are deleted.",
        RestartAllocatesResizes since 33 = "A restarted kubelet allocates a resize that the node has no room for.",
        DeferredResizesByLowPriority since 34 = "Of deferred resizes, that of the pod of the lowest priority comes first.",
        ResizePolicyOfAnyResource since 33 = "A resize restarts a container whose policy requires it for another resource only.",
        ResizeIgnoresEndedPods since 36 = "A resize that the node had no room for is not tried again when another pod has ended.",
        AdmissionMemoryHidesPids = "A node under memory and PID pressure admits Burstable pods.",
        AdmissionEventNormal = "The event about a rejected pod is of type Normal.",
        AdmissionExtendedCountedAsOther since 32 = "kubelet_admission_rejections_total counts rejections for extended resources under the reason Other.",
        AdmissionSwapsCpuAndMemory = "A pod that lacks CPU is rejected with the reason OutOfmemory, and vice versa.",
        RestartAdmitsEndedPods = "A restarted kubelet admits pods again that have ended.",
    }
    Critical {
        CriticalIsEvicted = "A pod of a system priority class is evicted.",
        CriticalStopsEviction = "No pod is evicted if a critical pod ranks first.",
        StaticIsEvicted = "A static pod is evicted.",
        StaticLimitEnforced = "A static pod over its own storage limit is evicted.",
        ClusterCriticalIsOrdinary = "A pod of the priority class system-cluster-critical may be evicted.",
        PriorityIsCritical = "A pod of any positive priority counts as critical.",
        CriticalLimitEnforced = "A critical pod over its own storage limit is evicted.",
    }
    Limits {
        LimitsIgnored = "No limit of local storage is enforced.",
        LimitsHalved = "Limits of local storage are enforced at half their value.",
        LimitsDoubled = "Limits of local storage are enforced at twice their value.",
        LimitsAtFourFifths = "Limits of local storage are enforced at 80 % of their value.",
        LimitsAtSixFifths = "Limits of local storage are enforced at 120 % of their value.",
        ContainerLimitIgnored = "Limits of containers are not enforced.",
        ContainerLimitHalved = "Limits of containers are enforced at half their value.",
        ContainerLimitDoubled = "Limits of containers are enforced at twice their value.",
        ContainerLimitOmitsLogs = "Logs do not count against the limit of a container.",
        ContainerLimitOmitsLayers = "Writable layers do not count against the limit of a container.",
        ContainerLimitZeroEnforced = "A storage limit of 0 is enforced instead of ignored.",
        ContainerLimitNamesFirst = "The message names the first container of the pod instead of the one over its limit.",
        PodLimitIgnored = "The total limit of a pod is not enforced.",
        PodLimitHalved = "The total limit of a pod is enforced at half its value.",
        PodLimitDoubled = "The total limit of a pod is enforced at twice its value.",
        PodLimitOfFirst = "The total limit of a pod is that of its first limited container.",
        PodLimitOmitsSidecars since 29 = "Limits of sidecars do not count toward the total limit of a pod.",
        PodLimitOmitsInit = "Limits of plain init containers do not count toward the total limit of a pod.",
        PodLimitOmitsVolumes = "Volumes do not count against the total limit of a pod.",
        PodLimitOmitsLogs = "Logs do not count against the total limit of a pod.",
        PodLimitCountsLogsTwice = "Logs count twice against the total limit of a pod.",
        PodLimitOmitsLayers = "Writable layers do not count against the total limit of a pod.",
        PodLimitCountsMemoryVolumes = "Memory-backed volumes count against the total limit of a pod.",
        MemoryVolumeUnsized = "A memory-backed volume has the default size of a tmpfs, half of the memory.",
        MemoryVolumeSizedByThePodLimit = "A memory-backed volume has the size of the pod's memory limit, if the pod has one.",
        MemoryVolumeIgnoresThePodLimit = "A memory-backed volume can be larger than the memory limit of its pod.",
        VolumeLimitIgnored = "Size limits of emptyDir volumes are not enforced.",
        VolumeLimitHalved = "Size limits of emptyDir volumes are enforced at half their value.",
        VolumeLimitDoubled = "Size limits of emptyDir volumes are enforced at twice their value.",
        VolumeLimitOfFirst = "Only the size limit of a pod's first emptyDir is enforced.",
        VolumeLimitZeroEnforced = "A size limit of 0 is enforced instead of ignored.",
        PodLimitNeedsAllLimits = "The total limit of a pod is enforced only if all its regular containers have one.",
        LimitsNeedThresholds = "Limits of local storage are enforced only if a threshold is configured.",
        LimitsNeedPressure = "Limits of local storage are enforced only while a threshold is crossed.",
        LimitsIgnoredUnderPressure = "Limits of local storage are not enforced while a threshold is crossed.",
        LimitsEvictOne = "One pass evicts only one of the pods over their limits of local storage.",
        ContainerLimitIsRequest = "The ephemeral-storage request of a container is enforced as its limit.",
        PodLimitCheckedFirst = "The total limit of a pod is checked before the size limits of its volumes.",
        LimitsEvictTwice = "A pod over two limits of local storage is evicted for each of them.",
        MemoryVolumeIgnoresAllocatable = "A memory-backed volume without limits has half of the memory instead of what is allocatable.",
    }
    // From 1.29 to 1.31, the kubelet applies a threshold on nodefs at random as one on containerfs,
    // for which it deletes nothing.
    Reclaim {
        ReclaimKeepsContainers except 29 to 31 = "Dead containers are not deleted before pods are evicted.",
        ReclaimKeepsImages except 29 to 31 = "Unused images are not deleted before pods are evicted.",
        InodeReclaimKeepsImages except 29 to 31 = "Unused images are not deleted when inodes are short.",
        ReclaimIgnoresLayout = "Containers and images are deleted for a file system that does not have them.",
        ReclaimIgnoresAge except 29 to 31 = "Unused images are deleted however young they are.",
        ReclaimDeletesPinned except 29 to 31 = "Pinned images are deleted, too.",
        ReclaimMinimumIgnored except 29 to 31 = "Deleting images is enough without evictionMinimumReclaim.",
        ReclaimWithoutCheck except 29 to 31 = "A pod is evicted even if deleting containers and images was enough.",
        ImageGcMissing = "Unused images are not deleted periodically.",
        ImageGcIgnoresEndedContainers = "Periodically, images are deleted of which only containers exist that have ended.",
        ImageGcFailureWithoutEvent = "A periodic deletion of images that frees too little causes no event.",
        ImageGcStopsAtHighThreshold = "The periodic deletion of images ends below the high threshold instead of the low one.",
        ReclaimCheckSparesSoft except 29 to 31 = "Deleting images is enough although a soft threshold is still crossed.",
        ReclaimImagesFirst except 29 to 31 = "Images are deleted before the dead containers that use them.",
        ImagesUsedLastAreDeletedFirst = "Of unused images, those that were used last are deleted first.",
        ReclaimKeepsLastContainers except 29 to 31 = "The last dead container of each name is kept when its pod has terminated, too.",
        ReclaimDeletesLastContainers except 29 to 31 = "The last dead container of each name is deleted while its pod still runs, too.",
        ReclaimKeepsImagesOfOneDisk = "Unused images are not deleted for imagefs.available if there is one file system.",
        // The case that reads the defaults does not apply to older kubelets.
        ImageAgeUndefaulted since 30 = "imageMinimumGCAge has no default.",
    }
    Metrics {
        MetricMissing = "kubelet_evictions counts no eviction.",
        MetricDoubled = "kubelet_evictions counts each eviction twice.",
        MetricCountsSpared = "kubelet_evictions counts critical pods that are not evicted, too.",
        MetricSignalIsMemory = "kubelet_evictions counts every pressure under memory.available.",
        MetricLimitIsPod = "kubelet_evictions counts every limit under ephemeralpodfs.limit.",
        MetricAgeInMilliseconds = "kubelet_eviction_stats_age_seconds is in milliseconds.",
        MetricAgeOfFirst = "kubelet_eviction_stats_age_seconds counts only the threshold that decides.",
        MetricAllocatableIsMemory = "kubelet_evictions counts evictions for allocatable memory under memory.available.",
        MetricOmitsTimedOut = "kubelet_evictions does not count evictions whose pods did not end in time.",
        MetricOmitsSoft = "kubelet_evictions does not count evictions by soft thresholds.",
    }
    Events {
        EvictedEventMissing = "The Evicted event is missing.",
        EvictedEventDoubled = "The Evicted event is recorded twice.",
        EvictedEventLate = "The Evicted event is recorded 30 s late.",
        EvictedEventAfterKill = "The Evicted event is recorded after the pod was killed.",
        EvictedEventNormal = "The Evicted event is of type Normal.",
        EvictedEventOfNode = "The Evicted event is about the node instead of the pod.",
        ThresholdEventMissing = "The event EvictionThresholdMet is missing.",
        ThresholdEventNormal = "The event EvictionThresholdMet is of type Normal.",
        ThresholdEventAfterReclaim except 29 to 31 = "The event EvictionThresholdMet is missing if deleting containers and images was enough.",
        ThresholdEventIsMemory = "The event EvictionThresholdMet names memory for every resource.",
        KillIsNotAwaited = "The kubelet waits milliseconds instead of seconds for the end of an evicted pod.",
        KillingEventMissing = "The Killing event is missing.",
        KillingEventMissingForSidecars = "The Killing event of a sidecar is missing.",
        KillingEventDoubled = "The Killing event of a container is recorded twice.",
        ContainerEventsWithoutPath = "Events about containers do not name their container.",
        KillAwaitedForGrace = "The kubelet waits for the end of an evicted pod no longer than its grace period.",
        ExceededGraceWithoutEvent = "A pod that does not end in time causes no event.",
        ActiveDeadlineWithoutEvent = "The end of a pod by its activeDeadlineSeconds causes no event.",
        FailedHookWithoutEvent = "A preStop hook that fails causes no event.",
    }
    Status {
        StatusReasonMissing = "An evicted pod has no reason.",
        StatusMessageMissing = "An evicted pod has no message.",
        StatusMessageDiffers = "The message in the status of an evicted pod differs from the event's.",
        StatusPhaseSucceeded = "An evicted pod is Succeeded.",
        StatusStaysReady = "An evicted pod stays Ready.",
        StatusExitCodesLost = "Containers of evicted pods end with exit code 0 and Completed.",
        StatusStartTimeOfRestart = "A restart of the kubelet sets the start times of pods to its own.",
        StatusPendingAgain since 29 = "A pod is Pending again while a sidecar of it restarts.",
        StatusEndIsStart = "The end of a container is reported with the time of its start.",
        StatusRevertsAtRestart = "A restart of the kubelet starts an evicted pod again.",
        StatusDeletesPod = "The kubelet deletes the API object of an evicted pod.",
        StatusTerminalEarly = "A pod is reported as evicted while its containers still run.",
        StatusRestartCounted = "The end of a container by an eviction counts as a restart.",
        EvictedContainersStay = "The containers of evicted pods are kept, with their logs.",
        StatusSidecarsExitLost since 29 = "Sidecars of evicted pods end with exit code 0 and Completed.",
        StatusReasonEarly = "The reason and message of an eviction are reported while containers still run.",
        StatusWaitingStays = "A container that never started is still waiting after its pod was evicted.",
        StatusInitWaitingLost = "An init container that never started has the end ContainerStatusUnknown.",
        ActiveDeadlineIgnored = "activeDeadlineSeconds is not enforced.",
        ActiveDeadlineIsEviction = "A pod that was active for longer than activeDeadlineSeconds has the reason Evicted.",
        StatusContainersReadyStays = "The condition ContainersReady of an evicted pod stays True.",
        StatusSandboxReadyStays since 29 = "The condition PodReadyToStartContainers of an evicted pod stays True.",
        StatusContainerIdLost = "The end of a container is reported without the container's ID.",
        StatusStartIsEnd = "The start of a container that has ended is reported with the time of its end.",
    }
    Disruption {
        DisruptionMissing = "A pod evicted under pressure has no condition DisruptionTarget.",
        DisruptionOnLimits = "A pod over its own limit gets the condition DisruptionTarget.",
        DisruptionEarly = "The condition DisruptionTarget is set before the pod reaches its terminal phase.",
        DisruptionTimeOfBegin = "The condition DisruptionTarget has the time of the eviction instead of that of the terminal phase.",
        DisruptionReasonDiffers = "The condition DisruptionTarget has the reason EvictionByKubelet.",
        DisruptionWithoutMessage = "The condition DisruptionTarget has no message.",
        DisruptionOnDeletion = "A deleted pod gets the condition DisruptionTarget from the kubelet.",
        DisruptionMissingOnSoft = "A pod evicted by a soft threshold has no condition DisruptionTarget.",
    }
    Oom {
        OomGuaranteedDiffers = "The oom_score_adj of Guaranteed pods is -998.",
        OomNodeCriticalByQos = "The oom_score_adj of node-critical pods depends on their QoS class.",
        OomClusterCriticalProtected = "Cluster-critical pods have the oom_score_adj of node-critical ones.",
        OomBestEffortLowered = "The oom_score_adj of BestEffort pods is 999.",
        OomBurstableIgnoresRequest = "The oom_score_adj of Burstable pods does not depend on their requests.",
        OomBurstableIgnoresPodRequest since 34 = "The oom_score_adj of Burstable pods does not depend on pod-level requests.",
        OomPodRequestOmitsInitContainers since 34 = "The rest of a pod-level request is shared among the regular containers only.",
        OomSidecarIgnoresOwnRequest since 32 = "The oom_score_adj of a sidecar is by the smallest request of the regular containers, even if its own is larger.",
        OomKillsOneProcess since 28 = "On cgroup v2, an OOM kill ends one process instead of the container.",
        OomIsEviction = "A pod with an OOM-killed container has the reason Evicted.",
        MemoryHighMissing = "Containers have no memory.high with the feature gate MemoryQoS.",
        MemoryLimitIgnored = "Memory limits of containers are not enforced.",
        PodMemoryLimitIgnored since 34 = "Pod-level memory limits are not enforced.",
        OomOfLimitIsSystemOom = "A container over its own memory limit causes a SystemOOM event.",
        OomSidecarOfOtherVersion since 29 = "The oom_score_adj of a sidecar is by its own request since 1.32, by the smallest other one before.",
        ResizeKeepsLimit since 33 = "A resize does not change the memory limit of a running container.",
        OomSidecarOmitsPodShare since 34 = "The smallest request of the regular containers counts for a sidecar without its share of a pod-level request.",
        OomSidecarOfFirstContainer since 32 = "The oom_score_adj of a sidecar is by the request of the first regular container instead of the smallest.",
    }
    Preemption {
        PreemptionGraceIsOne = "A preempted pod gets a grace period of 1 s.",
        PreemptionSparesBurstable = "A Guaranteed pod is preempted although Burstable ones would do.",
        PreemptionRefused = "A critical pod is rejected instead of preempting others.",
        PreemptionRefusedToStatic = "A static pod without a system priority is rejected instead of preempting others.",
        PreemptionOfStatic = "A critical pod preempts static pods without a priority, as pods of priority 0.",
        PreemptionByStaticOfCritical = "A static pod without a priority preempts critical pods.",
        PreemptionByOrdinary = "Pods of ordinary priority classes preempt others at admission, too.",
        PreemptionTakesAll = "A critical pod preempts all pods.",
        PreemptionByHighestQos = "Guaranteed pods are preempted before BestEffort ones.",
        PreemptionTakesLargest = "The pod with the largest request is preempted instead of the nearest.",
        PreemptionTakesSmallest = "The pods with the smallest requests are preempted, however many it takes.",
        PreemptionFreesTheWholeRequest = "A critical pod preempts pods for all that it requests, not for what is missing.",
        PreemptionReasonDiffers = "A preempted pod has the reason Evicted.",
        PreemptionNotCounted = "The metric kubelet_preemptions does not count.",
        PreemptionWithoutEvent = "The preemption of a pod causes no event.",
        PreemptionWithoutDisruption = "A preempted pod has no condition DisruptionTarget.",
        PreemptionIsCounted = "kubelet_evictions counts preempted pods.",
        PreemptionWaitsTenSeconds = "Preemption does not wait for a grace period that is longer than 10 s.",
        PreemptionForFirstResource = "A critical pod preempts pods only for the first resource that is missing.",
        PreemptionSparesLowerCritical = "A critical pod does not preempt critical pods of lower priority.",
        PreemptionInVain = "A critical pod that does not match the node preempts pods for the resources that it lacks as well.",
        PreemptionOfEqualPriority = "A critical pod preempts critical pods of its own priority.",
        PreemptionCountsPendingResizes since 34 = "The choice of the pods to preempt reads the requests of resizes that the node has no room for.",
        PreemptionCountsSpared = "Guaranteed pods that are not preempted count as preempted when Burstable ones are chosen.",
        PreemptionDisruptionFalse = "The condition DisruptionTarget of a preempted pod is False.",
        PreemptionSparesGuaranteed = "Guaranteed pods are never preempted.",
        PreemptionTakesMoreCpu = "Of pods with equal memory requests, the one with the larger CPU request is preempted.",
    }
    Summary {
        // Kubelets have sidecars since 1.29 (feature gate `SidecarContainers`).
        SummaryOmitsSidecars since 29 = "The Summary omits sidecars.",
        SummaryOmitsLastContainer = "The Summary omits the last container of each pod.",
        SummaryListsTerminated = "The Summary lists terminated containers.",
        SummaryIsStale = "Statistics of containers are measured every 30 s.",
        SummaryCountsCache = "The working set of containers includes the inactive file cache.",
        SummaryNeverFromRuntime = "Statistics are those of cAdvisor with the feature gate PodAndContainerStatsFromCRI, too.",
        SummaryCountsHugePages since 37 = "Memory that huge pages reserve is available memory of the node.",
        SummaryNeverCountsHugePages since 37 = "HugepageAwareEviction cannot be disabled.",
        ResourceMetricsCountCache = "The working sets of /metrics/resource include the inactive file cache.",
        SummaryNodeCountsCache = "The working set of the node includes the inactive file cache.",
        SummaryOmitsRss = "The Summary has no RSS.",
        SummaryOmitsProcesses since 31 = "The Summary has no process counts.",
        SummaryProcessesOfLargest since 31 = "The process count of a pod is that of its largest container.",
        SummaryOmitsVolumes = "The Summary has no volumes.",
        SummaryVolumesMeasuredOnce = "Volumes are measured only once.",
        SummaryNodeCountsRunnable = "The process count of the node is that of the tasks that run at the moment.",
        SummaryCountsDescriptors since 31 = "The process count of a pod is that of its file descriptors.",
        SummaryRssIsWorkingSet = "The RSS in the Summary is the working set.",
        SummaryUsageIsWorkingSet = "The memory usage of containers in the Summary is their working set.",
    }
    Notifier {
        NotifierMissing = "The kubelet does not register for memory notifications.",
        NotifierIgnoresThreshold = "The kubelet registers for the node's capacity instead of the threshold.",
        LoopRareWithNotifications = "With memory notifications, the eviction manager checks only every five minutes otherwise.",
    }
    PidLimit {
        NodePidsOfLargerLimit = "The process IDs of the node are the larger of pid_max and threads-max.",
        PidLimitIgnored = "podPidsLimit is not enforced.",
        PidLimitHalved = "podPidsLimit is enforced at half its value.",
        PidLimitDoubled = "podPidsLimit is enforced at twice its value.",
    }
    Logs {
        LogsAreNotRotated = "Container logs are not rotated.",
        LogFilesAccumulate = "Rotated log files beyond containerLogMaxFiles are not deleted.",
        RotatedLogsIgnored = "Rotated log files do not count in the usage of their container.",
        LogDirectoryByUid = "The directory of a pod's logs is named after its UID only.",
        // As for `ImageAgeUndefaulted`.
        LogFilesDefaultIsTwo since 30 = "containerLogMaxFiles is 2 by default.",
    }
}

impl Defect {
    /// Returns whether kubelets of a version differ with the defect.
    pub fn applies_to(self, version: &KubeletVersion) -> bool {
        let is_excepted = |(from, to): (u32, u32)| (from..=to).contains(&version.minor);
        self.since().is_none_or(|minor| version.at_least(minor)) && !self.except().is_some_and(is_excepted)
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&kebab_case(&format!("{self:?}")))
    }
}

/// The name of a defect is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown defect `{0}`\nhelp: list the defects with `evictlab mutants list`")]
pub struct UnknownDefectError(String);

impl FromStr for Defect {
    type Err = UnknownDefectError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.iter().copied();
        all.find(|defect| defect.to_string() == text).ok_or_else(|| UnknownDefectError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case_and_parse() {
        assert_eq!(Defect::MemoryRankByUsage.to_string(), "memory-rank-by-usage");
        assert_eq!(Area::PidLimit.to_string(), "pid-limit");
        for defect in Defect::ALL {
            assert_eq!(defect.to_string().parse(), Ok(*defect));
        }
        assert!("memory-rank".parse::<Defect>().is_err());
    }

    #[test]
    fn a_defect_applies_to_its_versions() {
        let version = KubeletVersion::from_minor;
        assert!(!Defect::MessageOmitsSidecars.applies_to(&version(31)));
        assert!(Defect::MessageOmitsSidecars.applies_to(&version(32)));
        assert!(Defect::AnnotationsMissing.applies_to(&version(27)));
        let kept = |minor| Defect::ReclaimKeepsImages.applies_to(&version(minor));
        assert_eq!([28, 29, 31, 32].map(kept), [true, false, false, true]);
    }
}
