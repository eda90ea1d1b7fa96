//! Programs that end at once: the shell's process does them, though a real one forks. They cost the time of a fork, not its process.

use super::super::disk::FileKind;
use super::super::files::{Mode, Place};
use super::super::kernel::{Errno, Kernel};
use super::super::process::Pid;
use super::super::program::bytes;
use super::builtin::Outcome;
use super::text::{Pattern, printf, unescape};
use super::{Shell, test};

/// Those that busybox's shell has built in.
const BUILTINS: [&str; 10] = [":", "true", "false", "echo", "printf", "test", "[", "pwd", "umask", "ulimit"];
/// Those that are programs.
const PROGRAMS: [&str; 26] = [
    "basename",
    "chgrp",
    "chmod",
    "chown",
    "date",
    "dirname",
    "expr",
    "fallocate",
    "hostname",
    "id",
    "ln",
    "ls",
    "mkdir",
    "mkfifo",
    "mv",
    "nproc",
    "rm",
    "rmdir",
    "seq",
    "sync",
    "touch",
    "truncate",
    "uname",
    "unlink",
    "usleep",
    "whoami",
];
/// No more numbers are counted at once.
const MOST: i64 = 1_000_000;

/// Whether a command ends at once.
pub(in super::super) fn is_quick(name: &str) -> bool {
    is_builtin(name) || PROGRAMS.contains(&name)
}

/// Whether it takes no process of its own.
pub(super) fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name)
}

impl Shell {
    /// Does such a command; none if it is another one.
    pub(super) fn quick(&mut self, words: &[String], me: Pid, kernel: &mut Kernel) -> Option<Outcome> {
        let name = words[0].rsplit('/').next().unwrap_or_default();
        let arguments = &words[1..];
        let operands = || arguments.iter().filter(|word| !word.starts_with('-') || word.len() == 1);
        let flag = |letter: char| {
            arguments
                .iter()
                .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
        };
        Some(match name {
            ":" | "true" | "umask" | "ulimit" | "sync" | "chmod" | "chown" | "chgrp" => Outcome::status(0),
            "false" => Outcome::status(1),
            "echo" => Outcome::text(echo(arguments)),
            "printf" => Outcome::text(
                arguments.split_first().map(|(format, rest)| printf(format, rest)).unwrap_or_default(),
            ),
            "test" | "[" => {
                let inner = match (name, arguments.split_last()) {
                    ("[", Some((last, rest))) if last == "]" => rest,
                    ("[", _) => {
                        kernel.say(me, 2, &format!("{}: [: missing ]\n", self.name));
                        return Some(Outcome::status(2));
                    }
                    _ => arguments,
                };
                Outcome::status(test::test(inner, me, kernel))
            }
            "pwd" => Outcome::text(format!("{}\n", kernel.absolute(me, "."))),
            "touch" => self.each(operands(), "touch", me, kernel, |path, me, kernel| {
                let open = kernel.open_path(me, path, Mode::Keep);
                match open {
                    Ok(open) => kernel.close(open),
                    Err(Errno::IsDirectory) => {}
                    Err(error) => return Err(error),
                }
                Ok(())
            }),
            "truncate" | "fallocate" => {
                let mut size = None;
                let mut files = Vec::new();
                let mut rest = arguments.iter();
                while let Some(word) = rest.next() {
                    match word.as_str() {
                        "-s" | "-l" => size = rest.next().and_then(|text| bytes(text)),
                        word if word.starts_with("-s") || word.starts_with("-l") => size = bytes(&word[2..]),
                        "-n" | "-c" | "-o" => {}
                        _ => files.push(word),
                    }
                }
                let Some(size) = size else { return Some(Outcome::status(1)) };
                let taken = name == "fallocate";
                self.each(files.into_iter(), name, me, kernel, |path, me, kernel| {
                    kernel.resize(me, path, size, taken)
                })
            }
            "mkdir" => {
                let parents = flag('p');
                self.each(operands(), "mkdir", me, kernel, |path, me, kernel| {
                    kernel.make(me, path, parents, false)
                })
            }
            "mkfifo" => self.each(operands(), "mkfifo", me, kernel, |path, me, kernel| {
                kernel.make(me, path, false, true)
            }),
            "rm" | "unlink" | "rmdir" => {
                let (force, recursive) = (flag('f'), flag('r') || flag('R') || name == "rmdir");
                self.each(operands(), name, me, kernel, |path, me, kernel| {
                    match kernel.remove(me, path, recursive, name != "rmdir") {
                        Err(Errno::Missing) if force => Ok(()),
                        done => done,
                    }
                })
            }
            "mv" => {
                let operands: Vec<&String> = operands().collect();
                match operands.as_slice() {
                    [from, to] => self.each([*from].into_iter(), "mv", me, kernel, |path, me, kernel| {
                        kernel.rename(me, path, to)
                    }),
                    _ => return None,
                }
            }
            // A second name takes no space worth counting, and nobody looks.
            "ln" => Outcome::status(0),
            "ls" => {
                let paths: Vec<&str> = operands().map(String::as_str).collect();
                let paths = if paths.is_empty() { vec!["."] } else { paths };
                list(&paths, me, kernel)
            }
            "seq" => {
                let numbers: Vec<i64> = operands().filter_map(|word| word.parse().ok()).collect();
                let (from, step, to) = match numbers.as_slice() {
                    [to] => (1, 1, *to),
                    [from, to] => (*from, 1, *to),
                    [from, step, to] if *step != 0 => (*from, *step, *to),
                    _ => return Some(Outcome::status(1)),
                };
                let count = if step > 0 { to.saturating_sub(from) } else { from.saturating_sub(to) }
                    / step.saturating_abs();
                let numbers = (0..=count.min(MOST)).map(|at| from + at * step);
                Outcome::text(if count < 0 {
                    String::new()
                } else {
                    numbers.map(|number| format!("{number}\n")).collect()
                })
            }
            "expr" => expr(arguments),
            "basename" => {
                let path = arguments.first().map_or("", |path| path.trim_end_matches('/'));
                let base = path.rsplit('/').next().unwrap_or_default();
                let base =
                    arguments.get(1).and_then(|suffix| base.strip_suffix(suffix.as_str())).unwrap_or(base);
                Outcome::text(format!("{base}\n"))
            }
            "dirname" => {
                let path = arguments.first().map_or("", String::as_str);
                let directory = path
                    .rsplit_once('/')
                    .map_or(".", |(directory, _)| if directory.is_empty() { "/" } else { directory });
                Outcome::text(format!("{directory}\n"))
            }
            "date" => {
                let at = kernel.epoch.at(kernel.now);
                let format = arguments
                    .iter()
                    .find_map(|word| word.strip_prefix('+'))
                    .unwrap_or("%a %b %e %H:%M:%S UTC %Y");
                // jiff refuses formats that it does not know.
                let text = jiff::fmt::strtime::format(format, &at.to_zoned(jiff::tz::TimeZone::UTC))
                    .unwrap_or_default();
                Outcome::text(format!("{text}\n"))
            }
            "hostname" | "uname" => Outcome::text(if name == "uname" { "Linux\n" } else { "pod\n" }),
            "id" | "whoami" => {
                Outcome::text(if name == "id" { "uid=0(root) gid=0(root)\n" } else { "root\n" })
            }
            "nproc" => Outcome::text("1\n"),
            "usleep" => {
                let micros = arguments.first().and_then(|text| text.parse().ok()).unwrap_or_default();
                self.debt += std::time::Duration::from_micros(micros);
                Outcome::status(0)
            }
            _ => return None,
        })
    }

    /// Does something with each path, and says what went wrong.
    fn each<'a>(
        &self,
        paths: impl Iterator<Item = &'a String>,
        name: &str,
        me: Pid,
        kernel: &mut Kernel,
        mut act: impl FnMut(&str, Pid, &mut Kernel) -> Result<(), Errno>,
    ) -> Outcome {
        let mut status = 0;
        for path in paths {
            if let Err(error) = act(path, me, kernel) {
                status = 1;
                if error != Errno::Killed {
                    kernel.say(me, 2, &format!("{name}: {path}: {}\n", error.text()));
                }
            }
        }
        Outcome::status(status)
    }
}

/// `ls`: the names in directories, and files by their own.
fn list(paths: &[&str], me: Pid, kernel: &mut Kernel) -> Outcome {
    let mut text = String::new();
    let mut status = 0;
    for path in paths {
        let place = kernel.place(me, path);
        match place {
            Some(Place::Name(store, name)) if kernel.is_directory(me, store, &name) => {
                let directory = kernel.absolute(me, path);
                let all = Pattern::new(&format!("{}/*", directory.trim_end_matches('/')), true);
                let names = kernel.matching(me, &directory, |path| all.matches(path));
                if paths.len() > 1 {
                    text.push_str(&format!("{}{path}:\n", if text.is_empty() { "" } else { "\n" }));
                }
                let names = names.iter().filter_map(|path| path.rsplit('/').next());
                names.for_each(|name| text.extend([name, "\n"]));
            }
            Some(Place::Name(store, name)) if kernel.disk.named(store, &name).is_none() => {
                kernel.say(me, 2, &format!("ls: {path}: {}\n", Errno::Missing.text()));
                status = 1;
            }
            _ => text.extend([path, "\n"]),
        }
    }
    Outcome { status, ..Outcome::text(text) }
}

fn echo(arguments: &[String]) -> String {
    let (mut line_end, mut escapes) = (true, false);
    let mut rest = arguments;
    while let Some((first, others)) = rest.split_first() {
        match first.as_str() {
            "-n" => line_end = false,
            "-e" => escapes = true,
            "-ne" | "-en" => (line_end, escapes) = (false, true),
            "-E" => escapes = false,
            _ => break,
        }
        rest = others;
    }
    let text = rest.join(" ");
    let mut text = if escapes { unescape(&text) } else { text };
    if line_end {
        text.push('\n');
    }
    text
}

fn expr(arguments: &[String]) -> Outcome {
    let value = match arguments {
        [one] => one.clone(),
        [left, operator, right] => {
            let numbers = left.parse::<i64>().ok().zip(right.parse::<i64>().ok());
            match (operator.as_str(), numbers) {
                ("+", Some((left, right))) => left.wrapping_add(right).to_string(),
                ("-", Some((left, right))) => left.wrapping_sub(right).to_string(),
                ("*", Some((left, right))) => left.wrapping_mul(right).to_string(),
                ("/", Some((left, right))) if right != 0 => left.wrapping_div(right).to_string(),
                ("%", Some((left, right))) if right != 0 => left.wrapping_rem(right).to_string(),
                ("<", Some((left, right))) => i64::from(left < right).to_string(),
                ("<=", Some((left, right))) => i64::from(left <= right).to_string(),
                (">", Some((left, right))) => i64::from(left > right).to_string(),
                (">=", Some((left, right))) => i64::from(left >= right).to_string(),
                ("=", _) => i64::from(left == right).to_string(),
                ("!=", _) => i64::from(left != right).to_string(),
                _ => return Outcome::status(2),
            }
        }
        _ => return Outcome::status(2),
    };
    let status = i32::from(value == "0" || value.is_empty());
    Outcome { status, ..Outcome::text(format!("{value}\n")) }
}

impl Kernel {
    /// `fallocate` and `truncate`
    fn resize(&mut self, me: Pid, path: &str, size: u64, taken: bool) -> Result<(), Errno> {
        let open = self.open_path(me, path, Mode::Keep)?;
        let file = match self.target(open) {
            Some(super::super::io::Target::File { id, .. }) => Some(*id),
            _ => None,
        };
        let done = match file {
            None => Ok(()),
            Some(file) => self.resize_file(me, file, size, taken),
        };
        self.close(open);
        done
    }

    /// `mkdir` and `mkfifo`
    pub(in super::super) fn make(
        &mut self,
        me: Pid,
        path: &str,
        parents: bool,
        fifo: bool,
    ) -> Result<(), Errno> {
        let Some(Place::Name(store, name)) = self.place(me, path) else { return Err(Errno::Exists) };
        if self.is_directory(me, store, &name) || self.disk.named(store, &name).is_some() {
            return if parents { Ok(()) } else { Err(Errno::Exists) };
        }
        if !self.has_parent(me, store, &name) {
            if !parents {
                return Err(Errno::Missing);
            }
            if let Some((above, _)) = path.trim_end_matches('/').rsplit_once('/') {
                self.make(me, above, true, false)?;
            }
        }
        let kind = if fifo { FileKind::Fifo(self.new_pipe(true)) } else { FileKind::Directory };
        self.disk.create(store, &name, kind).map_err(|_| Errno::NoSpace)?;
        Ok(())
    }

    /// `rm` and `rmdir`
    pub(in super::super) fn remove(
        &mut self,
        me: Pid,
        path: &str,
        recursive: bool,
        full: bool,
    ) -> Result<(), Errno> {
        let Some(Place::Name(store, name)) = self.place(me, path) else { return Ok(()) };
        let Some(id) = self.disk.named(store, &name) else {
            return Err(if self.is_directory(me, store, &name) {
                Errno::IsDirectory
            } else {
                Errno::Missing
            });
        };
        if self.disk.file(id).is_some_and(|file| file.kind == FileKind::Directory) {
            if !recursive {
                return Err(Errno::IsDirectory);
            }
            let below = format!("{name}/");
            let inside: Vec<String> = self.disk.names(store, &below).map(str::to_owned).collect();
            if !full && !inside.is_empty() {
                return Err(Errno::NotEmpty);
            }
            for name in inside {
                let gone = self.disk.unlink(store, &name);
                self.forget_file(gone);
            }
        }
        let gone = self.disk.unlink(store, &name);
        self.forget_file(gone);
        Ok(())
    }

    /// `mv` within a tree of files.
    fn rename(&mut self, me: Pid, from: &str, to: &str) -> Result<(), Errno> {
        let to = match self.place(me, to) {
            Some(Place::Name(store, name)) if self.is_directory(me, store, &name) => {
                format!("{to}/{}", from.rsplit('/').next().unwrap_or_default())
            }
            _ => to.to_owned(),
        };
        let (Some(Place::Name(store, name)), Some(Place::Name(other, new))) =
            (self.place(me, from), self.place(me, &to))
        else {
            return Err(Errno::Exists);
        };
        if self.disk.named(store, &name).is_none() {
            return Err(Errno::Missing);
        }
        if !self.has_parent(me, other, &new) {
            return Err(Errno::Missing);
        }
        let gone = self.disk.unlink(other, &new);
        self.forget_file(gone);
        self.move_file(me, store, &name, other, &new)
    }
}
