//! Event queues that share one order.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::time::SimTime;

/// Number of events that were scheduled in all queues of a simulation. Orders events of the same
/// time across queues.
#[derive(Debug, Default)]
pub(crate) struct Sequence(u64);

/// Position of an event in a simulation: its time, then the order of scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    /// Time of the event.
    pub time: SimTime,
    number: u64,
}

/// Events in the order of their slots. Scheduled events cannot be cancelled: the owner ignores
/// stale events.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    events: BinaryHeap<Reverse<Scheduled<E>>>,
}

#[derive(Debug)]
struct Scheduled<E> {
    slot: Slot,
    event: E,
}

impl<E> EventQueue<E> {
    /// Adds an event after all events that are scheduled for the same time, in all queues.
    pub(crate) fn schedule(&mut self, time: SimTime, event: E, sequence: &mut Sequence) {
        sequence.0 += 1;
        self.events.push(Reverse(Scheduled { slot: Slot { time, number: sequence.0 }, event }));
    }

    /// Returns the slot of the first event.
    pub(crate) fn next(&self) -> Option<Slot> {
        self.events.peek().map(|Reverse(first)| first.slot)
    }

    /// Removes and returns the first event.
    pub(crate) fn pop(&mut self) -> Option<E> {
        self.events.pop().map(|Reverse(first)| first.event)
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { events: BinaryHeap::new() }
    }
}

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        self.slot == other.slot
    }
}

impl<E> Eq for Scheduled<E> {}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Scheduled<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.slot.cmp(&other.slot)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn orders_by_time_then_by_scheduling_across_queues() {
        let (early, late) = (SimTime::ZERO, SimTime::from_start(Duration::from_secs(1)));
        let mut sequence = Sequence::default();
        let (mut one, mut other) = (EventQueue::default(), EventQueue::default());
        one.schedule(late, "third", &mut sequence);
        other.schedule(early, "first", &mut sequence);
        one.schedule(early, "second", &mut sequence);
        other.schedule(late, "fourth", &mut sequence);
        let mut order = Vec::new();
        while let Some(queue) = [&mut one, &mut other]
            .into_iter()
            .filter(|queue| queue.next().is_some())
            .min_by_key(|queue| queue.next())
        {
            order.extend(queue.pop());
        }
        assert_eq!(order, ["first", "second", "third", "fourth"]);
    }
}
