//! The flags of `agnhost stress` and their meaning (`test/images/agnhost/stress`, forked from
//! vish/stress), oddities included.

use std::ffi::OsString;
use std::time::Duration;

use evictlab_rules::quantity::Quantity;
use evictlab_rules::{format_go_duration, parse_go_duration};
use lexopt::Arg::{Long, Short, Value};

/// The options of `agnhost stress`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StressOptions {
    /// The memory to allocate. A remainder that is less than a step is not allocated.
    pub total: Quantity,
    /// The memory of a step.
    pub step: Quantity,
    /// The time after each step, the last one included.
    pub pause: Duration,
    /// The number of CPUs to keep busy.
    pub cpus: u64,
}

/// agnhost rejects its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct AgnhostError {
    /// The text on stderr, which ends with a newline.
    pub text: String,
    /// The exit code.
    pub code: i32,
}

impl AgnhostError {
    /// Returns cobra's message about wrong flags.
    fn usage(message: &str) -> Self {
        Self { text: format!("Error: {message}\nUsage:\n  app stress [flags]\n"), code: 1 }
    }

    /// Returns the message of a panic, after which a Go program exits with 2.
    fn panic(message: &str) -> Self {
        Self { text: format!("panic: {message}\n"), code: 2 }
    }
}

impl StressOptions {
    /// Returns the line that agnhost prints first.
    pub fn start_message(&self) -> String {
        format!(
            "Allocating {:?} memory, in {:?} chunks, with a {} sleep between allocations",
            self.total.canonical(),
            self.step.canonical(),
            format_go_duration(self.pause)
        )
    }

    /// Returns the line that agnhost prints after the last step.
    pub fn done_message(&self) -> String {
        format!("Allocated {:?} memory", self.total.canonical())
    }

    /// Returns the bytes of a step.
    pub fn step_bytes(&self) -> u64 {
        u64::try_from(self.step.value()).unwrap_or_default()
    }

    /// Returns the number of steps, i × step ≤ total for i from 1 on. `None` for steps of 0 bytes,
    /// which never end.
    pub fn steps(&self) -> Option<u64> {
        match (self.total.value(), self.step.value()) {
            (..0, _) => Some(0),
            (_, 0) => None,
            (total, step) => Some(u64::try_from(total / step).unwrap_or_default()),
        }
    }
}

/// Parses the arguments after `stress`.
///
/// # Errors
/// Arguments that agnhost rejects.
pub fn parse<Words>(arguments: Words) -> Result<StressOptions, AgnhostError>
where
    Words: IntoIterator<Item: Into<OsString>>,
{
    let (mut total, mut step) = ("0".to_owned(), "4Ki".to_owned());
    let (mut pause, mut cpus) = (Duration::from_millis(1), 0);
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some((name, value)) = next_flag(&mut parser)? {
        let invalid = |reason: String| {
            AgnhostError::usage(&format!("invalid argument {value:?} for \"--{name}\" flag: {reason}"))
        };
        match name.as_str() {
            "mem-total" => total = value,
            "mem-alloc-size" => step = value,
            "mem-alloc-sleep" => {
                pause = parse_duration(&value)
                    .ok_or_else(|| invalid(format!("time: invalid duration {value:?}")))?;
            }
            _ => {
                cpus = value
                    .parse()
                    .map_err(|_| invalid(format!("strconv.ParseInt: parsing {value:?}: invalid syntax")))?;
            }
        }
    }
    let options = StressOptions { total: quantity(&total)?, step: quantity(&step)?, pause, cpus };
    if options.step.value() < 0 && options.total.value() >= options.step.value() {
        return Err(AgnhostError::panic("runtime error: makeslice: len out of range"));
    }
    Ok(options)
}

/// Returns the name and the value of the next flag.
fn next_flag(parser: &mut lexopt::Parser) -> Result<Option<(String, String)>, AgnhostError> {
    let argument = parser.next().map_err(|error| AgnhostError::usage(&error.to_string()))?;
    let name = match argument {
        None => return Ok(None),
        Some(Long(name)) => name.to_owned(),
        Some(Short(short)) => {
            let rest = parser.optional_value().unwrap_or_default();
            let rest = rest.to_string_lossy();
            return Err(AgnhostError::usage(&format!("unknown shorthand flag: '{short}' in -{short}{rest}")));
        }
        Some(Value(value)) => {
            let value = value.to_string_lossy();
            return Err(AgnhostError::usage(&format!("unknown command {value:?} for \"app stress\"")));
        }
    };
    if !matches!(name.as_str(), "mem-total" | "mem-alloc-size" | "mem-alloc-sleep" | "cpus") {
        return Err(AgnhostError::usage(&format!("unknown flag: --{name}")));
    }
    match parser.value() {
        Ok(value) => Ok(Some((name, value.to_string_lossy().into_owned()))),
        Err(_) => Err(AgnhostError::usage(&format!("flag needs an argument: --{name}"))),
    }
}

/// Parses a duration in Go's syntax. Returns `None` for another text or a negative duration.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    parse_go_duration(text).ok()?.try_into().ok()
}

/// Parses a quantity; agnhost calls `resource.MustParse`, which panics.
fn quantity(text: &str) -> Result<Quantity, AgnhostError> {
    const REASON: &str =
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    text.parse().map_err(|_| {
        AgnhostError::panic(&format!("cannot parse '{text}': {REASON}\n\ngoroutine 1 [running]:"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&str> {
        line.split_whitespace().collect()
    }

    #[test]
    fn allocates_whole_steps() {
        for (line, size, steps) in [
            ("--mem-total 350Mi --mem-alloc-size 20Mi --mem-alloc-sleep 250ms", 20 << 20, Some(17)),
            ("--mem-total=1Mi", 4096, Some(256)),
            ("--mem-total 1Mi --mem-alloc-size 2Mi", 2 << 20, Some(0)),
            ("--mem-total -1 --mem-alloc-size 1", 1, Some(0)),
            ("--mem-total 1 --mem-alloc-size 0", 0, None),
            ("--cpus 2", 4096, Some(0)),
        ] {
            let options = parse(words(line)).unwrap();
            assert_eq!((options.step_bytes(), options.steps()), (size, steps), "{line}");
        }
    }

    #[test]
    fn messages_are_those_of_agnhost() {
        let options =
            parse(words("--mem-total 4096Mi --mem-alloc-size 20480Ki --mem-alloc-sleep 1500ms")).unwrap();
        assert_eq!(
            options.start_message(),
            r#"Allocating "4Gi" memory, in "20Mi" chunks, with a 1.5s sleep between allocations"#
        );
        assert_eq!(options.done_message(), r#"Allocated "4Gi" memory"#);
    }

    #[test]
    fn errors_are_those_of_agnhost() {
        for (line, message, code) in [
            ("--mem-total", "Error: flag needs an argument: --mem-total\n", 1),
            ("--mem 1", "Error: unknown flag: --mem\n", 1),
            ("--mem=1", "Error: unknown flag: --mem\n", 1),
            ("-mem 1", "Error: unknown shorthand flag: 'm' in -mem\n", 1),
            ("here", "Error: unknown command \"here\" for \"app stress\"\n", 1),
            ("--mem-alloc-sleep 5", "time: invalid duration \"5\"\n", 1),
            ("--cpus two", "invalid syntax\n", 1),
            ("--mem-total much", "panic: cannot parse 'much': quantities must match", 2),
            ("--mem-total 1 --mem-alloc-size -1", "makeslice: len out of range", 2),
        ] {
            let error = parse(words(line)).unwrap_err();
            assert!(error.text.contains(message), "{line}: {error}");
            assert_eq!(error.code, code, "{line}");
        }
    }
}
