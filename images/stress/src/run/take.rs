//! Taking something step by step.

use std::io;
use std::process::exit;
use std::thread::sleep;
use std::time::{Duration, Instant};

use evictlab_stress::{OnRefusal, REFUSED, Take, Then, What};

use super::disk::Disk;
use super::inodes::Inodes;
use super::logs::Logs;
use super::memory::Memory;
use super::page_cache::PageCache;
use super::pids::Pids;
use super::signals;
use super::stay::{park, stop_after};
use super::tell::tell;

/// Progress is told no more often.
const TELL: Duration = Duration::from_secs(1);

/// What there is to take.
pub trait Taker {
    /// Takes so much. `taken` grows with what it got, also where the system refuses the rest.
    fn take(&mut self, amount: u64, taken: &mut u64) -> io::Result<()>;

    /// Gives everything back.
    fn give_back(self: Box<Self>) -> io::Result<()>;
}

/// Takes, and does what comes after.
pub fn take(order: &Take) {
    signals::handle(order.stay.on_term);
    sleep(order.pace.delay);
    let began = Instant::now();
    let refused = |taken, error: io::Error| {
        tell(order.refused(taken, began.elapsed(), &error.to_string()));
    };
    let mut taken = 0;
    let mut taker = taker(order).unwrap_or_else(|error| {
        refused(taken, error);
        exit(REFUSED);
    });
    match take_all(order, taker.as_mut(), began, &mut taken) {
        Ok(()) => tell(order.has_all(taken, began.elapsed())),
        Err(error) => {
            refused(taken, error);
            if order.on_refusal == OnRefusal::Exit {
                exit(REFUSED);
            }
        }
    }
    stop_after(&order.stay);
    if order.stay.then == Then::Free {
        match taker.give_back() {
            Ok(()) => tell(order.freed(taken, began.elapsed())),
            Err(error) => {
                tell(format_args!("{}: it cannot be given back: {error}", order.what.command()));
                exit(REFUSED);
            }
        }
    }
    park()
}

/// Takes everything.
fn take_all(order: &Take, taker: &mut dyn Taker, began: Instant, taken: &mut u64) -> io::Result<()> {
    let mut told = began;
    while let Some(step) = order.pace.next(*taken) {
        taker.take(step, taken)?;
        if order.pace.is_all(*taken) {
            break;
        }
        if told.elapsed() >= TELL {
            told = Instant::now();
            tell(order.progress(*taken, began.elapsed()));
        }
        sleep(order.pace.pause);
    }
    Ok(())
}

fn taker(order: &Take) -> io::Result<Box<dyn Taker>> {
    Ok(match order.what {
        What::Memory => Box::new(Memory::new()),
        What::Disk { allocate } => Box::new(Disk::new(&order.path, allocate)?),
        What::Inodes => Box::new(Inodes::new(&order.path)?),
        What::Logs => Box::new(Logs::new()),
        What::Pids => Box::new(Pids::new()?),
        What::PageCache => Box::new(PageCache::new(&order.path)?),
    })
}
