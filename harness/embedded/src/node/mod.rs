//! A node: a machine and the kubelet on it.

mod events;

use std::time::Duration;

pub use events::NodeEvent;
use serde_json::Value;

use crate::agenda::Due;
use crate::kubelet::Kubelet;
use crate::machine::{Machine, NoSpace};
use crate::options::{NodeOptions, OptionsError};
use crate::time::Time;
use crate::world::Ctx;

/// Where kubeadm's kubelets look for static pods.
const MANIFESTS: &str = "/etc/kubernetes/manifests";

/// A machine and its kubelet.
pub struct Node {
    /// Its name.
    pub name: String,
    /// Processes, memory, disk.
    pub machine: Machine,
    /// The kubelet.
    pub kubelet: Kubelet,
    /// For when the machine's next step is asked for already.
    asked: Option<Time>,
    /// How often files of the node had changed when the kubelet was told last.
    files: u64,
}

impl Node {
    /// A node that is off. Sizes that no node has are refused.
    pub fn new(options: NodeOptions) -> Result<Self, OptionsError> {
        Ok(Self {
            name: options.name.clone(),
            machine: Machine::new(&options)?,
            kubelet: Kubelet::new(&options)?,
            asked: None,
            files: 0,
        })
    }

    /// Switches it on: the kubelet registers the node.
    pub fn start(&mut self, ctx: &mut Ctx) {
        self.machine.set_epoch(ctx.epoch());
        self.kubelet.start(&mut self.machine, ctx);
        self.ask(ctx);
    }

    /// Objects have changed.
    pub fn changed(&mut self, ctx: &mut Ctx) {
        self.kubelet.changed(&mut self.machine, ctx);
        self.ask(ctx);
    }

    /// Something of it is due.
    pub fn on(&mut self, event: NodeEvent, ctx: &mut Ctx) {
        match event {
            NodeEvent::Machine => {
                self.asked = None;
                for happened in self.machine.run(ctx.now, ctx.rng) {
                    self.kubelet.happened(happened, &mut self.machine, ctx);
                }
            }
            NodeEvent::Kubelet(event) => self.kubelet.on(event, &mut self.machine, ctx),
        }
        self.ask(ctx);
    }

    /// Puts the manifest of a static pod on the node, or takes it away, as a file where the kubelet looks for such (`staticPodPath`).
    ///
    /// # Errors
    /// If the disk is full.
    pub fn static_pod(&mut self, name: &str, manifest: Option<&Value>, ctx: &mut Ctx) -> Result<(), NoSpace> {
        let directory = self.kubelet.manifests().unwrap_or(MANIFESTS).trim_end_matches('/');
        let path = format!("{directory}/{name}.yaml");
        // JSON is YAML.
        let text = manifest.map(Value::to_string);
        self.machine.put_file(&path, text.as_ref().map(String::as_bytes))?;
        self.ask(ctx);
        Ok(())
    }

    /// Asks for the machine's next step, and tells the kubelet of files that have changed.
    pub fn ask(&mut self, ctx: &mut Ctx) {
        let files = self.machine.file_changes();
        if std::mem::replace(&mut self.files, files) != files {
            self.kubelet.files_changed(ctx);
        }
        let Some(next) = self.machine.next() else { return };
        // What is due now is done in the next turn, so that no step can go on for ever within one moment.
        let next = next.max(ctx.now + Duration::from_micros(1));
        if self.asked.is_none_or(|asked| next < asked) {
            self.asked = Some(next);
            ctx.agenda.at(next, Due::Node(self.name.clone(), NodeEvent::Machine));
        }
    }
}
