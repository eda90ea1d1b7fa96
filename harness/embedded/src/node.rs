//! A node: a machine and its kubelet.

use std::time::Duration;

use serde_json::Value;

use crate::context::SimContext;
use crate::kubelet::Kubelet;
use crate::machine::{ExecError, ExecId, Imagefs, Machine, NoSpace};
use crate::options::{NodeOptions, OptionsError};
use crate::sim::{EventQueue, SimTime, Slot};
use crate::storage::ObjectChange;

/// Directory of static pods on nodes that kubeadm set up.
const MANIFESTS: &str = "/etc/kubernetes/manifests";

/// Machine with its kubelet.
pub struct Node {
    /// Name.
    pub(crate) name: String,
    /// Processes, memory and disk.
    pub machine: Machine,
    /// Kubelet.
    pub kubelet: Kubelet,
    /// Times at which the machine runs.
    wakeups: EventQueue<()>,
    /// Time of the earliest scheduled wakeup.
    wakeup: Option<SimTime>,
    /// Number of file changes that the kubelet was notified of.
    notified_file_changes: u64,
}

impl Node {
    /// Creates a node that is switched off.
    ///
    /// # Errors
    /// [`OptionsError`] for impossible sizes.
    pub(crate) fn new(options: NodeOptions) -> Result<Self, OptionsError> {
        Ok(Self {
            name: options.name.clone(),
            machine: Machine::new(&options)?,
            kubelet: Kubelet::new(options),
            wakeups: EventQueue::default(),
            wakeup: None,
            notified_file_changes: 0,
        })
    }

    /// Switches the node on: the kubelet registers it.
    pub(crate) fn start(&mut self, ctx: &mut SimContext) {
        self.machine.set_epoch(ctx.epoch());
        self.kubelet.start(&mut self.machine, ctx);
        self.schedule_wakeup(ctx);
    }

    /// Delivers changes of the node's pods to the kubelet; `None` if the history is too short.
    pub(crate) fn deliver_changes(&mut self, changes: Option<Vec<ObjectChange>>, ctx: &mut SimContext) {
        self.kubelet.handle_changes(changes, &mut self.machine, ctx);
        self.schedule_wakeup(ctx);
    }

    /// Returns the slot of the next event.
    pub(crate) fn next(&self) -> Option<Slot> {
        self.wakeups.next().into_iter().chain(self.kubelet.next()).min()
    }

    /// Handles the next event.
    pub(crate) fn handle_next(&mut self, ctx: &mut SimContext) {
        let Some(next) = self.next() else { return };
        if self.wakeups.next() == Some(next) {
            self.wakeups.pop();
            self.wakeup = None;
            for event in self.machine.run(ctx.now) {
                self.kubelet.handle_machine_event(event, &mut self.machine, ctx);
            }
        } else {
            self.kubelet.handle_next(&mut self.machine, ctx);
        }
        self.schedule_wakeup(ctx);
    }

    /// Writes or removes the manifest of a static pod in the kubelet's `staticPodPath`.
    ///
    /// # Errors
    /// [`NoSpace`] if the disk is full.
    pub fn static_pod(
        &mut self,
        name: &str,
        manifest: Option<&Value>,
        ctx: &mut SimContext,
    ) -> Result<(), NoSpace> {
        let path = format!("{}/{name}.yaml", self.manifests());
        // JSON is YAML.
        let text = manifest.map(Value::to_string);
        self.machine.put_file(&path, text.as_ref().map(String::as_bytes))?;
        self.schedule_wakeup(ctx);
        Ok(())
    }

    /// Returns the names of the manifests of static pods that begin with a prefix.
    pub fn static_pod_names(&self, prefix: &str) -> Vec<String> {
        let files = self.machine.files(self.manifests()).into_iter();
        let name = |(file, _): (String, _)| file.strip_suffix(".yaml").map(str::to_owned);
        files.filter_map(name).filter(|name| name.starts_with(prefix)).collect()
    }

    /// Returns the directory of static pods.
    fn manifests(&self) -> &str {
        self.kubelet.manifest_dir().unwrap_or(MANIFESTS)
    }

    /// Gives images a file system of their own, or takes it away, and restarts the kubelet, as it
    /// detects file systems at its start. Changes of images and dead containers on such a file
    /// system end with it.
    pub fn set_imagefs(&mut self, imagefs: Option<Imagefs>, ctx: &mut SimContext) {
        let images = &mut self.kubelet.status.images;
        images.restore();
        if imagefs.is_some() {
            images.save();
        }
        let used = images.used();
        if self.machine.imagefs().is_some() {
            self.kubelet.collect_containers(&mut self.machine);
        }
        self.machine.set_imagefs(imagefs, used);
        self.kubelet.restart(ctx);
    }

    /// Reserves memory for huge pages of 2 MiB, instead of what is reserved, and restarts the
    /// kubelet, as it reads them at its start.
    pub fn reserve_huge_pages(&mut self, bytes: u64, ctx: &mut SimContext) {
        self.machine.reserve_huge_pages(bytes);
        self.kubelet.restart(ctx);
    }

    /// Starts a command in a running container. [`Machine::take_exec`] returns its result.
    ///
    /// # Errors
    /// The container does not run, or cannot run the command.
    pub fn exec(
        &mut self,
        container: &str,
        command: &[String],
        ctx: &mut SimContext,
    ) -> Result<ExecId, ExecError> {
        let started = self.machine.exec(container, command, ctx.now);
        self.schedule_wakeup(ctx);
        started
    }

    /// Schedules the machine's next step, and notifies the kubelet of changed files.
    pub(crate) fn schedule_wakeup(&mut self, ctx: &mut SimContext) {
        let changes = self.machine.file_changes();
        if std::mem::replace(&mut self.notified_file_changes, changes) != changes {
            self.kubelet.files_changed(ctx);
        }
        let Some(next) = self.machine.next() else { return };
        // A step that is due now runs 1 µs later, so that no process can stop the clock.
        let next = next.max(ctx.now + Duration::from_micros(1));
        if self.wakeup.is_none_or(|scheduled| next < scheduled) {
            self.wakeup = Some(next);
            self.wakeups.schedule(next, (), ctx.sequence);
        }
    }
}
