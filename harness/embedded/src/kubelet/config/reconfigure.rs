//! Configuration changes and restarts.

use std::time::Duration;

use rand::RngExt;
use serde_json::{Map, Value};

use super::kubelet_config::Housekeeping;
use crate::context::SimContext;
use crate::kubelet::log::Level;
use crate::kubelet::state::Kubelet;

impl Kubelet {
    /// Applies changes to the original configuration and restarts the kubelet. A kubelet that
    /// accepts the file is available again after 0.6 to 0.9 s.
    pub fn configure(
        &mut self,
        changes: &Map<String, Value>,
        housekeeping: Housekeeping,
        ctx: &mut SimContext,
    ) {
        self.config.apply(changes);
        self.config.housekeeping = housekeeping;
        self.restart(ctx);
    }

    /// Restores the original configuration and restarts the kubelet.
    pub fn restore(&mut self, ctx: &mut SimContext) {
        self.configure(&Map::new(), Housekeeping::Default, ctx);
    }

    /// Restarts the kubelet, as systemd does.
    pub fn restart(&mut self, ctx: &mut SimContext) {
        self.stop();
        let after = Duration::from_micros(ctx.rng.random_range(600_000..900_000));
        self.schedule_start(ctx.now + after, ctx);
    }

    /// Parses the configuration. A kubelet that rejects it logs the reason and stops.
    pub(in crate::kubelet) fn config_start(&mut self, ctx: &mut SimContext) -> bool {
        match self.config.read(&self.identity) {
            Ok(unknown) => {
                if !unknown.is_empty() {
                    let error = format!("strict decoding error: {}", unknown.join(", "));
                    let message = "Using lenient decoding as strict decoding failed";
                    self.write_log(Level::Info, "codec.go:100", message, &format!("err={error:?}"), ctx);
                }
                true
            }
            Err(rejection) => {
                let (source, message) = rejection.log_entry();
                self.write_log(
                    Level::Error,
                    source,
                    message,
                    &format!("err={:?}", rejection.to_string()),
                    ctx,
                );
                self.running = false;
                false
            }
        }
    }
}
