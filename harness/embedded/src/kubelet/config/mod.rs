//! KubeletConfiguration: what a kubelet runs with.

mod fields;
mod file;
mod settings;

use std::time::Duration;

use rand::RngExt;
use serde_json::{Map, Value, json};

pub use settings::{Refusal, Settings};

use super::log::Level;
use super::{Identity, Kubelet, KubeletEvent};
use crate::agenda::Due;
use crate::node::NodeEvent;
use crate::world::Ctx;

/// A configuration: the file, and what follows from it.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file `/var/lib/kubelet/config.yaml`, as kind writes it, with what was changed in it.
    pub file: Map<String, Value>,
    /// `--housekeeping-interval=1s` is among the flags.
    pub fast_housekeeping: bool,
    /// What the kubelet that runs was started with.
    pub settings: Settings,
    /// All fields with their values, as the kubelet that runs has them.
    all: Map<String, Value>,
    /// The node's own file, which changes begin from.
    own: Map<String, Value>,
}

impl Config {
    /// As kind configures its nodes.
    pub fn new(identity: &Identity) -> Self {
        let own = file::of_kind(identity);
        Self {
            file: own.clone(),
            fast_housekeeping: false,
            settings: Settings::default(),
            all: Map::new(),
            own,
        }
    }

    /// Changes the node's own file: maps are merged, everything else is replaced. It counts from the kubelet's next start on.
    pub fn apply(&mut self, changes: &Map<String, Value>) {
        self.file = self.own.clone();
        file::merge(&mut self.file, changes);
    }

    /// What `configz` answers: every field with its default.
    pub fn configz(&self) -> Value {
        json!({"kubeletconfig": self.all})
    }

    /// Reads the file as a kubelet does that starts.
    ///
    /// # Errors
    /// What makes it refuse.
    fn read(&mut self, identity: &Identity) -> Result<Vec<String>, Refusal> {
        let (all, unknown) = fields::complete(&self.file, &identity.version)?;
        self.settings = Settings::read(&all, identity)?;
        self.all = all;
        Ok(unknown)
    }
}

impl Kubelet {
    /// Changes the node's own configuration file and flags, and restarts the kubelet: its answers stop at once, and come back after 0.6
    /// to 0.9 s, if it takes the file.
    pub fn configure(&mut self, changes: &Map<String, Value>, fast_housekeeping: bool, ctx: &mut Ctx) {
        self.config.apply(changes);
        self.config.fast_housekeeping = fast_housekeeping;
        self.restart(ctx);
    }

    /// Puts the node's own configuration back and restarts the kubelet.
    pub fn restore(&mut self, ctx: &mut Ctx) {
        self.configure(&Map::new(), false, ctx);
    }

    /// Restarts the kubelet, as systemd does.
    pub fn restart(&mut self, ctx: &mut Ctx) {
        self.stop();
        let after = Duration::from_micros(ctx.rng.random_range(600_000..900_000));
        let event = NodeEvent::Kubelet(KubeletEvent::Start);
        ctx.agenda.at(ctx.now + after, Due::Node(self.identity.node.clone(), event));
    }

    /// Reads the configuration; a kubelet that refuses it logs why and does not run.
    pub(super) fn config_start(&mut self, ctx: &mut Ctx) -> bool {
        match self.config.read(&self.identity) {
            Ok(unknown) => {
                if !unknown.is_empty() {
                    let error = format!("strict decoding error: {}", unknown.join(", "));
                    let message = "Using lenient decoding as strict decoding failed";
                    self.say(Level::Info, "codec.go:100", message, &format!("err={error:?}"), ctx);
                }
                true
            }
            Err(refusal) => {
                let (source, message) = refusal.said();
                self.say(Level::Error, source, message, &format!("err={:?}", refusal.to_string()), ctx);
                self.running = false;
                false
            }
        }
    }
}
