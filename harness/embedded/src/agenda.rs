//! What is due when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::control::ControlEvent;
use crate::node::NodeEvent;
use crate::time::Time;

/// Something that is to be done at its time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// Objects have changed: whoever watches them looks.
    Changes,
    /// By a node.
    Node(String, NodeEvent),
    /// By the scheduler or a controller.
    Control(ControlEvent),
    /// A fault of the script, by its place in it, strikes.
    Fault(usize),
}

/// Everything that is due, in order of time; what is due at the same time, in the order in which it was asked for.
#[derive(Debug, Default)]
pub struct Agenda {
    all: BinaryHeap<Reverse<(Time, u64, Due)>>,
    asked: u64,
}

impl Agenda {
    /// Asks for something to be done at a time. What was asked for is done: who changes his mind must know it when it comes.
    pub fn at(&mut self, time: Time, due: Due) {
        self.asked += 1;
        self.all.push(Reverse((time, self.asked, due)));
    }

    /// When something is due next.
    pub fn next(&self) -> Option<Time> {
        self.all.peek().map(|Reverse((time, ..))| *time)
    }

    /// The first thing that is due no later than `now`, with its time.
    pub fn pop(&mut self, now: Time) -> Option<(Time, Due)> {
        if self.next()? > now {
            return None;
        }
        self.all.pop().map(|Reverse((time, _, due))| (time, due))
    }
}
