//! From a command line to a program.

use std::collections::BTreeMap;

use super::super::shell::{self, Shell};
use super::agnhost::Agnhost;
use super::copy::Copy;
use super::filter::Filter;
use super::idle::Idle;
use super::sleep::Sleep;
use super::stress::{Stress, Whose};
use super::tail::Tail;
use super::{Program, dd, own};

/// What a command line is.
pub(in super::super) enum Loaded {
    /// A program.
    Program(Box<Program>),
    /// Something so quick that a shell's own process does it at once.
    Quick,
    /// Nothing that this model knows.
    Unknown,
}

/// Finds the program of a command line.
pub(in super::super) fn load(line: &[String], environment: &BTreeMap<String, String>) -> Loaded {
    let Some((path, arguments)) = line.split_first() else { return Loaded::Unknown };
    let name = path.rsplit('/').next().unwrap_or_default();
    if path.contains('/') && !is_common(path, name) {
        return Loaded::Unknown;
    }
    let known = |program: Option<Program>| {
        program.map_or(Loaded::Unknown, |program| Loaded::Program(Box::new(program)))
    };
    match name {
        "sleep" => match Sleep::of(arguments) {
            Some(sleep) => known(Some(Program::Sleep(sleep))),
            None => {
                let text = format!("sleep: invalid number '{}'\n", arguments.join(" "));
                known(Some(Program::Say { name: "sleep", text, stderr: true, code: 1 }))
            }
        },
        "sh" | "ash" | "dash" | "bash" => known(Shell::of_arguments(name, arguments, environment)),
        "agnhost" => known(Some(Agnhost::of(arguments))),
        // Amos Waterland's program of the same name has other flags.
        // vish's program and evictlab's lie at the same place; only evictlab's has commands.
        "stress" if path == "/stress" && !(has_flags_first(arguments) && Stress::is_vishs(arguments)) => {
            known(Some(own::load(arguments)))
        }
        "stress" if Stress::is_vishs(arguments) => known(Some(Stress::of(Whose::Vish, arguments))),
        "pause" => known(Some(Program::Idle(Idle::Pause))),
        "kube-proxy" => known(Some(Program::Idle(Idle::Proxy))),
        "dd" => known(Some(dd::load(arguments))),
        "tail" => known(Tail::of(arguments).map(Program::Tail)),
        "grep" | "egrep" | "fgrep" | "cut" | "awk" => {
            known(Filter::of(name, arguments).map(|filter| Program::Filter(Box::new(filter))))
        }
        "nohup" | "setsid" => load(arguments, environment),
        "busybox" => load(arguments, environment),
        "nice" | "ionice" => {
            let skipped =
                arguments.iter().position(|word| !word.starts_with('-') && word.parse::<i64>().is_err());
            load(skipped.map_or(&[], |at| &arguments[at..]), environment)
        }
        _ => match Copy::of(name, arguments) {
            Some(copy) => known(Some(Program::Copy(Box::new(copy)))),
            None if shell::is_quick(name) => Loaded::Quick,
            None => Loaded::Unknown,
        },
    }
}

fn has_flags_first(arguments: &[String]) -> bool {
    arguments.first().is_none_or(|first| first.starts_with('-'))
}

/// Whether a program would lie at this path in the images that are known.
fn is_common(path: &str, name: &str) -> bool {
    let directory = path.strip_suffix(name).unwrap_or_default();
    matches!(directory, "/bin/" | "/usr/bin/" | "/sbin/" | "/usr/sbin/" | "/usr/local/bin/")
        || matches!(path, "/agnhost" | "/pause" | "/stress")
}
