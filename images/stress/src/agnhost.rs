//! The flags of agnhost's `stress`, and what they mean, oddities included (`test/images/agnhost/stress`, forked from vish's).

use std::time::Duration;

use evictlab_rules::quantity::Quantity;
use lexopt::Arg::{Long, Short, Value};

use crate::duration;

/// What agnhost's `stress` is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stress {
    /// All memory that is taken, less what is left over of whole steps.
    pub total: Quantity,
    /// What is taken at once.
    pub step: Quantity,
    /// After each step, the last one too.
    pub pause: Duration,
    /// CPUs that are kept busy.
    pub cpus: u64,
}

/// What agnhost says and how it ends when it cannot use its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Complaint {
    /// On stderr, whole lines.
    pub text: String,
    /// The exit code.
    pub code: i32,
}

/// How many steps there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// So many.
    Of(u64),
    /// Steps of nothing, without an end.
    Endless,
}

impl Stress {
    /// What is said first.
    pub fn begins(&self) -> String {
        format!(
            "Allocating {:?} memory, in {:?} chunks, with a {} sleep between allocations",
            self.total.canonical(),
            self.step.canonical(),
            duration::print(self.pause)
        )
    }

    /// What is said when it has everything.
    pub fn has_all(&self) -> String {
        format!("Allocated {:?} memory", self.total.canonical())
    }

    /// The bytes of a step.
    pub fn size(&self) -> u64 {
        u64::try_from(self.step.value()).unwrap_or_default()
    }

    /// How many steps there are: i × step ≤ total for i from 1 on.
    pub fn steps(&self) -> Steps {
        match (self.total.value(), self.step.value()) {
            (..0, _) => Steps::Of(0),
            (_, 0) => Steps::Endless,
            (total, step) => Steps::Of(u64::try_from(total / step).unwrap_or_default()),
        }
    }
}

/// Reads the arguments after `stress`.
///
/// # Errors
/// What agnhost says instead: cobra's words and 1 for wrong flags, Go's panic and 2 for what is no quantity.
pub fn read<Words>(arguments: Words) -> Result<Stress, Complaint>
where
    Words: IntoIterator<Item: Into<std::ffi::OsString>>,
{
    let wrong =
        |what: String| Complaint { text: format!("Error: {what}\nUsage:\n  app stress [flags]\n"), code: 1 };
    let (mut total, mut step) = ("0".to_owned(), "4Ki".to_owned());
    let (mut pause, mut cpus) = (Duration::from_millis(1), 0);
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|error| wrong(error.to_string()))? {
        let name = match argument {
            Long(name) => name.to_owned(),
            Short(short) => {
                let rest = parser.optional_value().unwrap_or_default();
                let rest = rest.to_string_lossy();
                return Err(wrong(format!("unknown shorthand flag: '{short}' in -{short}{rest}")));
            }
            Value(value) => {
                return Err(wrong(format!(
                    "unknown command {:?} for \"app stress\"",
                    value.to_string_lossy()
                )));
            }
        };
        if !matches!(name.as_str(), "mem-total" | "mem-alloc-size" | "mem-alloc-sleep" | "cpus") {
            return Err(wrong(format!("unknown flag: --{name}")));
        }
        let value = parser.value().map_err(|_| wrong(format!("flag needs an argument: --{name}")))?;
        let value = value.to_string_lossy().into_owned();
        match name.as_str() {
            "mem-total" => total = value,
            "mem-alloc-size" => step = value,
            "mem-alloc-sleep" => {
                pause = duration::parse(&value).ok_or_else(|| {
                    wrong(format!(
                        "invalid argument \"{value}\" for \"--mem-alloc-sleep\" flag: time: invalid duration \"{value}\""
                    ))
                })?;
            }
            _ => {
                cpus = value.parse().map_err(|_| {
                    wrong(format!(
                        "invalid argument \"{value}\" for \"--cpus\" flag: strconv.ParseInt: parsing \"{value}\": invalid syntax"
                    ))
                })?;
            }
        }
    }
    let stress = Stress { total: quantity(&total)?, step: quantity(&step)?, pause, cpus };
    if stress.step.value() < 0 && stress.total.value() >= stress.step.value() {
        return Err(Complaint {
            text: "panic: runtime error: makeslice: len out of range\n".to_owned(),
            code: 2,
        });
    }
    Ok(stress)
}

/// `resource.MustParse` panics, and a Go program that panics exits with 2.
fn quantity(text: &str) -> Result<Quantity, Complaint> {
    text.parse().map_err(|_| {
        let why =
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        Complaint {
            text: format!("panic: cannot parse '{text}': {why}\n\ngoroutine 1 [running]:\n"),
            code: 2,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&str> {
        line.split_whitespace().collect()
    }

    #[test]
    fn memory_is_taken_in_whole_steps() {
        for (line, size, steps) in [
            ("--mem-total 350Mi --mem-alloc-size 20Mi --mem-alloc-sleep 250ms", 20 << 20, Steps::Of(17)),
            ("--mem-total=1Mi", 4096, Steps::Of(256)),
            ("--mem-total 1Mi --mem-alloc-size 2Mi", 2 << 20, Steps::Of(0)),
            ("--mem-total -1 --mem-alloc-size 1", 1, Steps::Of(0)),
            ("--mem-total 1 --mem-alloc-size 0", 0, Steps::Endless),
            ("--cpus 2", 4096, Steps::Of(0)),
        ] {
            let stress = read(words(line)).unwrap();
            assert_eq!((stress.size(), stress.steps()), (size, steps), "{line}");
        }
    }

    #[test]
    fn it_says_what_agnhost_says() {
        let stress =
            read(words("--mem-total 4096Mi --mem-alloc-size 20480Ki --mem-alloc-sleep 1500ms")).unwrap();
        assert_eq!(
            stress.begins(),
            r#"Allocating "4Gi" memory, in "20Mi" chunks, with a 1.5s sleep between allocations"#
        );
        assert_eq!(stress.has_all(), r#"Allocated "4Gi" memory"#);
    }

    #[test]
    fn what_it_cannot_use_it_complains_of_as_agnhost_does() {
        for (line, says, code) in [
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
            let complaint = read(words(line)).unwrap_err();
            assert!(complaint.text.contains(says), "{line}: {complaint}");
            assert_eq!(complaint.code, code, "{line}");
        }
    }
}
