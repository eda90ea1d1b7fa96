//! Utilities that finish at once. The shell runs them in its own process, as ash does with some of
//! them. Those that ash would fork cost the time of a fork and need a free PID.

use super::format::{echo, printf};
use super::test_command::test;
use crate::machine::errno::Errno;
use crate::machine::ids::Pid;
use crate::machine::kernel::Kernel;
use crate::machine::open_file::{STDERR, Target};
use crate::machine::paths::{Location, OpenMode};
use crate::machine::size::parse_size;

/// An applet of busybox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applet {
    True,
    False,
    Echo,
    Printf,
    Test,
    Fallocate,
    Ls,
    Mkdir,
    Sync,
}

impl Applet {
    fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            ":" | "true" => Self::True,
            "false" => Self::False,
            "echo" => Self::Echo,
            "printf" => Self::Printf,
            "[" => Self::Test,
            "fallocate" => Self::Fallocate,
            "ls" => Self::Ls,
            "mkdir" => Self::Mkdir,
            "sync" => Self::Sync,
            _ => return None,
        })
    }

    /// Returns whether ash runs the applet in a process of its own.
    fn is_program(self) -> bool {
        match self {
            Self::True | Self::False | Self::Echo | Self::Printf | Self::Test => false,
            Self::Fallocate | Self::Ls | Self::Mkdir | Self::Sync => true,
        }
    }
}

/// Returns whether there is an applet of this name.
pub(in super::super) fn is_applet(name: &str) -> bool {
    Applet::by_name(name).is_some()
}

/// Returns whether ash would fork for an applet.
pub(super) fn is_program(name: &str) -> bool {
    Applet::by_name(name).is_some_and(Applet::is_program)
}

/// The result of an applet.
pub(super) struct AppletResult {
    pub status: i32,
    /// The text for stdout.
    pub output: String,
}

impl AppletResult {
    fn status(status: i32) -> Self {
        Self { status, output: String::new() }
    }

    fn output(output: String) -> Self {
        Self { status: 0, output }
    }
}

/// Runs an applet; returns `None` for an unknown name. `shell` is the name of the shell.
pub(super) fn run(words: &[String], shell: &str, pid: Pid, kernel: &mut Kernel) -> Option<AppletResult> {
    let (path, arguments) = words.split_first()?;
    let name = path.rsplit('/').next().unwrap_or_default();
    let invocation = Invocation { name, arguments, pid };
    let result = match Applet::by_name(name)? {
        Applet::True | Applet::Sync => Ok(AppletResult::status(0)),
        Applet::False => Ok(AppletResult::status(1)),
        Applet::Echo => Ok(AppletResult::output(echo(arguments))),
        Applet::Printf => printf(arguments).map(AppletResult::output),
        Applet::Test => invocation.test(kernel),
        Applet::Fallocate => Ok(invocation.fallocate(kernel)),
        Applet::Ls => Ok(invocation.list(kernel)),
        Applet::Mkdir => Ok(invocation.for_each_path("p", kernel, |path, flags, kernel| {
            kernel.create_directory(pid, path, !flags.is_empty())
        })),
    };
    Some(result.unwrap_or_else(|message| {
        kernel.print(pid, STDERR, &format!("{shell}: {name}: {message}\n"));
        AppletResult::status(2)
    }))
}

/// An applet with its arguments, in the process that runs it.
struct Invocation<'a> {
    name: &'a str,
    arguments: &'a [String],
    pid: Pid,
}

impl Invocation<'_> {
    /// `[`
    fn test(&self, kernel: &mut Kernel) -> Result<AppletResult, String> {
        let expression = match self.arguments.split_last() {
            Some((last, rest)) if last == "]" => rest,
            _ => return Err("missing ]".to_owned()),
        };
        let holds = test(expression, self.pid, kernel)?;
        Ok(AppletResult::status(i32::from(!holds)))
    }

    /// Applies an action to each operand, and prints its errors. `known` are the accepted flags.
    fn for_each_path(
        &self,
        known: &str,
        kernel: &mut Kernel,
        mut action: impl FnMut(&str, &str, &mut Kernel) -> Result<(), Errno>,
    ) -> AppletResult {
        let (flags, paths): (Vec<&String>, Vec<&String>) =
            self.arguments.iter().partition(|argument| argument.starts_with('-'));
        let flags: String = flags.iter().map(|flag| &flag[1..]).collect();
        if let Some(flag) = flags.chars().find(|flag| !known.contains(*flag)) {
            return self.unsupported(&format!("-{flag}"), kernel);
        }
        let mut status = 0;
        for path in paths {
            if let Err(error) = action(path, &flags, kernel) {
                status = 1;
                if error != Errno::Killed {
                    let text = format!("{}: {path}: {}\n", self.name, error.text());
                    kernel.print(self.pid, STDERR, &text);
                }
            }
        }
        AppletResult::status(status)
    }

    fn unsupported(&self, usage: &str, kernel: &mut Kernel) -> AppletResult {
        let text = format!("{}: {usage} is not supported by this model\n", self.name);
        kernel.print(self.pid, STDERR, &text);
        AppletResult::status(1)
    }

    /// `fallocate -l SIZE FILE`
    fn fallocate(&self, kernel: &mut Kernel) -> AppletResult {
        let (size, paths) = match self.arguments {
            [flag, size, paths @ ..] if flag == "-l" => (parse_size(size), paths),
            _ => (None, self.arguments),
        };
        let Some(size) = size else { return self.unsupported(&self.arguments.join(" "), kernel) };
        let paths = Self { arguments: paths, ..*self };
        paths.for_each_path("", kernel, |path, _, kernel| {
            let file = kernel.open_path(self.pid, path, OpenMode::Update)?;
            let result = match kernel.target(file) {
                Some(Target::File { id, .. }) => kernel.allocate_file(self.pid, *id, size),
                _ => Ok(()),
            };
            kernel.close(file);
            result
        })
    }

    /// `ls`: the names in directories, and the paths of files.
    fn list(&self, kernel: &mut Kernel) -> AppletResult {
        if let Some(flag) = self.arguments.iter().find(|argument| argument.starts_with('-')) {
            return self.unsupported(flag, kernel);
        }
        let root = ["/".to_owned()];
        let paths = if self.arguments.is_empty() { &root } else { self.arguments };
        let mut result = AppletResult::status(0);
        let output = &mut result.output;
        for path in paths {
            match kernel.resolve(self.pid, path) {
                Some(Location::Entry(tree, name)) if kernel.is_directory(self.pid, tree, &name) => {
                    if paths.len() > 1 {
                        output.push_str(&format!("{}{path}:\n", if output.is_empty() { "" } else { "\n" }));
                    }
                    let names = kernel.list_directory(self.pid, path);
                    names.iter().for_each(|name| output.extend([name, "\n"]));
                }
                Some(Location::Entry(tree, name)) if kernel.disk.lookup(tree, &name).is_none() => {
                    let text = format!("ls: {path}: {}\n", Errno::NotFound.text());
                    kernel.print(self.pid, STDERR, &text);
                    result.status = 1;
                }
                _ => output.extend([path.as_str(), "\n"]),
            }
        }
        result
    }
}
