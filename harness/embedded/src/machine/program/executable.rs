//! Finds the program of a command line.

use std::collections::BTreeMap;

use evictlab_stress::agnhost;
use evictlab_stress::{Command, HELP};

use super::super::shell::{Shell, is_applet};
use super::super::types::ContainerSpec;
use super::agnhost_stress::{AgnhostStress, StressVariant};
use super::copy::CopyProgram;
use super::dispatch::Program;
use super::evictlab_stress::EvictlabStress;
use super::idle::Idle;
use super::sleep::Sleep;
use super::{dd, image};

/// The target of a command line.
enum Executable {
    Program(Box<Program>),
    /// A utility that a shell runs in its own process.
    Applet,
    /// Nothing that the model knows.
    Unknown,
}

/// Finds the program of a command line.
fn find_executable(line: &[String], environment: &BTreeMap<String, String>) -> Executable {
    let Some((path, arguments)) = line.split_first() else { return Executable::Unknown };
    let name = path.rsplit('/').next().unwrap_or_default();
    if path.contains('/') && !is_known_path(path, name) {
        return Executable::Unknown;
    }
    let program = match name {
        "sleep" => Some(Sleep::from_arguments(arguments).map_or_else(
            || {
                let text = format!("sleep: invalid number '{}'\n", arguments.join(" "));
                Program::error("sleep", text, 1)
            },
            Program::Sleep,
        )),
        "sh" | "ash" => Shell::from_arguments(name, arguments, environment),
        "agnhost" => match arguments.first().map(String::as_str) {
            Some("stress") => Some(agnhost_stress(&arguments[1..])),
            Some("pause") => Some(Program::Idle(Idle::AgnhostPause { is_started: false })),
            _ => None,
        },
        // Other images have other programs of this name in PATH.
        "stress" if path == "/stress" => Some(evictlab_stress(arguments)),
        "pause" => Some(Program::Idle(Idle::Pause)),
        "kube-proxy" => Some(Program::Idle(Idle::KubeProxy)),
        "dd" => Some(dd(arguments)),
        "cat" => CopyProgram::cat(arguments).map(|copy| Program::Copy(Box::new(copy))),
        name if is_applet(name) => return Executable::Applet,
        _ => None,
    };
    program.map_or(Executable::Unknown, |program| Executable::Program(Box::new(program)))
}

impl Program {
    /// Returns the program that a container runs first.
    pub fn of_container(spec: &ContainerSpec) -> Self {
        match image::command_line(spec) {
            None => Self::Idle(Idle::unsupported(format!("the image \"{}\"", spec.image))),
            Some(line) => Self::from_command_line(&line, &spec.env),
        }
    }

    /// Returns the program of a command in a container; `None` for one that the model does not have.
    pub fn of_command(line: &[String], environment: &BTreeMap<String, String>) -> Option<Self> {
        match find_executable(line, environment) {
            Executable::Unknown => None,
            _ => Some(Self::from_command_line(line, environment)),
        }
    }

    /// Returns the program of a command line. A shell runs applets.
    pub fn from_command_line(line: &[String], environment: &BTreeMap<String, String>) -> Self {
        match find_executable(line, environment) {
            Executable::Program(program) => *program,
            Executable::Applet => Self::Shell(Box::new(Shell::from_words(line, environment))),
            Executable::Unknown => Self::Idle(Idle::unsupported(format!("\"{}\"", line.join(" ")))),
        }
    }
}

/// Returns the command or the image of a container that the model does not run; `None` if it runs
/// the container. Commands within scripts are not checked.
pub fn unsupported_command(spec: &ContainerSpec) -> Option<String> {
    match Program::of_container(spec) {
        Program::Idle(Idle::Unsupported { command, .. }) => Some(command),
        _ => None,
    }
}

/// Returns the program of the arguments after `agnhost stress`.
fn agnhost_stress(arguments: &[String]) -> Program {
    match agnhost::parse(arguments) {
        Ok(options) => Program::AgnhostStress(Box::new(AgnhostStress::new(StressVariant::Agnhost, options))),
        Err(error) => Program::error("agnhost", error.text, error.code),
    }
}

/// Returns the program of `/stress ARGUMENTS`.
fn evictlab_stress(arguments: &[String]) -> Program {
    let stress =
        |lifetime, options| Program::EvictlabStress(Box::new(EvictlabStress::new(lifetime, options)));
    match evictlab_stress::parse(arguments) {
        Ok(Command::Consume(options)) => stress(options.lifetime.clone(), Some(options)),
        Ok(Command::Idle(lifetime)) => stress(lifetime, None),
        Ok(Command::AgnhostStress(options)) => {
            Program::AgnhostStress(Box::new(AgnhostStress::new(StressVariant::Evictlab, options)))
        }
        Ok(Command::Child) => Program::Idle(Idle::StressChild),
        Ok(Command::Help) => {
            Program::Message { name: "stress", text: HELP.to_owned(), stderr: false, code: 0 }
        }
        Err(error) => {
            let text = format!("{}\n", error.to_string().trim_end());
            Program::error("stress", text, error.exit_code())
        }
    }
}

/// Returns the program of `dd OPERANDS`.
fn dd(operands: &[String]) -> Program {
    match dd::parse(operands) {
        Ok(copy) => Program::Copy(Box::new(copy)),
        Err(message) => Program::error("dd", format!("dd: {message}\n"), 1),
    }
}

/// Returns whether the known images have a program at this path.
fn is_known_path(path: &str, name: &str) -> bool {
    let directory = path.strip_suffix(name).unwrap_or_default();
    matches!(directory, "/bin/" | "/usr/bin/" | "/sbin/" | "/usr/sbin/" | "/usr/local/bin/")
        || matches!(path, "/agnhost" | "/pause" | "/stress")
}
