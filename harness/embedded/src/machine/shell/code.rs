//! A script as a list of operations: a process that runs it can stop at any of them and go on later.

use std::sync::Arc;

use brush_parser::ast::{ArithmeticExpr, BinaryPredicate, UnaryPredicate};

use super::super::files::Mode;

/// A script, a trap's action or what `eval` was given.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub ops: Vec<Op>,
    /// How many command substitutions are kept at once.
    pub slots: usize,
}

/// One operation. Places are indices of operations.
#[derive(Debug)]
pub(super) enum Op {
    Command(Box<Command>),
    /// `((…))`
    Arithmetic(Arithmetic),
    /// `[[ … ]]`
    Test(Test),
    Jump(usize),
    /// Jumps if the last status was a failure.
    Unless(usize),
    /// Jumps if it was a success.
    If(usize),
    /// `!`
    Invert,
    Status(i32),
    /// Ends the shell after a failure if `set -e` says so.
    Check,
    /// What follows runs beside; the shell goes on at `end`.
    Background {
        end: usize,
    },
    /// What follows runs in a shell of its own, for which this one waits.
    Subshell {
        end: usize,
    },
    /// The same, and its output is kept.
    Capture {
        slot: usize,
        end: usize,
    },
    /// Shells beside one another, each reading what the one before it writes.
    Pipeline {
        parts: Vec<usize>,
        end: usize,
    },
    /// The end of a shell.
    Done,
    /// Changes descriptors until `Restore`.
    Redirect(Vec<Redirect>),
    Restore,
    /// A loop: `continue` goes to `next`, `break` to `end`.
    Loop {
        next: usize,
        end: usize,
    },
    /// A loop over words.
    For {
        words: Option<Vec<Word>>,
        next: usize,
        end: usize,
    },
    /// Gives the variable its next value, or jumps.
    Next {
        variable: String,
        otherwise: usize,
    },
    EndLoop,
    Case {
        word: Word,
        arms: Vec<(Vec<Word>, usize)>,
        otherwise: usize,
    },
    /// A function, whose body follows.
    Define {
        name: String,
        end: usize,
    },
    /// The end of a function, of a trap's action or of what `eval` was given.
    Return,
}

/// A simple command.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub assignments: Vec<Assignment>,
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
}

#[derive(Debug)]
pub(super) struct Assignment {
    pub name: String,
    pub value: Word,
    pub append: bool,
}

/// A redirection of a descriptor.
#[derive(Debug)]
pub(super) struct Redirect {
    pub descriptor: usize,
    pub to: To,
}

#[derive(Debug)]
pub(super) enum To {
    File(Mode, Word),
    /// Another descriptor, or `-`.
    Descriptor(Word),
    /// A text to be read.
    Text(Word),
    /// `&>`
    Both(Mode, Word),
}

/// A word before its expansion.
#[derive(Debug, Default)]
pub(super) struct Word {
    pub pieces: Vec<Piece>,
}

#[derive(Debug)]
pub(super) enum Piece {
    Text { text: String, quoted: bool },
    Parameter { parameter: Box<Parameter>, quoted: bool },
    Arithmetic { arithmetic: Arithmetic, quoted: bool },
    Capture { slot: usize, quoted: bool },
}

/// What a parameter's name is.
#[derive(Debug)]
pub(super) enum Name {
    Variable(String),
    Position(usize),
    /// `$@` and `$*`
    All {
        joined: bool,
    },
    /// `$#`
    Count,
    /// `$?`
    Status,
    /// `$$`
    Process,
    /// `$!`
    Background,
    /// `$-`
    Flags,
}

#[derive(Debug)]
pub(super) struct Parameter {
    pub name: Name,
    pub change: Change,
}

/// What is made of a parameter's value. `null` says that an empty value counts as none.
#[derive(Debug)]
pub(super) enum Change {
    None,
    Default { null: bool, word: Word },
    Assign { null: bool, word: Word },
    Error { null: bool, word: Word },
    Alternative { null: bool, word: Word },
    Length,
    Cut { front: bool, longest: bool, pattern: Word },
    Part { from: Arithmetic, length: Option<Arithmetic> },
    Replace { pattern: Word, by: Word, all: bool },
}

/// An arithmetic expression.
#[derive(Debug)]
pub(super) enum Arithmetic {
    Ready(ArithmeticExpr),
    /// One that has to be expanded first.
    Text(Word),
}

#[derive(Debug)]
pub(super) enum Test {
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Not(Box<Test>),
    Unary(UnaryPredicate, Word),
    Binary(BinaryPredicate, Word, Word),
}

/// A place in a script.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub code: Arc<Code>,
    pub at: usize,
}
