//! Configuration changes and restarts.

use std::time::Duration;

use rand::RngExt;
use serde_json::{Map, Value};

use super::kubelet_config::Housekeeping;
use crate::context::SimContext;
use crate::kubelet::log::Level;
use crate::kubelet::state::Kubelet;

/// Shortest time that systemd takes to start a kubelet again. A restart by a fault takes exactly
/// this time and draws no random number, so that a fault does not change what follows it.
const MIN_RESTART_TIME: Duration = Duration::from_millis(600);
/// Longest time that systemd takes to start a kubelet again.
const MAX_RESTART_TIME: Duration = Duration::from_millis(900);

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
    pub fn restore_config(&mut self, ctx: &mut SimContext) {
        self.configure(&Map::new(), Housekeeping::Default, ctx);
    }

    /// Restarts the kubelet, as systemd does: it starts again after a random time.
    pub fn restart(&mut self, ctx: &mut SimContext) {
        self.stop();
        let after = ctx.rng.random_range(micros(MIN_RESTART_TIME)..micros(MAX_RESTART_TIME));
        self.schedule_start(ctx.now + Duration::from_micros(after), ctx);
    }

    /// Restarts the kubelet in the shortest time, as a fault does.
    pub(crate) fn restart_without_jitter(&mut self, ctx: &mut SimContext) {
        self.stop();
        self.schedule_start(ctx.now + MIN_RESTART_TIME, ctx);
    }

    /// Parses the configuration, and returns whether the kubelet accepts it. A kubelet that rejects
    /// the configuration logs the reason and stops.
    pub(in crate::kubelet) fn load_config(&mut self, ctx: &mut SimContext) -> bool {
        match self.config.read(&self.options) {
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

fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}
