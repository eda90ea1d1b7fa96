//! The whole model at one moment, and what moves it to the next.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::agenda::{Agenda, Due};
use crate::control::Control;
use crate::fault::{Faults, Scope};
use crate::node::Node;
use crate::options::{Options, OptionsError};
use crate::store::Store;
use crate::time::{Epoch, Time};

/// All chance in the model.
pub type Rng = ChaCha8Rng;

/// What everybody in the model works with.
pub struct Ctx<'a> {
    /// The moment.
    pub now: Time,
    /// The objects.
    pub store: &'a mut Store,
    /// What is due.
    pub agenda: &'a mut Agenda,
    /// Chance.
    pub rng: &'a mut Rng,
    /// What goes wrong.
    pub faults: &'a mut Faults,
}

impl Ctx<'_> {
    /// What the calendar says when the cluster begins.
    pub fn epoch(&self) -> Epoch {
        self.store.epoch
    }
}

/// The model.
pub struct World {
    /// The moment up to which everything was done.
    pub now: Time,
    /// The objects.
    pub store: Store,
    /// The nodes by name.
    pub nodes: BTreeMap<String, Node>,
    /// What goes wrong.
    pub faults: Faults,
    agenda: Agenda,
    control: Control,
    rng: Rng,
    /// The version of the store of which everybody has been told.
    told: u64,
}

impl World {
    /// A cluster at its beginning: control plane, namespaces and registered nodes.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        let mut world = Self {
            now: Time::ZERO,
            store: Store::new(options.seed, Epoch(options.epoch)),
            nodes: BTreeMap::new(),
            faults: Faults::default(),
            agenda: Agenda::default(),
            control: Control::new(options.event_ttl),
            rng: Rng::seed_from_u64(options.seed),
            told: 0,
        };
        let everywhere = Scope::default();
        world.with(|_, _, ctx| ctx.faults.arm(&options.faults, &everywhere, ctx.now, ctx.agenda));
        let nodes = options.nodes.into_iter().map(Node::new).collect::<Result<Vec<_>, _>>()?;
        world.with(|control, _, ctx| control.start(ctx));
        for mut node in nodes {
            world.with(|_, _, ctx| node.start(ctx));
            world.nodes.insert(node.name.clone(), node);
        }
        world.run(Time::ZERO);
        Ok(world)
    }

    /// Does all that is due until `now`.
    pub fn run(&mut self, now: Time) {
        self.spread();
        while let Some((time, due)) = self.agenda.pop(now) {
            self.now = self.now.max(time);
            self.with(|control, nodes, ctx| match due {
                Due::Changes => {
                    control.changed(ctx);
                    nodes.values_mut().for_each(|node| node.changed(ctx));
                }
                Due::Node(name, event) => {
                    if let Some(node) = nodes.get_mut(&name) {
                        node.on(event, ctx);
                    }
                }
                Due::Control(event) => control.on(event, nodes, ctx),
                Due::Fault(at) => crate::fault::strike(at, nodes, ctx),
            });
            self.spread();
        }
        self.now = self.now.max(now);
    }

    /// When something is due next.
    pub fn next(&self) -> Option<Time> {
        self.agenda.next()
    }

    /// Works on the model at its present moment, as a request does.
    pub fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Control, &mut BTreeMap<String, Node>, &mut Ctx) -> T,
    ) -> T {
        let mut ctx = Ctx {
            now: self.now,
            store: &mut self.store,
            agenda: &mut self.agenda,
            rng: &mut self.rng,
            faults: &mut self.faults,
        };
        let done = work(&mut self.control, &mut self.nodes, &mut ctx);
        self.spread();
        done
    }

    /// Has everybody told of what has changed, a moment later, as watches do.
    fn spread(&mut self) {
        const WATCH: std::time::Duration = std::time::Duration::from_millis(2);
        if self.store.version() != self.told {
            self.told = self.store.version();
            self.agenda.at(self.now + WATCH, Due::Changes);
        }
    }
}
