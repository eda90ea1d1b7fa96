//! The program of evictlab's own image: it takes something step by step, and stays.

use std::sync::Arc;
use std::time::Duration;

use evictlab_stress::{OnRefusal, OnTerm, Order, REFUSED, STAYS, Stay, Take, Then, What, read};

use super::super::cost;
use super::super::data::Data;
use super::super::files::Mode;
use super::super::io::Target;
use super::super::kernel::{Errno, Kernel};
use super::super::process::Pid;
use super::stress::{Stress, Whose};
use super::{Idle, Program, Reaction, Turn};
use crate::time::Time;

/// The descriptor of its file.
const FILE: usize = 3;
/// Progress is told no more often.
const TELL: Duration = Duration::from_secs(1);
/// A line of a log with its end, in bytes.
const LINE: u64 = 1 << 10;

/// The program of a command line.
pub(super) fn load(arguments: &[String]) -> Program {
    match read(arguments) {
        Ok(Order::Take(take)) => Program::Own(Box::new(Own::new(take.stay.clone(), Some(take)))),
        Ok(Order::Idle(stay)) => Program::Own(Box::new(Own::new(stay, None))),
        Ok(Order::Stress(order)) => Program::Stress(Box::new(Stress::new(Whose::Evictlab, order))),
        Ok(Order::Child) => Program::Idle(Idle::Child),
        Ok(Order::Help) => {
            Program::Say { name: "stress", text: evictlab_stress::HELP.to_owned(), stderr: false, code: 0 }
        }
        Err(wrong) => {
            let text = format!("{}\n", wrong.to_string().trim_end());
            Program::Say { name: "stress", text, stderr: true, code: wrong.code() }
        }
    }
}

/// What it was told, and where it stands.
pub(in super::super) struct Own {
    take: Option<Take>,
    stay: Stay,
    taken: u64,
    /// What is left of a step.
    left: u64,
    /// Its folder, where it writes.
    folder: String,
    children: Vec<Pid>,
    began: Time,
    told: Time,
    phase: Phase,
    /// When it goes on by itself.
    next: Option<Time>,
    /// When it ends, since it was told to stop.
    end: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Delayed,
    Taking,
    Done,
    Held,
    Parked,
}

impl Own {
    fn new(stay: Stay, take: Option<Take>) -> Self {
        Self {
            take,
            stay,
            taken: 0,
            left: 0,
            folder: String::new(),
            children: Vec::new(),
            began: Time::ZERO,
            told: Time::ZERO,
            phase: Phase::New,
            next: None,
            end: None,
        }
    }

    /// What it does when it is told to stop.
    pub fn on_term(&self) -> Reaction {
        match self.stay.on_term {
            OnTerm::Exit { code, after } if after.is_zero() => Reaction::Exit(code.into()),
            _ => Reaction::Know,
        }
    }

    pub fn step(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        let signals = kernel.processes.get_mut(&me).map(|process| std::mem::take(&mut process.signals));
        for _ in signals.unwrap_or_default() {
            match self.stay.on_term {
                OnTerm::Ignore => kernel.say(me, 2, &format!("{STAYS}\n")),
                OnTerm::Exit { after, .. } => self.end = self.end.or(Some(kernel.now + after)),
            }
        }
        if let (Some(end), OnTerm::Exit { code, .. }) = (self.end, self.stay.on_term)
            && kernel.now >= end
        {
            return Turn::Exit(code.into());
        }
        let is_due = self.phase == Phase::New || self.next.is_some_and(|next| kernel.now >= next);
        if is_due {
            match self.go_on(me, kernel) {
                Turn::At(at) => self.next = Some(at),
                Turn::Wait => self.next = None,
                other => return other,
            }
        }
        match self.next.into_iter().chain(self.end).min() {
            Some(at) => Turn::At(at),
            None => Turn::Wait,
        }
    }

    fn go_on(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        let Some(take) = self.take.clone() else { return self.stays(kernel) };
        match self.phase {
            Phase::New => {
                self.phase = Phase::Delayed;
                Turn::At(kernel.now + take.pace.delay)
            }
            Phase::Delayed => {
                (self.began, self.told) = (kernel.now, kernel.now);
                self.phase = Phase::Taking;
                match self.open(&take, me, kernel) {
                    Ok(()) => Turn::At(kernel.now),
                    Err(error) => self.refused(&take, error, false, me, kernel),
                }
            }
            Phase::Taking => match self.some(&take, me, kernel) {
                Ok(turn) => turn,
                Err(Errno::Killed) => Turn::Wait,
                Err(error) => self.refused(&take, error, true, me, kernel),
            },
            Phase::Done => {
                let text = take.has_all(self.taken, kernel.now.since(self.began));
                kernel.say(me, 2, &format!("{text}\n"));
                self.stays(kernel)
            }
            Phase::Held | Phase::Parked => self.held(&take, me, kernel),
        }
    }

    /// It has everything, or as much as there is.
    fn stays(&mut self, kernel: &Kernel) -> Turn {
        if self.phase == Phase::Held {
            return Turn::Exit(self.stay.exit.into());
        }
        match self.stay.hold {
            None => {
                self.phase = Phase::Parked;
                Turn::Wait
            }
            Some(hold) => {
                self.phase = Phase::Held;
                Turn::At(kernel.now + hold)
            }
        }
    }

    /// What comes after it has stayed.
    fn held(&mut self, take: &Take, me: Pid, kernel: &mut Kernel) -> Turn {
        if self.stay.then == Then::Free {
            self.give_back(take, me, kernel);
            let text = take.freed(self.taken, kernel.now.since(self.began));
            kernel.say(me, 2, &format!("{text}\n"));
            self.phase = Phase::Parked;
            return Turn::Wait;
        }
        Turn::Exit(self.stay.exit.into())
    }

    fn refused(&mut self, take: &Take, error: Errno, holds: bool, me: Pid, kernel: &mut Kernel) -> Turn {
        let why = format!("{} (os error {})", error.text(), error.number());
        let text = take.refused(self.taken, kernel.now.since(self.began), &why);
        kernel.say(me, 2, &format!("{text}\n"));
        match take.on_refusal {
            OnRefusal::Hold if holds => self.stays(kernel),
            _ => Turn::Exit(REFUSED),
        }
    }

    /// Makes a folder of its own, and the file in it.
    fn open(&mut self, take: &Take, me: Pid, kernel: &mut Kernel) -> Result<(), Errno> {
        if !take.what.has_path() {
            return Ok(());
        }
        kernel.make(me, &take.path, true, false)?;
        let mut number = 0;
        self.folder = loop {
            let folder = format!("{}/{}-{number}", take.path, take.what.command());
            match kernel.make(me, &folder, false, false) {
                Ok(()) => break folder,
                Err(Errno::Exists) => number += 1,
                Err(error) => return Err(error),
            }
        };
        if take.what != What::Inodes {
            let open = kernel.open_path(me, &format!("{}/file", self.folder), Mode::Write)?;
            kernel.install(me, FILE, Some(open));
        }
        Ok(())
    }

    /// Takes some of a step: what can be had in a moment.
    fn some(&mut self, take: &Take, me: Pid, kernel: &mut Kernel) -> Result<Turn, Errno> {
        if self.left == 0 {
            let Some(step) = take.pace.next(self.taken) else {
                self.phase = Phase::Done;
                return Ok(Turn::At(kernel.now));
            };
            self.left = step;
        }
        let before = self.taken;
        let got = self.get(take.what, self.left, me, kernel);
        self.left -= self.taken - before;
        let done = kernel.work(me, kernel.now, got?);
        if self.left > 0 {
            return Ok(Turn::At(done));
        }
        if take.pace.is_all(self.taken) {
            self.phase = Phase::Done;
            return Ok(Turn::At(done));
        }
        if done.since(self.told) >= TELL {
            self.told = done;
            let text = take.progress(self.taken, done.since(self.began));
            kernel.say(me, 2, &format!("{text}\n"));
        }
        Ok(Turn::At(done + take.pace.pause))
    }

    /// Takes some of what there is left, counts it, and tells how long that takes.
    fn get(&mut self, what: What, left: u64, me: Pid, kernel: &mut Kernel) -> Result<Duration, Errno> {
        let slice = |rate| super::slice(left, rate);
        match what {
            What::Memory => {
                let (bytes, time) = slice(cost::FILL_RATE);
                kernel.allocate(me, bytes, bytes / cost::PAGE_TABLES)?;
                self.taken += bytes;
                Ok(time)
            }
            What::Disk { allocate: true } => {
                if let Some(Target::File { id, .. }) = file(me, kernel) {
                    kernel.resize_file(me, id, self.taken + left, true)?;
                }
                self.taken += left;
                Ok(cost::SYSCALL)
            }
            What::Disk { allocate: false } => {
                let (bytes, time) = slice(cost::COPY_RATE);
                self.write(bytes, me, kernel)?;
                Ok(time)
            }
            What::PageCache => {
                // Written once and read twice.
                let (bytes, time) = slice(cost::COPY_RATE / 3);
                self.write(bytes, me, kernel)?;
                if let Some(Target::File { id, .. }) = file(me, kernel) {
                    kernel.groups.activate(id);
                }
                Ok(time)
            }
            What::Inodes => {
                let (files, time) = slice(1_000_000 / cost::CREATE.as_micros() as u64);
                for _ in 0..files {
                    let open =
                        kernel.open_path(me, &format!("{}/{}", self.folder, self.taken), Mode::Write)?;
                    kernel.close(open);
                    self.taken += 1;
                }
                Ok(time)
            }
            What::Logs => {
                let (bytes, time) = slice(cost::LOG_RATE);
                // Whole lines, and at the end what is left of one.
                let lines = (bytes / LINE).max(u64::from(left >= LINE));
                let (line, lines) = if lines > 0 { (LINE, lines) } else { (left, 1) };
                let text: Arc<str> = "x".repeat(line as usize - 1).into();
                if let Some(log) = kernel.descriptor(me, 1) {
                    kernel.write(me, log, Data::Lines(text, lines))?;
                }
                self.taken += line * lines;
                Ok(time)
            }
            What::Pids => {
                let descriptors = kernel.processes.get(&me).map(|process| process.descriptors);
                let begins = kernel.now + cost::EXEC;
                let child = Program::Idle(Idle::Child);
                let (pid, _) = kernel.spawn(me, child, descriptors.unwrap_or_default(), begins)?;
                self.children.push(pid);
                self.taken += 1;
                Ok(cost::EXEC)
            }
        }
    }

    /// Writes at the end of its file.
    fn write(&mut self, bytes: u64, me: Pid, kernel: &mut Kernel) -> Result<(), Errno> {
        let Some(open) = kernel.descriptor(me, FILE) else { return Err(Errno::BadDescriptor) };
        let written = kernel.write(me, open, Data::Fill(bytes));
        // What got in before the disk was full counts.
        self.taken = kernel.position(open).unwrap_or(self.taken + bytes);
        written.map(drop)
    }

    fn give_back(&mut self, take: &Take, me: Pid, kernel: &mut Kernel) {
        match take.what {
            What::Memory => kernel.release(me, self.taken),
            What::Disk { .. } | What::PageCache | What::Inodes => {
                kernel.install(me, FILE, None);
                // It is there, and so can be removed.
                let _ = kernel.remove(me, &self.folder, true, true);
            }
            What::Pids => {
                for child in std::mem::take(&mut self.children) {
                    kernel.exit(child, 0);
                }
            }
            What::Logs => {}
        }
    }
}

/// What its own descriptor is open on.
fn file(me: Pid, kernel: &Kernel) -> Option<Target> {
    kernel.target(kernel.descriptor(me, FILE)?).cloned()
}
