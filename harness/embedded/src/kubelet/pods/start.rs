//! Steps that start a pod: sandbox, images, containers.

use std::time::Duration;

use evictlab_rules::quantity::Quantity;
use serde_json::Value;

use super::backoff::Backoff;
use super::environment::{expand, variables};
use super::runtime::{Sandbox, State};
use super::spec::{Container, ContainerIndex, Group, Manifest, PullPolicy};
use super::worker::{Stage, Step, Waiting, Worker};
use super::{latency, qos};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::PodEvent;
use crate::kubelet::images::lookup::{self, ImageLookup};
use crate::kubelet::recorder::EventObject;
use crate::kubelet::state::Kubelet;
use crate::machine::{Cgroup, ContainerSpec, Machine, Mount};
use crate::options::CgroupVersion;
use crate::resource::{EventBody, Kind, ObjectExt};

/// Default of `memoryThrottlingFactor` before 1.37.
const MEMORY_THROTTLING_FACTOR: f64 = 0.9;
/// Size of a page, in bytes.
const PAGE: u64 = 4096;

impl Kubelet {
    /// Starts the first step of the queue.
    pub(super) fn begin_step(&mut self, worker: &mut Worker, ctx: &mut SimContext) {
        let Some(step) = worker.steps.front() else { return self.steps_done(worker, ctx) };
        let (least, most) = match step {
            // Includes mounting the volumes.
            Step::Sandbox => (350, 700),
            Step::Image(_) | Step::Restart(_) => (1, 6),
            Step::Pull(..) => (600, 1800),
            Step::Create(_) => (14, 45),
            Step::Start(_) => (105, 200),
        };
        let delay = if *step == Step::Sandbox { worker.mount_delay() } else { Duration::ZERO };
        worker.serial = self.pods.next_serial();
        let at = ctx.now + delay + latency::between(ctx.rng, least, most);
        self.schedule_pod(at, PodEvent::Step(worker.manifest.uid.clone(), worker.serial), ctx);
    }

    /// Completes the first step of the queue.
    pub(super) fn step(&mut self, pod: &str, serial: u64, machine: &mut Machine, ctx: &mut SimContext) {
        self.with_worker(pod, |kubelet, worker| {
            if worker.serial != serial || worker.stage != Stage::Syncing {
                return;
            }
            let Some(step) = worker.steps.pop_front() else { return };
            match step {
                Step::Sandbox if !kubelet.mounts(worker, ctx) => worker.steps.push_front(step),
                Step::Sandbox => {
                    kubelet.make_sandbox(worker, machine, ctx);
                    let group = Cgroup::Pod(worker.manifest.uid.clone());
                    machine.limit_memory(&group, kubelet.pod_memory_max(&worker.manifest));
                    kubelet.stats_appeared(group, machine, ctx);
                }
                Step::Image(place) if kubelet.is_in_backoff(worker, place, ctx) => {}
                Step::Image(place) | Step::Restart(place) => kubelet.look_up_image(worker, place, ctx),
                Step::Pull(place, since) => {
                    kubelet.pulled(worker, place, ctx.now.since(since), ctx);
                }
                Step::Create(place) => kubelet.create_container(worker, place, ctx),
                Step::Start(place) => kubelet.start_container(worker, place, machine, ctx),
            }
            if worker.stopping.is_none() {
                kubelet.begin_step(worker, ctx);
            }
        });
    }

    /// Mounts the volumes, and returns whether all could be mounted. Only ConfigMaps can be
    /// missing.
    fn mounts(&mut self, worker: &mut Worker, ctx: &mut SimContext) -> bool {
        let namespace = &worker.manifest.namespace;
        let missing = worker.manifest.spec.volumes.iter().find_map(|volume| {
            let map = volume.config_map.as_ref().filter(|map| map.optional != Some(true))?;
            let name = &map.name;
            ctx.store.get(Kind::ConfigMap, namespace, name).is_none().then(|| {
                format!(
                    "MountVolume.SetUp failed for volume {:?} : configmap {name:?} not found",
                    volume.name
                )
            })
        });
        let Some(missing) = missing else { return true };
        worker.unmounted += 1;
        self.record_event(
            EventObject::Pod(&worker.object, None),
            EventBody::warning("FailedMount", &missing),
            ctx,
        );
        false
    }

    fn make_sandbox(&mut self, worker: &mut Worker, machine: &mut Machine, ctx: &mut SimContext) {
        let uid = &worker.manifest.uid;
        let ip = if worker.manifest.spec.host_network {
            self.host(ctx)
        } else {
            let node = ctx.store.get(Kind::Node, "", &self.options.name);
            let range = node.map_or("10.244.0.0/24", |node| node.spec().text_or("podCIDR", "10.244.0.0/24"));
            let range = range.split('/').next().unwrap_or_default();
            let range = range.rsplit_once('.').map_or("10.244.0", |(range, _)| range);
            self.pods.runtime.address(&format!("{range}."))
        };
        self.pods.runtime.pods.entry(uid.clone()).or_default().sandbox = Some(Sandbox { ip, ready: true });
        machine.start_sandbox(uid, ctx.now);
    }

    /// Looks up the image of a container that may start.
    fn look_up_image(&mut self, worker: &mut Worker, place: ContainerIndex, ctx: &mut SimContext) {
        let Some(container) = worker.manifest.spec.container(place).cloned() else { return };
        let image = &container.image;
        let known = &self.status.images;
        let here =
            known.contains(image) || lookup::find(image) == ImageLookup::Here && !known.is_deleted(image);
        let policy = container.image_pull_policy;
        if policy == PullPolicy::Never && !here {
            let message = format!("Container image {image:?} is not present with pull policy of Never");
            self.record_container_event(
                worker,
                place,
                EventBody::warning("ErrImageNeverPull", &message),
                ctx,
            );
            self.refuse(worker, place, "ErrImageNeverPull", message, ctx);
        } else if here && policy != PullPolicy::Always {
            // `KubeletEnsureSecretPulledImages`, on by default since 1.35, checks the credentials
            // of the pull.
            let end = if self.options.version.at_least(35) { " and can be accessed by the pod" } else { "" };
            let message = format!("Container image {image:?} already present on machine{end}");
            self.record_container_event(worker, place, EventBody::normal("Pulled", &message), ctx);
            worker.steps.push_front(Step::Create(place));
        } else if worker.pulls.get(image).is_some_and(|backoff| backoff.end_after_update(ctx.now).is_some()) {
            let mut message = format!("Back-off pulling image {image:?}");
            self.record_container_event(worker, place, EventBody::normal("BackOff", &message), ctx);
            if self.options.version.at_least(32) {
                message += &format!(": ErrImagePull: {}", lookup::failure(image));
            }
            self.refuse(worker, place, "ImagePullBackOff", message, ctx);
        } else {
            self.record_container_event(
                worker,
                place,
                EventBody::normal("Pulling", &format!("Pulling image {image:?}")),
                ctx,
            );
            worker.steps.push_front(Step::Pull(place, ctx.now));
        }
    }

    fn pulled(&mut self, worker: &mut Worker, place: ContainerIndex, took: Duration, ctx: &mut SimContext) {
        let Some(image) = worker.manifest.spec.container(place).map(|container| container.image.clone())
        else {
            return;
        };
        let found = lookup::find(&image);
        // Images of this registry are loaded, never pulled.
        let is_local = image.starts_with(lookup::LOADED) && self.status.images.is_deleted(&image);
        if found == ImageLookup::Nowhere || is_local {
            let failure = lookup::failure(&image);
            let message = format!("Failed to pull image {image:?}: {failure}");
            self.record_container_event(worker, place, EventBody::warning("Failed", &message), ctx);
            let last = worker.pulls.get(&image).copied();
            worker.pulls.insert(image, Backoff::next(last, ctx.now, ctx.now));
            self.refuse(worker, place, "ErrImagePull", failure, ctx);
            return;
        }
        let took = took.as_millis();
        let took =
            if took < 1000 { format!("{took}ms") } else { format!("{}.{:03}s", took / 1000, took % 1000) };
        let mut message = format!("Successfully pulled image {image:?} in {took} ({took} including waiting)");
        // The size is logged since 1.30.
        if self.options.version.at_least(30) {
            message += ". Image size: 53021160 bytes.";
        }
        self.record_container_event(worker, place, EventBody::normal("Pulled", &message), ctx);
        if found != ImageLookup::Here || self.status.images.is_deleted(&image) {
            self.status.images.add_pulled(&image);
        }
        worker.steps.push_front(Step::Create(place));
    }

    /// Returns whether a container must wait after its last exit (`doBackOff`).
    fn is_in_backoff(&mut self, worker: &mut Worker, place: ContainerIndex, ctx: &mut SimContext) -> bool {
        let Some(name) = worker.manifest.spec.container(place).map(|container| container.name.clone()) else {
            return false;
        };
        let name = name.as_str();
        let dead = self.pods.runtime.pods.get(&worker.manifest.uid).and_then(|runtime| {
            let dead = runtime.containers.iter().rev().filter(|record| record.name == name);
            dead.into_iter().find_map(|record| match record.state {
                State::Exited { finished, .. } => Some(finished),
                _ => None,
            })
        });
        let Some(finished) = dead else { return false };
        let last = worker.restarts.get(name).copied();
        if let Some(last) = last.filter(|last| last.end_after(finished, ctx.now).is_some()) {
            let pod = worker.manifest.format();
            let message = format!("Back-off restarting failed container {name} in pod {pod}");
            self.record_container_event(worker, place, EventBody::warning("BackOff", &message), ctx);
            let delay = last.delay.as_secs();
            let delay =
                if delay < 60 { format!("{delay}s") } else { format!("{}m{}s", delay / 60, delay % 60) };
            let message = format!("back-off {delay} restarting failed container={name} pod={pod}");
            self.hold(worker, place, "CrashLoopBackOff", message);
            return true;
        }
        worker.restarts.insert(name.to_owned(), Backoff::next(last, finished, ctx.now));
        false
    }

    /// Rejects a container with an event whose message is the reason.
    fn refuse(
        &mut self,
        worker: &mut Worker,
        place: ContainerIndex,
        reason: &'static str,
        message: String,
        ctx: &mut SimContext,
    ) {
        self.record_container_event(
            worker,
            place,
            EventBody::warning("Failed", &format!("Error: {reason}")),
            ctx,
        );
        self.hold(worker, place, reason, message);
    }

    /// Defers the start of a container. A plain init container defers all later ones, too.
    fn hold(&mut self, worker: &mut Worker, place: ContainerIndex, reason: &'static str, message: String) {
        if let Some(container) = worker.manifest.spec.container(place) {
            worker.reasons.insert(container.name.clone(), Waiting { reason, message });
        }
        worker.failed = true;
        if place.group == Group::Init && !worker.manifest.spec.is_sidecar(place) {
            worker.steps.clear();
        }
    }

    fn create_container(&mut self, worker: &mut Worker, place: ContainerIndex, ctx: &mut SimContext) {
        let Some(container) = worker.manifest.spec.container(place) else { return };
        let name = container.name.clone();
        let container = container.clone();
        if let Err(missing) = variables(&worker.manifest, &container, &self.options.name, ctx.store) {
            let message = format!("Error: {missing}");
            self.record_container_event(worker, place, EventBody::warning("Failed", &message), ctx);
            self.hold(worker, place, "CreateContainerConfigError", missing);
            return;
        }
        let uid = &worker.manifest.uid;
        let latest = self.pods.runtime.pods.get(uid).and_then(|runtime| runtime.latest(&name));
        let attempt = latest.map_or(0, |latest| latest.attempt + 1);
        self.pods.runtime.create(uid, &container, attempt, ctx.rng);
        // "Created container: NAME" in recordings of late 1.31 and 1.32. The sources have the colon
        // since 1.29 and the new wording since 1.35.
        let message = match &self.options.version {
            version if version.at_least(35) => "Container created".to_owned(),
            version if version.at_least(29) => format!("Created container: {name}"),
            _ => format!("Created container {name}"),
        };
        self.record_container_event(worker, place, EventBody::normal("Created", &message), ctx);
        worker.steps.push_front(Step::Start(place));
    }

    fn start_container(
        &mut self,
        worker: &mut Worker,
        place: ContainerIndex,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let Some(container) = worker.manifest.spec.container(place) else { return };
        let name = container.name.clone();
        let Some(spec) = self.container_spec(worker, place, machine, ctx) else { return };
        let uid = &worker.manifest.uid;
        let record = self
            .pods
            .runtime
            .pods
            .get_mut(uid)
            .and_then(|runtime| runtime.containers.iter_mut().rev().find(|record| record.name == name));
        let Some(record) = record else { return };
        record.state = State::Running { started: ctx.now };
        let id = record.id.clone();
        let (pod, container) = (Cgroup::Pod(uid.clone()), Cgroup::Container(id.clone()));
        machine.start(id, spec, ctx.now, ctx.rng);
        self.stats_appeared(pod, machine, ctx);
        self.stats_appeared(container, machine, ctx);
        worker.reasons.remove(&name);
        let message = if self.options.version.at_least(35) {
            "Container started".to_owned()
        } else {
            format!("Started container {name}")
        };
        self.record_container_event(worker, place, EventBody::normal("Started", &message), ctx);
    }

    fn container_spec(
        &self,
        worker: &Worker,
        place: ContainerIndex,
        machine: &Machine,
        ctx: &SimContext,
    ) -> Option<ContainerSpec> {
        let manifest = &worker.manifest;
        let container = manifest.spec.container(place)?;
        let env = variables(manifest, container, &self.options.name, ctx.store).ok()?;
        let words = |words: &[String]| words.iter().map(|word| expand(word, &env)).collect();
        let node = ctx.store.get(Kind::Node, "", &self.options.name);
        let allocatable = node.and_then(|node| bytes(node.status()["allocatable"].text("memory")));
        let memory_limit =
            container.memory_limit().and_then(bytes).filter(|_| !self.has(Defect::MemoryLimitIgnored));
        let file = &self.config.file;
        let pids_limit = file.get("podPidsLimit").and_then(Value::as_u64).filter(|limit| *limit > 0);
        let pids_limit = pids_limit.and_then(|limit| match () {
            () if self.has(Defect::PidLimitIgnored) => None,
            () if self.has(Defect::PidLimitHalved) => Some(limit / 2),
            () if self.has(Defect::PidLimitDoubled) => Some(limit * 2),
            () => Some(limit),
        });
        // Since 1.28 all processes of a container are killed on cgroup v2; since 1.32 this can be
        // disabled.
        let single = self.options.version.at_least(32)
            && file.get("singleProcessOOMKill").and_then(Value::as_bool) == Some(true);
        let single = single || self.has(Defect::OomKillsOneProcess);
        let oom_group =
            self.options.cgroup == CgroupVersion::V2 && self.options.version.at_least(28) && !single;
        let attempt = self.pods.runtime.pods.get(&manifest.uid).and_then(|pod| pod.latest(&container.name));
        Some(ContainerSpec {
            memory_high: self.memory_high(container, allocatable),
            log_path: self.log_path(manifest, &container.name, attempt.map_or(0, |latest| latest.attempt)),
            pod: manifest.uid.clone(),
            image: container.image.clone(),
            command: words(&container.command),
            args: words(&container.args),
            mounts: self.volume_mounts(manifest, container, allocatable),
            memory_limit,
            pids_limit,
            oom_score_adj: qos::oom_score_adj(
                manifest,
                place,
                machine.memory_total(),
                (&self.options.version, &self.options.defects),
            ),
            oom_group,
            shares_pids: manifest.spec.share_process_namespace || !container.target_container_name.is_empty(),
            env,
        })
    }

    /// Returns `memory.max` of a pod's cgroup, in bytes (`ResourceConfigForPod` of
    /// `pkg/kubelet/cm/helpers_linux.go`).
    pub(super) fn pod_memory_max(&self, manifest: &Manifest) -> Option<u64> {
        let ignores = match manifest.pod_level_memory_limit() {
            Some(_) => Defect::PodMemoryLimitIgnored,
            None => Defect::MemoryLimitIgnored,
        };
        manifest.memory_limit().filter(|_| !self.has(ignores))
    }

    /// Returns `memory.high` of a container: a part of the way from its request to its limit, or to
    /// the node's allocatable memory (`generateLinuxContainerResources` of
    /// `pkg/kubelet/kuberuntime/kuberuntime_container_linux.go`). The part has no default since
    /// 1.37.
    fn memory_high(&self, container: &Container, allocatable: Option<u64>) -> Option<u64> {
        let is_enabled = self.config.settings.gates.memory_qos && !self.has(Defect::MemoryHighMissing);
        if !is_enabled || self.options.cgroup == CgroupVersion::V1 {
            return None;
        }
        let default = (!self.options.version.at_least(37)).then_some(MEMORY_THROTTLING_FACTOR);
        let factor = self.config.file.get("memoryThrottlingFactor").and_then(Value::as_f64).or(default)?;
        let request = container.memory_request().and_then(bytes).unwrap_or(0);
        let limit = container.memory_limit().and_then(bytes);
        if limit.unwrap_or(0) == request {
            return None;
        }
        let above = limit.or(allocatable)?.saturating_sub(request);
        let high = (request as f64 + above as f64 * factor) as u64;
        Some(high - high % PAGE).filter(|high| *high > request)
    }

    fn log_path(&self, manifest: &Manifest, container: &str, attempt: u64) -> String {
        if self.has(Defect::LogDirectoryByUid) {
            format!("/var/log/pods/{}/{container}/{attempt}.log", manifest.uid)
        } else {
            manifest.log_path(container, attempt)
        }
    }

    /// Records an event about a container.
    pub(super) fn record_container_event(
        &mut self,
        worker: &Worker,
        place: ContainerIndex,
        event: EventBody,
        ctx: &mut SimContext,
    ) {
        let Some(container) = worker.manifest.spec.container(place) else { return };
        let path = (!self.has(Defect::ContainerEventsWithoutPath)).then(|| place.field_path(&container.name));
        let object = EventObject::Pod(&worker.object, path);
        self.record_event(object, event, ctx);
    }

    /// Returns the mounts of a container. `allocatable` is the memory of the node in bytes.
    fn volume_mounts(
        &self,
        manifest: &Manifest,
        container: &Container,
        allocatable: Option<u64>,
    ) -> Vec<Mount> {
        let unsized_volumes = self.has(Defect::MemoryVolumeUnsized);
        let pod_limit = manifest.memory_limit().filter(|_| !self.has(Defect::MemoryVolumeIgnoresThePodLimit));
        let ignores_stated = pod_limit.is_some() && self.has(Defect::MemoryVolumeSizedByThePodLimit);
        let mounts = container.volume_mounts.iter().map(|mount| {
            let volume = manifest.spec.volumes.iter().find(|volume| volume.name == mount.name);
            let dir = volume.and_then(|volume| volume.empty_dir.as_ref());
            let memory = dir.is_some_and(|dir| dir.medium.as_deref() == Some("Memory"));
            let stated = dir.and_then(|dir| bytes(&dir.size_limit.as_ref()?.0));
            // Minimum of the allocatable memory, the pod's limit, and the volume's size limit
            // (`SizeMemoryBackedVolumes`).
            let stated = stated.filter(|stated| *stated > 0 && !ignores_stated);
            let allocatable = allocatable.filter(|_| !self.has(Defect::MemoryVolumeIgnoresAllocatable));
            let sizes = [allocatable, pod_limit, stated];
            Mount {
                path: mount.mount_path.clone(),
                volume: mount.name.clone(),
                memory,
                size_limit: sizes.into_iter().flatten().min().filter(|_| memory && !unsized_volumes),
                host: volume.and_then(|volume| volume.host_path.as_ref()).map(|host| {
                    let sub_path = mount.sub_path.as_deref().unwrap_or_default();
                    let path = format!("{}/{sub_path}", host.path.trim_end_matches('/'));
                    path.trim_end_matches('/').to_owned()
                }),
            }
        });
        mounts.collect()
    }
}

/// Parses a quantity in bytes.
pub(super) fn bytes(quantity: &str) -> Option<u64> {
    let quantity: Quantity = quantity.parse().ok()?;
    u64::try_from(quantity.value()).ok()
}
