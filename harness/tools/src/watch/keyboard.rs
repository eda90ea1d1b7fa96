//! Keys from a terminal.

use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::thread;

use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A key with a meaning in the live view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Selects the line above.
    Up,
    /// Selects the line below.
    Down,
    /// Selects the line a page above.
    PageUp,
    /// Selects the line a page below.
    PageDown,
    /// Selects the first line.
    Home,
    /// Selects the last line.
    End,
    /// Shows only the selected node.
    Open,
    /// Returns to the list of nodes.
    Close,
    /// Watches the next signal.
    NextSignal,
    /// Watches the previous signal.
    PreviousSignal,
    /// Ends the watch.
    Quit,
}

/// Bytes that terminals send for keys (xterm and VT220 sequences, in normal and application mode),
/// and letters as in `less` and vi. Longer sequences come first.
const KEYS: [(&[u8], Key); 28] = [
    (b"\x1b[5~", Key::PageUp),
    (b"\x1b[6~", Key::PageDown),
    (b"\x1b[1~", Key::Home),
    (b"\x1b[4~", Key::End),
    (b"\x1b[A", Key::Up),
    (b"\x1bOA", Key::Up),
    (b"\x1b[B", Key::Down),
    (b"\x1bOB", Key::Down),
    (b"\x1b[C", Key::Open),
    (b"\x1bOC", Key::Open),
    (b"\x1b[D", Key::Close),
    (b"\x1bOD", Key::Close),
    (b"\x1b[H", Key::Home),
    (b"\x1bOH", Key::Home),
    (b"\x1b[F", Key::End),
    (b"\x1bOF", Key::End),
    (b"k", Key::Up),
    (b"j", Key::Down),
    (b"b", Key::PageUp),
    (b" ", Key::PageDown),
    (b"g", Key::Home),
    (b"G", Key::End),
    (b"\n", Key::Open),
    (b"l", Key::Open),
    (b"h", Key::Close),
    (b"s", Key::NextSignal),
    (b"S", Key::PreviousSignal),
    (b"q", Key::Quit),
];

/// Reads keys while it exists, and restores the mode of the terminal when it is dropped.
///
/// Only line buffering and echo are disabled, so Ctrl-C and Ctrl-Z send their signals, and output
/// does not change. This is why it does not use crossterm, whose raw mode disables both.
#[derive(Debug)]
pub struct Keyboard {
    before: Arc<Termios>,
}

impl Keyboard {
    /// Starts to read keys from standard input. Returns `None` if standard input is not a terminal,
    /// or belongs to another process group: reading it would stop a process in the background.
    ///
    /// # Errors
    /// The mode of the terminal cannot be changed, or the thread that reads cannot be started.
    pub fn open() -> io::Result<Option<(Self, UnboundedReceiver<Key>)>> {
        if !io::stdin().is_terminal() || tcgetpgrp(stdin()) != Ok(getpgrp()) {
            return Ok(None);
        }
        let before = tcgetattr(stdin())?;
        let mut mode = before.clone();
        mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        tcsetattr(stdin(), OptionalActions::Now, &mode)?;
        let keyboard = Self { before: Arc::new(before) };
        let (sender, keys) = unbounded_channel();
        // A blocking read cannot be cancelled: the thread ends with the process.
        thread::Builder::new().name("keys".to_owned()).spawn(move || {
            let mut buffer = [0; 64];
            let mut kept = 0;
            while let Ok(read @ 1..) = io::stdin().read(&mut buffer[kept..]) {
                let filled = kept + read;
                // A full buffer may end within a sequence.
                let whole = if filled == buffer.len() { complete(&buffer) } else { filled };
                if decode(&buffer[..whole]).into_iter().any(|key| sender.send(key).is_err()) {
                    return;
                }
                buffer.copy_within(whole..filled, 0);
                kept = filled - whole;
            }
        })?;
        Ok(Some((keyboard, keys)))
    }

    /// Returns a function that restores the mode of the terminal, for a process that exits without
    /// dropping its values.
    pub fn restorer(&self) -> impl Fn() + Send + use<> {
        let before = self.before.clone();
        move || {
            // A terminal that was closed does not have a mode.
            let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.restorer()();
    }
}

/// Returns the keys in what one read returned. A terminal sends the sequence of a key at once;
/// unknown sequences are skipped, and a single escape is the key Esc.
fn decode(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while !bytes.is_empty() {
        if let Some((sequence, key)) = KEYS.iter().find(|(sequence, _)| bytes.starts_with(sequence)) {
            keys.push(*key);
            bytes = &bytes[sequence.len()..];
        } else if bytes == b"\x1b" {
            keys.push(Key::Close);
            bytes = &[];
        } else {
            bytes = &bytes[unknown_length(bytes)..];
        }
    }
    keys
}

/// Returns the length of an unknown key, at most that of `bytes`.
fn unknown_length(bytes: &[u8]) -> usize {
    sequence_length(bytes).unwrap_or(bytes.len())
}

/// Returns the length of the first key; `None` if its sequence is unfinished. A control sequence
/// ends with a byte from `@` to `~`; `ESC O` is followed by one byte.
fn sequence_length(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'\x1b', b'[', rest @ ..] => Some(rest.iter().position(|byte| (b'@'..=b'~').contains(byte))? + 3),
        [b'\x1b', b'O', _, ..] => Some(3),
        [b'\x1b'] | [b'\x1b', b'O'] => None,
        _ => Some(1),
    }
}

/// Returns the length without an unfinished sequence at the end. One that fills all of `bytes`
/// counts as finished.
fn complete(bytes: &[u8]) -> usize {
    let last = bytes.iter().rposition(|byte| *byte == b'\x1b').filter(|last| *last > 0);
    last.filter(|last| sequence_length(&bytes[*last..]).is_none()).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_of_terminals_are_decoded() {
        for (bytes, expected) in [
            (&b"\x1b[A\x1bOB"[..], &[Key::Up, Key::Down][..]),
            (b"\x1b", &[Key::Close]),
            (b"\x1b[5~k\n", &[Key::PageUp, Key::Up, Key::Open]),
            // Ctrl-Up and F5 are unknown: nothing of them counts as a letter.
            (b"\x1b[1;5Aq", &[Key::Quit]),
            (b"\x1b[15~s", &[Key::NextSignal]),
            // F4, and `j` of the keypad in application mode.
            (b"\x1bOSq", &[Key::Quit]),
            (b"\x1bOj", &[]),
            (b"\x1bO", &[]),
            (b"\xc3\xa4S", &[Key::PreviousSignal]),
            (b"\x1b[", &[]),
        ] {
            assert_eq!(decode(bytes), expected, "{:?}", bytes.escape_ascii().to_string());
        }
    }

    #[test]
    fn a_sequence_at_the_end_of_a_full_buffer_waits_for_the_rest() {
        for (bytes, length) in [
            (&b"k\x1b"[..], 1),
            (b"kk\x1b[1;", 2),
            (b"\x1b[A\x1bO", 3),
            (b"k\x1b[A", 4),
            (b"kj", 2),
            (b"\x1b[1111", 6),
        ] {
            assert_eq!(complete(bytes), length, "{:?}", bytes.escape_ascii().to_string());
        }
    }
}
