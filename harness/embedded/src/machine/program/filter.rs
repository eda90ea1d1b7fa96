//! Programs that choose lines and parts of them: `grep`, `cut`, and of `awk` what prints one field.

use std::collections::VecDeque;

use regex::{Regex, RegexBuilder};

use super::super::cost;
use super::super::data::Data;
use super::super::files::Mode;
use super::super::io::Read;
use super::super::kernel::{Errno, Kernel};
use super::super::process::{Pid, SIGPIPE};
use super::{Turn, slice};

const INPUT: usize = 3;

/// What becomes of a line.
enum Rule {
    /// It stays if it matches, or if it does not; with `count`, only the number of those is told, with `quiet` nothing.
    Grep { pattern: Regex, invert: bool, count: bool, quiet: bool },
    /// One of its parts is left, counted from 1; of none of it, nothing, or with `whole` the line. `only` is what a line must match.
    Field { separator: Option<char>, index: usize, whole: bool, only: Option<Regex> },
}

/// Lines on their way.
pub(in super::super) struct Filter {
    pub name: &'static str,
    rule: Rule,
    files: VecDeque<String>,
    /// It reads its input, or a file that is open.
    reading: bool,
    from_input: bool,
    begun: Vec<u8>,
    pending: Option<Data>,
    chosen: u64,
    failed: bool,
}

impl Filter {
    /// The program of a name; none if it is another one's, or has arguments that are not known.
    pub fn of(name: &str, arguments: &[String]) -> Option<Self> {
        let (name, rule, files) = match name {
            "grep" | "egrep" | "fgrep" => grep(name, arguments)?,
            "cut" => cut(arguments)?,
            "awk" => awk(arguments)?,
            _ => return None,
        };
        let from_input = files.is_empty();
        Some(Self {
            name,
            rule,
            files: files.into(),
            reading: from_input,
            from_input,
            begun: Vec::new(),
            pending: None,
            chosen: 0,
            failed: false,
        })
    }

    pub fn step(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        match self.go_on(me, kernel) {
            Ok(turn) => turn,
            Err(Errno::Killed) => Turn::Wait,
            Err(Errno::BrokenPipe) => Turn::Exit(128 + i32::from(SIGPIPE)),
            Err(_) => Turn::Exit(2),
        }
    }

    fn go_on(&mut self, me: Pid, kernel: &mut Kernel) -> Result<Turn, Errno> {
        if let Some(data) = self.pending.take() {
            return self.put(data, me, kernel);
        }
        if !self.reading && !self.open_next(me, kernel) {
            return Ok(self.finish(me, kernel));
        }
        let at = if self.from_input { 0 } else { INPUT };
        let Some(input) = kernel.descriptor(me, at) else { return Ok(Turn::Exit(2)) };
        let (most, _) = slice(u64::MAX, cost::COPY_RATE);
        match kernel.read(me, input, most)? {
            Read::Blocked => Ok(Turn::Wait),
            Read::End => {
                self.reading = false;
                let rest = std::mem::take(&mut self.begun);
                match rest.is_empty() {
                    true => Ok(Turn::At(kernel.now + cost::SYSCALL)),
                    false => {
                        let out = self.lines(&[rest, vec![b'\n']].concat());
                        self.put(Data::Bytes(out), me, kernel)
                    }
                }
            }
            Read::Data(data) => {
                let done = kernel.work(me, kernel.now, cost::at_rate(data.len(), cost::COPY_RATE));
                let out = match data {
                    Data::Bytes(bytes) => {
                        self.begun.extend(bytes);
                        let end = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                        let rest = self.begun.split_off(end);
                        let whole = std::mem::replace(&mut self.begun, rest);
                        Data::Bytes(self.lines(&whole))
                    }
                    Data::Lines(line, count) => {
                        let before = self.chosen;
                        let out = self.lines(format!("{line}\n").as_bytes());
                        self.chosen = before + (self.chosen - before) * count;
                        match out.strip_suffix(b"\n") {
                            Some(out) => Data::Lines(String::from_utf8_lossy(out).into(), count),
                            None => Data::Bytes(Vec::new()),
                        }
                    }
                    // A mass of bytes is no line.
                    Data::Fill(_) => Data::Bytes(Vec::new()),
                };
                match self.put(out, me, kernel)? {
                    Turn::At(_) => Ok(Turn::At(done)),
                    turn => Ok(turn),
                }
            }
        }
    }

    /// What is left of whole lines.
    fn lines(&mut self, text: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(text);
        let mut out = String::new();
        for line in text.lines() {
            match &self.rule {
                Rule::Grep { pattern, invert, count, quiet } => {
                    if pattern.is_match(line) != *invert {
                        self.chosen += 1;
                        if !count && !quiet {
                            out.push_str(line);
                            out.push('\n');
                        }
                    }
                }
                Rule::Field { separator, index, whole, only } => {
                    if only.as_ref().is_some_and(|only| !only.is_match(line)) {
                        continue;
                    }
                    self.chosen += 1;
                    let field = match (index, separator) {
                        (0, _) => Some(line),
                        (_, Some(separator)) if !line.contains(*separator) && *whole => Some(line),
                        (index, Some(separator)) => line.split(*separator).nth(index - 1),
                        (index, None) => line.split_whitespace().nth(index - 1),
                    };
                    out.push_str(field.unwrap_or_default());
                    out.push('\n');
                }
            }
        }
        out.into_bytes()
    }

    fn put(&mut self, data: Data, me: Pid, kernel: &mut Kernel) -> Result<Turn, Errno> {
        if data.len() > 0
            && let Some(output) = kernel.descriptor(me, 1)
        {
            self.pending = kernel.write(me, output, data)?;
        }
        Ok(if self.pending.is_some() { Turn::Wait } else { Turn::At(kernel.now) })
    }

    /// Opens the next file that can be opened; whether there is one.
    fn open_next(&mut self, me: Pid, kernel: &mut Kernel) -> bool {
        while let Some(path) = self.files.pop_front() {
            match kernel.open_path(me, &path, Mode::Read) {
                Ok(open) => {
                    kernel.install(me, INPUT, Some(open));
                    self.reading = true;
                    return true;
                }
                Err(error) => {
                    self.failed = true;
                    kernel.say(me, 2, &format!("{}: {path}: {}\n", self.name, error.text()));
                }
            }
        }
        false
    }

    fn finish(&self, me: Pid, kernel: &mut Kernel) -> Turn {
        match &self.rule {
            Rule::Grep { count, .. } => {
                if *count {
                    kernel.say(me, 1, &format!("{}\n", self.chosen));
                }
                Turn::Exit(if self.failed { 2 } else { i32::from(self.chosen == 0) })
            }
            Rule::Field { .. } => Turn::Exit(i32::from(self.failed)),
        }
    }
}

type Parsed = (&'static str, Rule, Vec<String>);

fn grep(name: &str, arguments: &[String]) -> Option<Parsed> {
    let mut flags = String::new();
    let mut words = Vec::new();
    for word in arguments {
        match word.strip_prefix('-') {
            Some(letters) if !letters.is_empty() && words.is_empty() => flags.push_str(letters),
            _ => words.push(word.clone()),
        }
    }
    if flags.chars().any(|flag| !"qvciEFh".contains(flag)) || words.is_empty() {
        return None;
    }
    let pattern = words.remove(0);
    let fixed = flags.contains('F') || name == "fgrep";
    let extended = flags.contains('E') || name == "egrep";
    let pattern = match (fixed, extended) {
        (true, _) => regex::escape(&pattern),
        (_, true) => pattern,
        _ => basic(&pattern),
    };
    let pattern = RegexBuilder::new(&pattern).case_insensitive(flags.contains('i')).build().ok()?;
    let has = |flag: char| flags.contains(flag);
    let rule = Rule::Grep { pattern, invert: has('v'), count: has('c'), quiet: has('q') };
    Some(("grep", rule, words))
}

/// A basic regular expression in the words of an extended one: there, a backslash makes special what here is so by itself.
fn basic(pattern: &str) -> String {
    const SPECIAL: &str = "+?(){}|";
    let mut out = String::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(next) if SPECIAL.contains(next) => out.push(next),
                next => {
                    out.push('\\');
                    out.extend(next);
                }
            },
            letter => {
                if SPECIAL.contains(letter) {
                    out.push('\\');
                }
                out.push(letter);
            }
        }
    }
    out
}

fn cut(arguments: &[String]) -> Option<Parsed> {
    let (mut separator, mut index, mut files) = ('\t', None, Vec::new());
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-d" => separator = rest.next()?.chars().next()?,
            "-f" => index = rest.next()?.parse().ok(),
            word if word.starts_with("-d") => separator = word[2..].chars().next()?,
            word if word.starts_with("-f") => index = word[2..].parse().ok(),
            word if word.starts_with('-') => return None,
            word => files.push(word.to_owned()),
        }
    }
    let index = index.filter(|index| *index > 0)?;
    Some(("cut", Rule::Field { separator: Some(separator), index, whole: true, only: None }, files))
}

/// `{print $N}`, also of lines that match `/RE/` or whose first field is a text.
fn awk(arguments: &[String]) -> Option<Parsed> {
    let (mut separator, mut words) = (None, Vec::new());
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-F" => separator = rest.next()?.chars().next(),
            word if word.starts_with("-F") => separator = word[2..].chars().next(),
            word if word.starts_with('-') => return None,
            word => words.push(word.to_owned()),
        }
    }
    let (program, files) = words.split_first()?;
    let shape = r#"^\s*(?:/(?<re>.*)/|\$1\s*==\s*"(?<first>[^"]*)")?\s*\{\s*print(?:\s+\$(?<index>\d+))?\s*;?\s*\}\s*$"#;
    let found = Regex::new(shape).ok()?.captures(program)?;
    let only = match (found.name("re"), found.name("first")) {
        (Some(expression), _) => Some(Regex::new(expression.as_str()).ok()?),
        (_, Some(text)) => {
            let end = separator.map_or_else(|| r"\s".to_owned(), |one| regex::escape(&one.to_string()));
            Some(Regex::new(&format!("^{}(?:{end}|$)", regex::escape(text.as_str()))).ok()?)
        }
        _ => None,
    };
    let index = found.name("index").map_or(Some(0), |index| index.as_str().parse().ok())?;
    Some(("awk", Rule::Field { separator, index, whole: false, only }, files.to_vec()))
}
