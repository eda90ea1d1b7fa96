//! A compiled script: a flat list of operations, so that a shell can stop at any of them and
//! continue later.

use std::sync::Arc;

use brush_parser::ast::ArithmeticExpr;

use crate::machine::paths::OpenMode;

/// A compiled script or trap action.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub ops: Vec<Op>,
    /// Number of command substitutions, each with a slot for its output.
    pub captures: usize,
}

/// One operation. `usize` operands are indices of operations unless stated otherwise.
#[derive(Debug)]
pub(super) enum Op {
    Command(Box<Command>),
    Jump(usize),
    JumpIfFailed(usize),
    JumpIfSucceeded(usize),
    SetStatus(i32),
    /// Runs the operations that follow in a background process, and continues at `end`.
    Background {
        end: usize,
    },
    /// Runs the operations that follow in a child shell, waits for it and continues at `end`.
    Subshell {
        end: usize,
    },
    /// The same, and stores the child's output in a slot.
    Capture {
        slot: usize,
        end: usize,
    },
    /// Ends the shell.
    Exit,
    /// Changes descriptors until `Restore`; continues at `end` if that fails.
    Redirect {
        redirects: Vec<Redirect>,
        end: usize,
    },
    Restore,
    /// Begins a loop over the fields of words.
    BeginFor(Vec<Word>),
    /// Assigns the next item of a `for` loop to its variable, or jumps after the last one.
    NextItem {
        variable: String,
        done: usize,
    },
    /// Ends a `for` loop.
    EndFor,
    /// Ends a trap action.
    Return,
}

/// A simple command.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub assignments: Vec<Assignment>,
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
}

/// `name=value`
#[derive(Debug)]
pub(super) struct Assignment {
    pub name: String,
    pub value: Word,
}

/// A redirection of a descriptor.
#[derive(Debug)]
pub(super) struct Redirect {
    pub descriptor: usize,
    pub target: RedirectTarget,
}

#[derive(Debug)]
pub(super) enum RedirectTarget {
    File(OpenMode, Word),
    /// The number of another descriptor, or `-`.
    Descriptor(Word),
}

/// A word before its expansion.
#[derive(Debug, Default)]
pub(super) struct Word(pub Vec<Piece>);

impl Word {
    /// Returns a word that expands to `text`.
    pub(super) fn literal(text: &str) -> Self {
        Self(vec![Piece { kind: PieceKind::Text(text.to_owned()), quoted: true }])
    }

    /// Returns whether the word contains a command substitution.
    pub(super) fn has_capture(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece.kind, PieceKind::Capture(_)))
    }
}

/// A part of a word. The expansion of an unquoted one is split into fields.
#[derive(Debug)]
pub(super) struct Piece {
    pub kind: PieceKind,
    pub quoted: bool,
}

#[derive(Debug)]
pub(super) enum PieceKind {
    Text(String),
    Parameter(Parameter),
    Arithmetic(ArithmeticExpr),
    /// The output of a command substitution, by its slot.
    Capture(usize),
}

/// A parameter: `$name` or `${name}`.
#[derive(Debug)]
pub(super) enum Parameter {
    Variable(String),
    /// `$?`
    Status,
    /// `$$`
    ShellPid,
    /// `$!`
    BackgroundPid,
}

/// The position of an operation in a script.
#[derive(Clone, Debug)]
pub(super) struct Position {
    pub script: Arc<Script>,
    pub index: usize,
}
