//! The sending end of the stream of events.

use jiff::Timestamp;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::judge::Phase;
use crate::report::{CaseId, RunEvent, What};

/// Tells the reports what happens. Cheap to clone; telling never waits and never fails, even if nobody listens any more.
#[derive(Clone, Debug)]
pub struct Teller {
    sender: UnboundedSender<RunEvent>,
}

impl Teller {
    /// A teller and the end where its events arrive.
    pub fn new() -> (Self, UnboundedReceiver<RunEvent>) {
        let (sender, receiver) = unbounded_channel();
        (Self { sender }, receiver)
    }

    /// Tells it.
    pub fn tell(&self, what: What) {
        let _unheard = self.sender.send(RunEvent { at: Timestamp::now(), what });
    }

    /// Tells a step of a case.
    pub fn step(&self, id: &CaseId, phase: Phase, text: impl Into<String>) {
        self.tell(What::CaseStep { id: id.clone(), phase, text: text.into() });
    }
}
