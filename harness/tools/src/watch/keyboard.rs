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
            while let Ok(read @ 1..) = io::stdin().read(&mut buffer) {
                if decode(&buffer[..read]).into_iter().any(|key| sender.send(key).is_err()) {
                    return;
                }
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

/// Length of an unknown key: a control sequence ends with a byte from `@` to `~`.
fn unknown_length(bytes: &[u8]) -> usize {
    match bytes.strip_prefix(b"\x1b[") {
        Some(rest) => {
            rest.iter().position(|byte| (b'@'..=b'~').contains(byte)).map_or(bytes.len(), |end| end + 3)
        }
        None => 1,
    }
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
            (b"\xc3\xa4S", &[Key::PreviousSignal]),
            (b"\x1b[", &[]),
        ] {
            assert_eq!(decode(bytes), expected, "{:?}", bytes.escape_ascii().to_string());
        }
    }
}
