//! From a command line to an order.

use std::ffi::OsString;
use std::time::Duration;

use evictlab_rules::quantity::{Quantity, QuantityError};
use lexopt::Arg::{Long, Short, Value};
use lexopt::Parser;

use crate::agnhost::{self, Complaint};
use crate::order::{OnRefusal, OnTerm, Order, Stay, Take, Then, What};
use crate::pace::Pace;
use crate::{WRONG, duration};

/// How the program is used.
pub const HELP: &str = include_str!("help.txt");

/// The command line cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// There is nothing on it.
    #[error("what shall it take?\n\n{HELP}")]
    Nothing,
    /// It begins with something else than a command.
    #[error(
        "{0:?} is no command\nThere are memory, disk, inodes, logs, pids, page-cache, idle, stress and help."
    )]
    Command(String),
    /// A flag that no command has, or not this one.
    #[error("{command} has no {flag}\n`stress help` lists what there is.")]
    Flag {
        /// The command.
        command: &'static str,
        /// The flag, with its dashes; or what stands where a flag should.
        flag: String,
    },
    /// A flag without its value.
    #[error("{0} wants a value: {0} VALUE")]
    Value(String),
    /// A value for a flag that has none.
    #[error("{0} takes no value")]
    NoValue(String),
    /// No quantity.
    #[error("{flag}: {source}")]
    Quantity {
        /// The flag.
        flag: String,
        /// Why not.
        source: QuantityError,
    },
    /// A quantity that is less than a piece of what there is to take.
    #[error("{flag} {text} is too little: at least {least}")]
    Little {
        /// The flag.
        flag: String,
        /// The quantity.
        text: String,
        /// What would do.
        least: u64,
    },
    /// No duration.
    #[error("{flag}: {text:?} is no duration: write it like 250ms, 1.5s or 2m")]
    Duration {
        /// The flag.
        flag: String,
        /// The text.
        text: String,
    },
    /// No exit code.
    #[error("{flag}: {text:?} is no exit code: a number from 0 to 255")]
    Code {
        /// The flag.
        flag: String,
        /// The text.
        text: String,
    },
    /// None of the words that a flag knows.
    #[error("{flag}: {text:?} is neither {words}")]
    Word {
        /// The flag.
        flag: String,
        /// The text.
        text: String,
        /// The words that it knows.
        words: &'static str,
    },
    /// Neither how much nor how fast.
    #[error(
        "{command} wants --total, all that it takes, or --step, what it takes at once, or both: {command} --total {total} --step {step} --pause 250ms"
    )]
    Amount {
        /// The command.
        command: &'static str,
        /// A total that makes sense.
        total: &'static str,
        /// A step that makes sense.
        step: &'static str,
    },
    /// Lines of a log cannot be taken back.
    #[error("logs: lines that are written cannot be given back: --then free is for the other commands")]
    Unfree,
    /// Nothing comes after an end that never comes.
    #[error("--{0} says what comes after --hold DURATION, and there is none")]
    NoHold(&'static str),
    /// agnhost's complaint.
    #[error(transparent)]
    Agnhost(#[from] Complaint),
}

impl Wrong {
    /// The exit code.
    pub fn code(&self) -> i32 {
        match self {
            Self::Agnhost(complaint) => complaint.code,
            _ => WRONG,
        }
    }
}

/// Reads the arguments, the program's own name not among them.
///
/// # Errors
/// What cannot be used, and why.
pub fn read<Words>(arguments: Words) -> Result<Order, Wrong>
where
    Words: IntoIterator<Item: Into<OsString>>,
{
    let mut arguments = arguments.into_iter().map(Into::into);
    let Some(command) = arguments.next() else { return Err(Wrong::Nothing) };
    let command = command.to_string_lossy().into_owned();
    let what = match command.as_str() {
        "help" | "--help" | "-h" => return Ok(Order::Help),
        "child" => return Ok(Order::Child),
        "stress" => return Ok(Order::Stress(agnhost::read(arguments)?)),
        "idle" => None,
        "memory" => Some(What::Memory),
        "disk" => Some(What::Disk { allocate: false }),
        "inodes" => Some(What::Inodes),
        "logs" => Some(What::Logs),
        "pids" => Some(What::Pids),
        "page-cache" => Some(What::PageCache),
        _ => return Err(Wrong::Command(command)),
    };
    Flags::new(what).read(Parser::from_args(arguments))
}

/// What the flags said so far.
struct Flags {
    what: Option<What>,
    total: Option<u64>,
    step: Option<u64>,
    pause: Duration,
    delay: Duration,
    path: String,
    on_refusal: OnRefusal,
    hold: Option<Duration>,
    then: Option<Then>,
    exit: Option<u8>,
    term_exit: u8,
    term_delay: Duration,
    ignore_term: bool,
}

impl Flags {
    fn new(what: Option<What>) -> Self {
        Self {
            what,
            total: None,
            step: None,
            pause: Duration::from_secs(1),
            delay: Duration::ZERO,
            path: "stress-files".to_owned(),
            on_refusal: OnRefusal::Exit,
            hold: None,
            then: None,
            exit: None,
            term_exit: 143,
            term_delay: Duration::ZERO,
            ignore_term: false,
        }
    }

    fn command(&self) -> &'static str {
        self.what.map_or("idle", What::command)
    }

    fn read(mut self, mut parser: Parser) -> Result<Order, Wrong> {
        while let Some(argument) = parser.next().map_err(|error| match error {
            lexopt::Error::UnexpectedValue { option, .. } => Wrong::NoValue(option),
            other => Wrong::Flag { command: self.command(), flag: other.to_string() },
        })? {
            let flag = match argument {
                Long("help") | Short('h') => return Ok(Order::Help),
                Long(name) => format!("--{name}"),
                Short(short) => format!("-{short}"),
                Value(value) => value.to_string_lossy().into_owned(),
            };
            self.flag(flag, &mut parser)?;
        }
        self.order()
    }

    fn flag(&mut self, flag: String, parser: &mut Parser) -> Result<(), Wrong> {
        let takes = self.what.is_some();
        let mut value = |flag: &str| match parser.value() {
            Ok(value) => Ok(value.to_string_lossy().into_owned()),
            Err(_) => Err(Wrong::Value(flag.to_owned())),
        };
        match flag.as_str() {
            "--total" if takes => self.total = Some(amount(&flag, value(&flag)?, 0)?),
            "--step" if takes => self.step = Some(amount(&flag, value(&flag)?, 1)?),
            "--pause" if takes => self.pause = length(&flag, value(&flag)?)?,
            "--delay" if takes => self.delay = length(&flag, value(&flag)?)?,
            "--path" if self.what.is_some_and(What::has_path) => self.path = value(&flag)?,
            "--allocate" if matches!(self.what, Some(What::Disk { .. })) => {
                self.what = Some(What::Disk { allocate: true });
            }
            "--on-refusal" if takes => {
                let words = [("exit", OnRefusal::Exit), ("hold", OnRefusal::Hold)];
                self.on_refusal = word(&flag, value(&flag)?, words, "exit nor hold")?;
            }
            "--hold" => self.hold = Some(length(&flag, value(&flag)?)?),
            "--then" if takes => {
                let words = [("exit", Then::Exit), ("free", Then::Free)];
                self.then = Some(word(&flag, value(&flag)?, words, "exit nor free")?);
            }
            "--exit" => self.exit = Some(code(&flag, value(&flag)?)?),
            "--term-exit" => self.term_exit = code(&flag, value(&flag)?)?,
            "--term-delay" => self.term_delay = length(&flag, value(&flag)?)?,
            "--ignore-term" => self.ignore_term = true,
            _ => return Err(Wrong::Flag { command: self.command(), flag }),
        }
        Ok(())
    }

    fn order(self) -> Result<Order, Wrong> {
        let command = self.command();
        if self.hold.is_none() && self.then.is_some() {
            return Err(Wrong::NoHold("then"));
        }
        if self.hold.is_none() && self.exit.is_some() {
            return Err(Wrong::NoHold("exit"));
        }
        let on_term = match self.ignore_term {
            true => OnTerm::Ignore,
            false => OnTerm::Exit { code: self.term_exit, after: self.term_delay },
        };
        let then = self.then.unwrap_or(Then::Exit);
        let stay = Stay { hold: self.hold, then, exit: self.exit.unwrap_or_default(), on_term };
        let Some(what) = self.what else { return Ok(Order::Idle(stay)) };
        if what == What::Logs && then == Then::Free {
            return Err(Wrong::Unfree);
        }
        let (total, step) = if what.is_counted() { ("20k", "500") } else { ("352Mi", "20Mi") };
        let step = self.step.or(self.total).ok_or(Wrong::Amount { command, total, step })?;
        let pace = Pace { total: self.total, step, pause: self.pause, delay: self.delay };
        Ok(Order::Take(Take { what, pace, path: self.path, on_refusal: self.on_refusal, stay }))
    }
}

fn amount(flag: &str, text: String, least: u64) -> Result<u64, Wrong> {
    let quantity: Quantity =
        text.parse().map_err(|source| Wrong::Quantity { flag: flag.to_owned(), source })?;
    u64::try_from(quantity.value()).ok().filter(|value| *value >= least).ok_or_else(|| Wrong::Little {
        flag: flag.to_owned(),
        text,
        least,
    })
}

fn length(flag: &str, text: String) -> Result<Duration, Wrong> {
    duration::parse(&text).ok_or_else(|| Wrong::Duration { flag: flag.to_owned(), text })
}

fn code(flag: &str, text: String) -> Result<u8, Wrong> {
    text.parse().map_err(|_| Wrong::Code { flag: flag.to_owned(), text })
}

fn word<T>(flag: &str, text: String, known: [(&str, T); 2], words: &'static str) -> Result<T, Wrong> {
    let found = known.into_iter().find(|(word, _)| *word == text).map(|(_, meaning)| meaning);
    found.ok_or_else(|| Wrong::Word { flag: flag.to_owned(), text, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(line: &str) -> Result<Order, Wrong> {
        read(line.split_whitespace())
    }

    fn take(line: &str) -> Take {
        match order(line) {
            Ok(Order::Take(take)) => take,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_command_line_says_what_how_much_and_how_fast() {
        let inodes = take("inodes --total 20k --step 500 --pause 250ms --delay 2s --path /data");
        let pace = Pace {
            total: Some(20_000),
            step: 500,
            pause: Duration::from_millis(250),
            delay: Duration::from_secs(2),
        };
        assert_eq!((inodes.what, inodes.pace, inodes.path.as_str()), (What::Inodes, pace, "/data"));
        let at_once = take("memory --total=1Mi").pace;
        assert_eq!((at_once.total, at_once.step), (Some(1 << 20), 1 << 20), "all at once");
        let for_ever = take("pids --step 5").pace;
        assert_eq!((for_ever.total, for_ever.step, for_ever.pause), (None, 5, Duration::from_secs(1)));
        assert_eq!(take("disk --step 1 --allocate").what, What::Disk { allocate: true });
        assert_eq!(take("disk --step 1 --on-refusal hold").on_refusal, OnRefusal::Hold);
    }

    #[test]
    fn what_comes_after_is_stated() {
        let until_stopped = Stay {
            hold: None,
            then: Then::Exit,
            exit: 0,
            on_term: OnTerm::Exit { code: 143, after: Duration::ZERO },
        };
        assert_eq!(take("memory --total 1").stay, until_stopped);
        let line = "memory --total 1 --hold 10s --then free --term-exit 7 --term-delay 1m";
        let on_term = OnTerm::Exit { code: 7, after: Duration::from_secs(60) };
        let hold = Some(Duration::from_secs(10));
        assert_eq!(take(line).stay, Stay { hold, then: Then::Free, exit: 0, on_term });
        let idle = order("idle --hold 10s --exit 4 --ignore-term");
        assert_eq!(idle, Ok(Order::Idle(Stay { hold, then: Then::Exit, exit: 4, on_term: OnTerm::Ignore })));
    }

    #[test]
    fn help_is_given_wherever_it_is_asked_for() {
        for line in ["help", "--help", "-h", "memory --help", "disk --total 1 -h"] {
            assert_eq!(order(line), Ok(Order::Help), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_told_with_what_could() {
        for (line, says) in [
            ("", "what shall it take?"),
            ("swap", "\"swap\" is no command"),
            ("memory", "memory wants --total, all that it takes, or --step"),
            ("inodes", "inodes --total 20k --step 500 --pause 250ms"),
            ("memory --total", "--total wants a value"),
            ("memory --total much", "--total: \"much\" is no quantity"),
            ("memory --step 0", "--step 0 is too little: at least 1"),
            ("memory --total -1", "--total -1 is too little: at least 0"),
            ("memory --total 1 --pause 5", "--pause: \"5\" is no duration"),
            ("memory --total 1 --path /data", "memory has no --path"),
            ("memory --total 1 --allocate", "memory has no --allocate"),
            ("memory 1Mi", "memory has no 1Mi"),
            ("memory -t 1Mi", "memory has no -t"),
            ("idle --total 1", "idle has no --total"),
            ("idle --ignore-term=yes", "--ignore-term takes no value"),
            ("idle --exit 1", "--exit says what comes after --hold"),
            ("idle --hold 1s --exit 256", "\"256\" is no exit code"),
            ("disk --total 1 --hold 1s --then stay", "\"stay\" is neither exit nor free"),
            ("logs --total 1 --hold 1s --then free", "lines that are written cannot be given back"),
            ("stress --mem-total", "flag needs an argument"),
        ] {
            let said = order(line).expect_err(line).to_string();
            assert!(said.contains(says), "{line}: {said}");
        }
    }

    #[test]
    fn every_flag_is_taught() {
        for flag in [
            "--total",
            "--step",
            "--pause",
            "--delay",
            "--path",
            "--allocate",
            "--hold",
            "--then",
            "--exit",
            "--term-exit",
            "--term-delay",
            "--ignore-term",
            "--on-refusal",
            "--mem-alloc-sleep",
        ] {
            assert!(HELP.contains(flag), "{flag}");
        }
    }
}
