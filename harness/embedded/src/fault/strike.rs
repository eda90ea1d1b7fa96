//! Faults that happen at a moment.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Fault;
use crate::agenda::Due;
use crate::kubelet::KubeletEvent;
use crate::node::{Node, NodeEvent};
use crate::world::Ctx;

/// How long systemd takes to start a kubelet again.
const RESTART: Duration = Duration::from_millis(600);

/// The fault of this place among those armed strikes; what lasts ends when it strikes again.
pub fn strike(place: usize, nodes: &mut BTreeMap<String, Node>, ctx: &mut Ctx) {
    let Some(armed) = ctx.faults.armed.get_mut(place) else { return };
    armed.struck += 1;
    let ends = armed.struck > 1;
    let (fault, scope) = (armed.fault.clone(), armed.scope.clone());
    match fault {
        Fault::WatchClosed(_) | Fault::WatchExpired(_) => {
            let cuts = ctx.faults.cuts.times() + 1;
            if let Some(armed) = ctx.faults.armed.get_mut(place) {
                armed.struck = u32::try_from(cuts).unwrap_or(u32::MAX);
            }
            ctx.faults.cuts.tell();
        }
        _ => {
            let struck = nodes
                .iter_mut()
                .filter(|(name, _)| scope.node.as_ref().is_none_or(|of| of == *name))
                .map(|(_, node)| node);
            for node in struck {
                match &fault {
                    Fault::OomKill(_) => node.machine.oom(ctx.now),
                    Fault::NodeGone(_) if ends => start(node, Duration::ZERO, ctx),
                    Fault::NodeGone(_) => node.kubelet.stop(),
                    _ => {
                        node.kubelet.stop();
                        start(node, RESTART, ctx);
                    }
                }
                node.ask(ctx);
            }
        }
    }
}

fn start(node: &Node, after: Duration, ctx: &mut Ctx) {
    let event = Due::Node(node.name.clone(), NodeEvent::Kubelet(KubeletEvent::Start));
    ctx.agenda.at(ctx.now + after, event);
}
