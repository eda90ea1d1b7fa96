//! The stream of a run, read back.

use std::fs;
use std::io;
use std::path::Path;

use super::PastError;
use crate::report::RunEvent;
use crate::report::ledger::Ledger;

/// Where it is.
pub(super) const FILE: &str = "artifacts/events.jsonl";

/// Everything that happened.
pub(super) fn read(dir: &Path) -> Result<Ledger, PastError> {
    let path = dir.join(FILE);
    let text = fs::read_to_string(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => PastError::NoRun { dir: dir.to_owned() },
        _ => PastError::Read { path: path.clone(), source },
    })?;
    let mut ledger = Ledger::default();
    // Whoever was killed while he wrote has left half a line.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for (place, line) in whole.lines().enumerate() {
        let event: RunEvent = serde_json::from_str(line).map_err(|error| {
            let why = format!("no event of a run, {error}");
            PastError::Form { path: path.clone(), line: place + 1, why }
        })?;
        ledger.take(&event);
    }
    if ledger.run.is_none() {
        return Err(PastError::Empty(path));
    }
    Ok(ledger)
}
