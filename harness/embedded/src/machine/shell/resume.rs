//! Going on after a wait.

use super::super::cost;
use super::super::data::Data;
use super::super::io::{Read, Target};
use super::super::kernel::{Errno, Kernel};
use super::super::process::{Pid, SIGPIPE};
use super::super::program::Turn;
use super::{Shell, State};

/// The descriptor from which a command substitution is read.
pub(super) const CAPTURE: usize = 9;
/// The descriptor of a pipe that was full.
pub(super) const WRITER: usize = 8;
/// Output of command substitutions is kept to this size.
const LONGEST: usize = 1 << 20;

impl Shell {
    /// Learns which children have ended and which signals have come.
    pub(super) fn hear(&mut self, me: Pid, kernel: &mut Kernel) {
        let Some(process) = kernel.processes.get_mut(&me) else { return };
        if process.ended.is_empty() && process.signals.is_empty() {
            return;
        }
        let (ended, signals) = (std::mem::take(&mut process.ended), std::mem::take(&mut process.signals));
        self.pending.extend(signals);
        for (inner, code) in ended {
            let mark = |job: &mut super::Job| {
                if job.inner == inner {
                    job.code = Some(code);
                }
            };
            self.jobs.iter_mut().for_each(mark);
            match &mut self.state {
                State::Children(children) => children.iter_mut().for_each(mark),
                State::Capture { child, .. } => mark(child),
                _ => {}
            }
        }
    }

    /// Goes on if that for which it waits has happened; else the turn is over.
    pub(super) fn resume(&mut self, me: Pid, kernel: &mut Kernel) -> Option<Turn> {
        match std::mem::replace(&mut self.state, State::Running) {
            State::Running => None,
            State::Children(children) => {
                if children.iter().any(|child| child.code.is_none()) {
                    self.state = State::Children(children);
                    return Some(Turn::Wait);
                }
                self.status = children.last().and_then(|child| child.code).unwrap_or_default();
                None
            }
            State::Capture { child, slot, mut text, mut ended } => {
                while !ended {
                    let Some(reader) = kernel.descriptor(me, CAPTURE) else { break };
                    match kernel.read(me, reader, 1 << 20) {
                        Ok(Read::Data(Data::Bytes(bytes))) => text.extend(bytes),
                        // Nobody looks at masses of bytes; the memory that they take is what counts.
                        Ok(Read::Data(data)) => {
                            let len = data.len();
                            if kernel.allocate(me, len, len / cost::PAGE_TABLES).is_err() {
                                return Some(Turn::Wait);
                            }
                        }
                        Ok(Read::Blocked) => break,
                        Ok(Read::End) | Err(_) => ended = true,
                    }
                    text.truncate(LONGEST);
                }
                if !ended || child.code.is_none() {
                    self.state = State::Capture { child, slot, text, ended };
                    return Some(Turn::Wait);
                }
                kernel.install(me, CAPTURE, None);
                self.status = child.code.unwrap_or_default();
                let text = String::from_utf8_lossy(&text).trim_end_matches('\n').to_owned();
                if let Some(place) = self.slots.get_mut(slot) {
                    *place = text;
                }
                None
            }
            State::Wait(which) => {
                if let Some(sig) = self.pending.first() {
                    self.status = 128 + i32::from(*sig);
                    return None;
                }
                let waited = |job: &super::Job| which.as_ref().is_none_or(|which| which.contains(&job.inner));
                if self.jobs.iter().any(|job| waited(job) && job.code.is_none()) {
                    self.state = State::Wait(which);
                    return Some(Turn::Wait);
                }
                self.status = match which.as_ref().and_then(|which| which.last()) {
                    None => 0,
                    Some(last) => {
                        let job = self.jobs.iter().find(|job| job.inner == *last);
                        job.and_then(|job| job.code).unwrap_or(127)
                    }
                };
                self.jobs.retain(|job| !waited(job));
                None
            }
            State::Read(names) => {
                let line = match kernel.descriptor(me, 0) {
                    None => Ok(Read::End),
                    Some(input) => kernel.read_line(me, input),
                };
                match line {
                    Ok(Read::Blocked) => {
                        self.state = State::Read(names);
                        return Some(Turn::Wait);
                    }
                    Ok(Read::Data(Data::Bytes(line))) => {
                        let text = String::from_utf8_lossy(&line).into_owned();
                        self.take_line(&names, text.trim_end_matches('\n'));
                        self.status = i32::from(!text.ends_with('\n'));
                    }
                    _ => {
                        self.take_line(&names, "");
                        self.status = 1;
                    }
                }
                None
            }
            State::Write(data) => {
                let turn = self.write(WRITER, data, me, kernel);
                if !matches!(self.state, State::Write(_)) {
                    kernel.install(me, WRITER, None);
                }
                turn
            }
        }
    }

    fn take_line(&mut self, names: &[String], line: &str) {
        let mut rest = line.trim();
        for (at, name) in names.iter().enumerate() {
            let (value, after) = if at + 1 == names.len() {
                (rest, "")
            } else {
                rest.split_once([' ', '\t']).map_or((rest, ""), |(value, after)| (value, after.trim_start()))
            };
            rest = after;
            // A line is shorter than what a variable may hold.
            let _ = self.set(name, value.to_owned());
        }
    }

    /// Writes; a full pipe makes it wait, a broken one ends it.
    pub(super) fn write(
        &mut self,
        descriptor: usize,
        data: Data,
        me: Pid,
        kernel: &mut Kernel,
    ) -> Option<Turn> {
        let open = kernel.descriptor(me, descriptor);
        if let Some(Target::Log { .. }) = open.and_then(|open| kernel.target(open)) {
            self.debt += cost::LOG_WRITE;
        }
        match open.map_or(Err(Errno::BadDescriptor), |open| kernel.write(me, open, data)) {
            Ok(None) => None,
            Ok(Some(rest)) => {
                if let Some(open) = open
                    && descriptor != WRITER
                {
                    kernel.hold(open);
                    kernel.install(me, WRITER, Some(open));
                }
                self.state = State::Write(rest);
                Some(Turn::Wait)
            }
            Err(Errno::BrokenPipe) => Some(Turn::Exit(128 + i32::from(SIGPIPE))),
            Err(Errno::Killed) => Some(Turn::Wait),
            Err(error) => {
                self.status = 1;
                kernel.say(me, 2, &format!("{}: write error: {}\n", self.name, error.text()));
                None
            }
        }
    }
}
