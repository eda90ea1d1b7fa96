//! agnhost's `stress`.

use std::fs::File;
use std::io;
use std::process::exit;
use std::thread::{self, sleep};
use std::time::Duration;

use evictlab_stress::agnhost::{Steps, Stress};
use evictlab_stress::{OnTerm, REFUSED};

use super::signals;
use super::stay::park;
use super::tell::tell;

/// What Go's runtime ends a first process with whose signal it does not get rid of.
const GO: u8 = 2;

/// Takes memory in steps and keeps CPUs busy, as agnhost does.
pub fn stress(order: &Stress) {
    signals::handle(OnTerm::Exit { code: GO, after: Duration::ZERO });
    tell(order.begins());
    for _ in 0..order.cpus {
        thread::spawn(burn);
    }
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let steps = match order.steps() {
        Steps::Of(steps) => steps,
        Steps::Endless => u64::MAX,
    };
    let size = usize::try_from(order.size()).unwrap_or(usize::MAX);
    for _ in 0..steps {
        // Of noughts, as agnhost's; but what is asked of the system as noughts is not there before it is written to.
        let mut chunk = Vec::new();
        if chunk.try_reserve_exact(size).is_err() {
            tell("fatal error: runtime: out of memory");
            exit(GO.into());
        }
        chunk.extend(std::iter::repeat_n(0, size));
        chunks.push(chunk);
        sleep(order.pause);
    }
    tell(order.has_all());
    park()
}

fn burn() {
    let copied = File::open("/dev/zero").and_then(|mut zero| io::copy(&mut zero, &mut io::sink()));
    if let Err(error) = copied {
        tell(format_args!("failed to copy from /dev/zero: {error}"));
        exit(REFUSED);
    }
}
