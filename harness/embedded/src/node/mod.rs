//! A node: a machine and the kubelet on it.

mod events;

use std::time::Duration;

pub use events::NodeEvent;

use crate::agenda::Due;
use crate::kubelet::Kubelet;
use crate::machine::Machine;
use crate::options::{NodeOptions, OptionsError};
use crate::time::Time;
use crate::world::Ctx;

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
}

impl Node {
    /// A node that is off. Sizes that no node has are refused.
    pub fn new(options: NodeOptions) -> Result<Self, OptionsError> {
        Ok(Self {
            name: options.name.clone(),
            machine: Machine::new(&options)?,
            kubelet: Kubelet::new(&options)?,
            asked: None,
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

    /// Asks for the machine's next step.
    pub fn ask(&mut self, ctx: &mut Ctx) {
        let Some(next) = self.machine.next() else { return };
        // What is due now is done in the next turn, so that no step can go on for ever within one moment.
        let next = next.max(ctx.now + Duration::from_micros(1));
        if self.asked.is_none_or(|asked| next < asked) {
            self.asked = Some(next);
            ctx.agenda.at(next, Due::Node(self.name.clone(), NodeEvent::Machine));
        }
    }
}
