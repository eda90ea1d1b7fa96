//! Lines of a recorded file, one at a time.

use std::io::{self, BufRead, Read};
use std::path::Path;

use evictlab_rules::quantity::MIB;

use super::error::RecordedRunError;

/// Maximum length of a line in bytes. The longest line that evictlab writes is the Summary of a
/// node.
pub(super) const MAX_LINE: u64 = 16 * MIB;

/// Lines of a file. Only the current line is in memory.
pub(super) struct Lines<'a, R> {
    path: &'a Path,
    reader: R,
    number: usize,
    line: Vec<u8>,
}

/// A line without its end.
pub(super) struct Line<'a> {
    /// Number of the line, from 1.
    pub(super) number: usize,
    /// Text.
    pub(super) text: &'a str,
    /// True if the line has an end. The last line of a killed process may have none.
    pub(super) is_complete: bool,
}

impl<'a, R: BufRead> Lines<'a, R> {
    /// Reads the lines of `reader`; `path` is its file.
    pub(super) fn new(path: &'a Path, reader: R) -> Self {
        Self { path, reader, number: 0, line: Vec::new() }
    }

    /// Returns the next line; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read; the line is longer than [`MAX_LINE`] or not UTF-8.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, RecordedRunError> {
        self.line.clear();
        self.number += 1;
        let read = self.reader.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut self.line);
        if read.map_err(|source| self.read_error(source))? == 0 {
            return Ok(None);
        }
        let is_complete = self.line.ends_with(b"\n");
        if !is_complete && self.line.len() as u64 > MAX_LINE {
            return Err(self.form_error(format!("the line is longer than {} MiB", MAX_LINE / MIB)));
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        match std::str::from_utf8(line) {
            Ok(text) => Ok(Some(Line { number: self.number, text, is_complete })),
            Err(error) => Err(self.form_error(error.to_string())),
        }
    }

    fn read_error(&self, source: io::Error) -> RecordedRunError {
        RecordedRunError::Read { path: self.path.to_owned(), source }
    }

    fn form_error(&self, reason: String) -> RecordedRunError {
        RecordedRunError::Form { path: self.path.to_owned(), line: self.number, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn read(bytes: impl Read) -> Result<Vec<(usize, usize, bool)>, String> {
        let mut lines = Lines::new(Path::new("events.jsonl"), BufReader::new(bytes));
        let mut all = Vec::new();
        while let Some(line) = lines.next().map_err(|error| error.to_string())? {
            all.push((line.number, line.text.len(), line.is_complete));
        }
        Ok(all)
    }

    #[test]
    fn lines_are_numbered_and_bounded() {
        assert_eq!(read(&b"a\n\nbc"[..]), Ok(vec![(1, 1, true), (2, 0, true), (3, 2, false)]));
        let longest = io::repeat(b'x').take(MAX_LINE);
        let length = MAX_LINE as usize;
        assert_eq!(read(longest.chain(&b"\n"[..])), Ok(vec![(1, length, true)]));
        // Without a limit, this would need all memory.
        let error = read((&b"a\n"[..]).chain(io::repeat(b'x'))).unwrap_err();
        assert!(
            error.starts_with("failed to parse events.jsonl:2: the line is longer than 16 MiB"),
            "{error}"
        );
        let error = read(&b"a\n\xff\n"[..]).unwrap_err();
        assert!(error.starts_with("failed to parse events.jsonl:2: invalid utf-8"), "{error}");
    }
}
