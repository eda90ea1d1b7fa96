//! Finds the program of a command line.

use std::collections::BTreeMap;

use evictlab_stress::agnhost;
use evictlab_stress::{Command, HELP};

use super::agnhost_stress::{AgnhostStress, StressVariant};
use super::copy::CopyProgram;
use super::evictlab_stress::EvictlabStress;
use super::idle::Idle;
use super::message::Message;
use super::sleep::Sleep;
use super::{dd, image};
use crate::machine::kernel::Program;
use crate::machine::shell::{Shell, ShellError, is_applet};
use crate::machine::types::ContainerSpec;

type BoxedProgram = Box<dyn Program>;
type Environment = BTreeMap<String, String>;

/// The target of a command line.
enum Executable {
    Program(BoxedProgram),
    /// A utility that a shell runs in its own process.
    Applet,
    /// A known program with arguments that the model does not support.
    Unsupported(String),
    /// Nothing that the model knows.
    Unknown,
}

impl Executable {
    fn program(program: impl Program + 'static) -> Self {
        Self::Program(Box::new(program))
    }
}

/// Finds the program of a command line.
fn find_executable(line: &[String], environment: &Environment) -> Executable {
    let Some((path, arguments)) = line.split_first() else { return Executable::Unknown };
    let name = path.rsplit('/').next().unwrap_or_default();
    if path.contains('/') && !is_known_path(path, name) {
        return Executable::Unknown;
    }
    match name {
        "sleep" => match Sleep::from_arguments(arguments) {
            Ok(sleep) => Executable::program(sleep),
            Err(error) => Executable::program(Message::error("sleep", format!("{error}\n"), 1)),
        },
        "sh" | "ash" => shell(name, arguments, environment),
        "agnhost" => match arguments.first().map(String::as_str) {
            Some("stress") => agnhost_stress(&arguments[1..]),
            Some("pause") => Executable::program(Idle::AgnhostPause { is_started: false }),
            _ => Executable::Unknown,
        },
        // Other images have other programs of this name in PATH.
        "stress" if path == "/stress" => evictlab_stress(arguments),
        "pause" => Executable::program(Idle::Pause),
        "kube-proxy" => Executable::program(Idle::KubeProxy),
        "dd" => dd(arguments),
        "cat" => CopyProgram::cat(arguments).map_or(Executable::Unknown, Executable::program),
        name if is_applet(name) => Executable::Applet,
        _ => Executable::Unknown,
    }
}

/// Returns the program of a command line; for one that the model does not run, the command itself.
fn find_program(line: &[String], environment: &Environment) -> Result<BoxedProgram, String> {
    match find_executable(line, environment) {
        Executable::Program(program) => Ok(program),
        // A shell runs applets.
        Executable::Applet => Ok(Box::new(Shell::from_words(line, environment))),
        Executable::Unsupported(command) => Err(command),
        Executable::Unknown => Err(format!("\"{}\"", line.join(" "))),
    }
}

/// Returns the program that a container runs first; for one that the model does not run, the
/// command or the image.
fn find_container_program(spec: &ContainerSpec) -> Result<BoxedProgram, String> {
    let line = image::command_line(spec).ok_or_else(|| format!("the image \"{}\"", spec.image))?;
    find_program(&line, &spec.env)
}

/// Returns a program that prints that the model does not run a command, and idles.
fn idle(command: String) -> BoxedProgram {
    Box::new(Idle::unsupported(command))
}

/// Returns the program of a command line.
pub(in super::super) fn load(line: &[String], environment: &Environment) -> BoxedProgram {
    find_program(line, environment).unwrap_or_else(idle)
}

/// Returns the program that a container runs first.
pub(in super::super) fn load_container(spec: &ContainerSpec) -> BoxedProgram {
    find_container_program(spec).unwrap_or_else(idle)
}

/// Returns the program of a command in a container; `None` for one that the model does not have.
pub(in super::super) fn load_command(line: &[String], environment: &Environment) -> Option<BoxedProgram> {
    match find_executable(line, environment) {
        Executable::Unknown => None,
        _ => Some(load(line, environment)),
    }
}

/// Returns the command or the image of a container that the model does not run; `None` if it runs
/// the container. Commands within scripts are not checked.
pub fn unsupported_command(spec: &ContainerSpec) -> Option<String> {
    find_container_program(spec).err()
}

/// Returns the program of `sh ARGUMENTS`. A script in a file is not known.
fn shell(name: &str, arguments: &[String], environment: &Environment) -> Executable {
    let script = match arguments {
        // An interactive shell without input exits.
        [] => return Executable::program(Message::output("sh", String::new())),
        [flag, script, ..] if flag == "-c" => script,
        _ => return Executable::Unknown,
    };
    match Shell::from_script(name, script, environment) {
        Ok(shell) => Executable::program(shell),
        Err(ShellError::Unsupported(construct)) => {
            Executable::Unsupported(format!("\"{name} {}\" ({construct})", arguments.join(" ")))
        }
        Err(error) => Executable::program(Message::error("sh", format!("{name}: {error}\n"), 2)),
    }
}

/// Returns the program of the arguments after `agnhost stress`.
fn agnhost_stress(arguments: &[String]) -> Executable {
    match agnhost::parse(arguments) {
        Ok(options) => Executable::program(AgnhostStress::new(StressVariant::Agnhost, options)),
        Err(error) => Executable::program(Message::error("agnhost", error.text, error.code)),
    }
}

/// Returns the program of `/stress ARGUMENTS`.
fn evictlab_stress(arguments: &[String]) -> Executable {
    match evictlab_stress::parse(arguments) {
        Ok(Command::Consume(options)) => {
            Executable::program(EvictlabStress::new(options.lifetime.clone(), Some(options)))
        }
        Ok(Command::Idle(lifetime)) => Executable::program(EvictlabStress::new(lifetime, None)),
        Ok(Command::AgnhostStress(options)) => {
            Executable::program(AgnhostStress::new(StressVariant::Evictlab, options))
        }
        Ok(Command::Child) => Executable::program(Idle::StressChild),
        Ok(Command::Help) => Executable::program(Message::output("stress", HELP.to_owned())),
        Err(error) => {
            let text = format!("{}\n", error.to_string().trim_end());
            Executable::program(Message::error("stress", text, error.exit_code()))
        }
    }
}

/// Returns the program of `dd OPERANDS`.
fn dd(operands: &[String]) -> Executable {
    match dd::parse(operands) {
        Ok(copy) => Executable::program(copy),
        Err(message) => Executable::program(Message::error("dd", format!("dd: {message}\n"), 1)),
    }
}

/// Returns whether the known images have a program at this path.
fn is_known_path(path: &str, name: &str) -> bool {
    let directory = path.strip_suffix(name).unwrap_or_default();
    matches!(directory, "/bin/" | "/usr/bin/" | "/sbin/" | "/usr/sbin/" | "/usr/local/bin/")
        || matches!(path, "/agnhost" | "/pause" | "/stress")
}
