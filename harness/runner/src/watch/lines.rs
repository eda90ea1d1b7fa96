//! Changes as lines of a log.

use super::change::Change;
use super::ledger::Ledger;
use crate::report::{Ink, Line};

/// `thresholds` fits.
const WORD: usize = 10;

/// When, where, what, and how.
pub(super) fn line(change: &Change, ledger: &Ledger) -> Line {
    let widest = ledger.nodes.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut line = Line::default();
    line.push(&change.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), Ink::Dim);
    line.gap();
    line.push_padded(&change.node, Ink::Plain, widest);
    line.gap();
    line.push_padded(change.what.word(), change.what.ink(), WORD);
    line.gap();
    line.push(&change.text, Ink::Plain);
    line
}
