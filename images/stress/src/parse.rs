//! Parses the command line.

use std::ffi::OsString;
use std::time::Duration;

use evictlab_rules::quantity::{Quantity, QuantityError};
use lexopt::Arg::{Long, Short, Value};
use lexopt::Parser;

use crate::agnhost::{self, AgnhostError};
use crate::command::{AfterHold, Command, ConsumeOptions, Lifetime, OnRefusal, OnTerm, Resource};
use crate::ramp::Ramp;

/// The exit code for wrong arguments.
pub const EXIT_USAGE: i32 = 2;
/// The help text.
pub const HELP: &str = include_str!("help.txt");

/// The command line is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// The command line is empty.
    #[error("missing command\n\n{HELP}")]
    MissingCommand,
    /// The first argument is not a command.
    #[error(
        "unknown command {0:?}\nhelp: use memory, disk, inodes, logs, pids, page-cache, idle, stress or help"
    )]
    UnknownCommand(String),
    /// The command does not have this flag.
    #[error("{command} does not accept {flag}\nhelp: `stress help` lists the flags")]
    UnknownFlag {
        /// The command.
        command: &'static str,
        /// The flag with its dashes, or an argument that is not a flag.
        flag: String,
    },
    /// The value of a flag is missing.
    #[error("{0} requires a value\nhelp: {0} VALUE")]
    MissingValue(String),
    /// The flag does not take a value.
    #[error("{0} does not take a value")]
    UnexpectedValue(String),
    /// The value is not a quantity.
    #[error("{flag}: {source}")]
    Quantity {
        /// The flag.
        flag: String,
        /// The reason.
        source: QuantityError,
    },
    /// The quantity is less than one byte or piece.
    #[error("{flag} {text} is too small: the minimum is {minimum}")]
    TooSmall {
        /// The flag.
        flag: String,
        /// The quantity.
        text: String,
        /// The smallest valid quantity.
        minimum: u64,
    },
    /// The value is not a duration.
    #[error("{flag}: invalid duration {text:?}\nhelp: write it like 250ms, 1.5s or 2m")]
    Duration {
        /// The flag.
        flag: String,
        /// The value.
        text: String,
    },
    /// The value is not an exit code.
    #[error("{flag}: invalid exit code {text:?}\nhelp: use a number from 0 to 255")]
    ExitCode {
        /// The flag.
        flag: String,
        /// The value.
        text: String,
    },
    /// The value is not one of the words that the flag accepts.
    #[error("{flag}: invalid value {text:?}\nhelp: use {words}")]
    Word {
        /// The flag.
        flag: String,
        /// The value.
        text: String,
        /// The accepted words.
        words: &'static str,
    },
    /// Neither `--total` nor `--step` is given.
    #[error(
        "{command} requires --total or --step\nhelp: {command} --total {total} --step {step} --pause 250ms"
    )]
    MissingAmount {
        /// The command.
        command: &'static str,
        /// An example of a total.
        total: &'static str,
        /// An example of a step.
        step: &'static str,
    },
    /// `logs` cannot release its resource.
    #[error("logs does not accept --then free: written lines cannot be released")]
    ReleaseLogs,
    /// A flag requires `--hold`.
    #[error("--{0} requires --hold DURATION")]
    RequiresHold(&'static str),
    /// agnhost rejects its arguments.
    #[error(transparent)]
    Agnhost(#[from] AgnhostError),
}

impl ArgumentError {
    /// Returns the exit code.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Agnhost(error) => error.code,
            _ => EXIT_USAGE,
        }
    }
}

/// Parses the arguments after the name of the program.
///
/// # Errors
/// Invalid arguments.
pub fn parse<Words>(arguments: Words) -> Result<Command, ArgumentError>
where
    Words: IntoIterator<Item: Into<OsString>>,
{
    let mut arguments = arguments.into_iter().map(Into::into);
    let Some(command) = arguments.next() else { return Err(ArgumentError::MissingCommand) };
    let command = command.to_string_lossy().into_owned();
    let resource = match command.as_str() {
        "help" | "--help" | "-h" => return Ok(Command::Help),
        "child" => return Ok(Command::Child),
        "stress" => return Ok(Command::AgnhostStress(agnhost::parse(arguments)?)),
        "idle" => None,
        "memory" => Some(Resource::Memory),
        "disk" => Some(Resource::Disk { allocate: false }),
        "inodes" => Some(Resource::Inodes),
        "logs" => Some(Resource::Logs),
        "pids" => Some(Resource::Pids),
        "page-cache" => Some(Resource::PageCache),
        _ => return Err(ArgumentError::UnknownCommand(command)),
    };
    Flags::new(resource).parse(Parser::from_args(arguments))
}

/// The values of the flags.
struct Flags {
    /// `None` for `idle`.
    resource: Option<Resource>,
    total: Option<u64>,
    step: Option<u64>,
    pause: Duration,
    delay: Duration,
    path: String,
    on_refusal: OnRefusal,
    hold: Option<Duration>,
    then: Option<AfterHold>,
    exit: Option<u8>,
    term_exit: u8,
    term_delay: Duration,
    ignore_term: bool,
}

impl Flags {
    fn new(resource: Option<Resource>) -> Self {
        Self {
            resource,
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
        self.resource.map_or("idle", Resource::command)
    }

    fn parse(mut self, mut parser: Parser) -> Result<Command, ArgumentError> {
        while let Some(argument) = parser.next().map_err(|error| match error {
            lexopt::Error::UnexpectedValue { option, .. } => ArgumentError::UnexpectedValue(option),
            other => ArgumentError::UnknownFlag { command: self.command(), flag: other.to_string() },
        })? {
            let flag = match argument {
                Long("help") | Short('h') => return Ok(Command::Help),
                Long(name) => format!("--{name}"),
                Short(short) => format!("-{short}"),
                Value(value) => value.to_string_lossy().into_owned(),
            };
            self.set(flag, &mut parser)?;
        }
        self.into_command()
    }

    fn set(&mut self, flag: String, parser: &mut Parser) -> Result<(), ArgumentError> {
        let consumes = self.resource.is_some();
        let mut value = |flag: &str| match parser.value() {
            Ok(value) => Ok(value.to_string_lossy().into_owned()),
            Err(_) => Err(ArgumentError::MissingValue(flag.to_owned())),
        };
        match flag.as_str() {
            "--total" if consumes => self.total = Some(parse_amount(&flag, value(&flag)?, 0)?),
            "--step" if consumes => self.step = Some(parse_amount(&flag, value(&flag)?, 1)?),
            "--pause" if consumes => self.pause = parse_duration(&flag, value(&flag)?)?,
            "--delay" if consumes => self.delay = parse_duration(&flag, value(&flag)?)?,
            "--path" if self.resource.is_some_and(Resource::has_path) => self.path = value(&flag)?,
            "--allocate" if matches!(self.resource, Some(Resource::Disk { .. })) => {
                self.resource = Some(Resource::Disk { allocate: true });
            }
            "--on-refusal" if consumes => {
                let words = [("exit", OnRefusal::Exit), ("hold", OnRefusal::Hold)];
                self.on_refusal = parse_word(&flag, value(&flag)?, words, "exit or hold")?;
            }
            "--hold" => self.hold = Some(parse_duration(&flag, value(&flag)?)?),
            "--then" if consumes => {
                let words = [("exit", AfterHold::Exit), ("free", AfterHold::Release)];
                self.then = Some(parse_word(&flag, value(&flag)?, words, "exit or free")?);
            }
            "--exit" => self.exit = Some(parse_exit_code(&flag, value(&flag)?)?),
            "--term-exit" => self.term_exit = parse_exit_code(&flag, value(&flag)?)?,
            "--term-delay" => self.term_delay = parse_duration(&flag, value(&flag)?)?,
            "--ignore-term" => self.ignore_term = true,
            _ => return Err(ArgumentError::UnknownFlag { command: self.command(), flag }),
        }
        Ok(())
    }

    fn into_command(self) -> Result<Command, ArgumentError> {
        let command = self.command();
        if self.hold.is_none() && self.then.is_some() {
            return Err(ArgumentError::RequiresHold("then"));
        }
        if self.hold.is_none() && self.exit.is_some() {
            return Err(ArgumentError::RequiresHold("exit"));
        }
        let on_term = if self.ignore_term {
            OnTerm::Ignore
        } else {
            OnTerm::Exit { code: self.term_exit, delay: self.term_delay }
        };
        let after_hold = self.then.unwrap_or(AfterHold::Exit);
        let exit_code = self.exit.unwrap_or_default();
        let lifetime = Lifetime { hold: self.hold, after_hold, exit_code, on_term };
        let Some(resource) = self.resource else { return Ok(Command::Idle(lifetime)) };
        if resource == Resource::Logs && after_hold == AfterHold::Release {
            return Err(ArgumentError::ReleaseLogs);
        }
        let (total, step) = if resource.is_counted() { ("20k", "500") } else { ("352Mi", "20Mi") };
        let missing = ArgumentError::MissingAmount { command, total, step };
        let step = self.step.or(self.total).ok_or(missing)?;
        let ramp = Ramp { total: self.total, step, pause: self.pause, delay: self.delay };
        let options =
            ConsumeOptions { resource, ramp, path: self.path, on_refusal: self.on_refusal, lifetime };
        Ok(Command::Consume(options))
    }
}

fn parse_amount(flag: &str, text: String, minimum: u64) -> Result<u64, ArgumentError> {
    let quantity: Quantity =
        text.parse().map_err(|source| ArgumentError::Quantity { flag: flag.to_owned(), source })?;
    match u64::try_from(quantity.value()) {
        Ok(value) if value >= minimum => Ok(value),
        _ => Err(ArgumentError::TooSmall { flag: flag.to_owned(), text, minimum }),
    }
}

fn parse_duration(flag: &str, text: String) -> Result<Duration, ArgumentError> {
    agnhost::parse_duration(&text).ok_or_else(|| ArgumentError::Duration { flag: flag.to_owned(), text })
}

fn parse_exit_code(flag: &str, text: String) -> Result<u8, ArgumentError> {
    text.parse().map_err(|_| ArgumentError::ExitCode { flag: flag.to_owned(), text })
}

fn parse_word<T>(
    flag: &str,
    text: String,
    known: [(&str, T); 2],
    words: &'static str,
) -> Result<T, ArgumentError> {
    let found = known.into_iter().find(|(word, _)| *word == text).map(|(_, value)| value);
    found.ok_or_else(|| ArgumentError::Word { flag: flag.to_owned(), text, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Command, ArgumentError> {
        parse(line.split_whitespace())
    }

    fn consume(line: &str) -> ConsumeOptions {
        match parse_line(line) {
            Ok(Command::Consume(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn parses_resource_amount_and_rate() {
        let inodes = consume("inodes --total 20k --step 500 --pause 250ms --delay 2s --path /data");
        let ramp = Ramp {
            total: Some(20_000),
            step: 500,
            pause: Duration::from_millis(250),
            delay: Duration::from_secs(2),
        };
        assert_eq!((inodes.resource, inodes.ramp, inodes.path.as_str()), (Resource::Inodes, ramp, "/data"));
        let one_step = consume("memory --total=1Mi").ramp;
        assert_eq!((one_step.total, one_step.step), (Some(1 << 20), 1 << 20));
        let endless = consume("pids --step 5").ramp;
        assert_eq!((endless.total, endless.step, endless.pause), (None, 5, Duration::from_secs(1)));
        assert_eq!(consume("disk --step 1 --allocate").resource, Resource::Disk { allocate: true });
        assert_eq!(consume("disk --step 1 --on-refusal hold").on_refusal, OnRefusal::Hold);
    }

    #[test]
    fn parses_lifetime() {
        let default = Lifetime {
            hold: None,
            after_hold: AfterHold::Exit,
            exit_code: 0,
            on_term: OnTerm::Exit { code: 143, delay: Duration::ZERO },
        };
        assert_eq!(consume("memory --total 1").lifetime, default);
        let line = "memory --total 1 --hold 10s --then free --term-exit 7 --term-delay 1m";
        let on_term = OnTerm::Exit { code: 7, delay: Duration::from_secs(60) };
        let hold = Some(Duration::from_secs(10));
        let expected = Lifetime { hold, after_hold: AfterHold::Release, exit_code: 0, on_term };
        assert_eq!(consume(line).lifetime, expected);
        let idle = parse_line("idle --hold 10s --exit 4 --ignore-term");
        let expected = Lifetime { hold, after_hold: AfterHold::Exit, exit_code: 4, on_term: OnTerm::Ignore };
        assert_eq!(idle, Ok(Command::Idle(expected)));
    }

    #[test]
    fn help_is_accepted_as_a_command_and_as_a_flag() {
        for line in ["help", "--help", "-h", "memory --help", "disk --total 1 -h"] {
            assert_eq!(parse_line(line), Ok(Command::Help), "{line}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong_and_how_to_fix_it() {
        for (line, message) in [
            ("", "missing command"),
            ("swap", "unknown command \"swap\""),
            ("memory", "memory requires --total or --step"),
            ("inodes", "inodes --total 20k --step 500 --pause 250ms"),
            ("memory --total", "--total requires a value"),
            ("memory --total much", "--total: "),
            ("memory --step 0", "--step 0 is too small: the minimum is 1"),
            ("memory --total -1", "--total -1 is too small: the minimum is 0"),
            ("memory --total 1 --pause 5", "--pause: invalid duration \"5\""),
            ("memory --total 1 --path /data", "memory does not accept --path"),
            ("memory --total 1 --allocate", "memory does not accept --allocate"),
            ("memory 1Mi", "memory does not accept 1Mi"),
            ("memory -t 1Mi", "memory does not accept -t"),
            ("idle --total 1", "idle does not accept --total"),
            ("idle --ignore-term=yes", "--ignore-term does not take a value"),
            ("idle --exit 1", "--exit requires --hold"),
            ("idle --hold 1s --exit 256", "invalid exit code \"256\""),
            ("disk --total 1 --hold 1s --then stay", "invalid value \"stay\"\nhelp: use exit or free"),
            ("logs --total 1 --hold 1s --then free", "written lines cannot be released"),
            ("stress --mem-total", "flag needs an argument"),
        ] {
            let error = parse_line(line).expect_err(line).to_string();
            assert!(error.contains(message), "{line}: {error}");
        }
        let error = parse_line("memory --total much").unwrap_err();
        assert!(matches!(error, ArgumentError::Quantity { .. }), "{error:?}");
    }

    #[test]
    fn help_lists_every_flag() {
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
