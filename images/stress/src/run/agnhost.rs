//! `agnhost stress`.

use std::fs::File;
use std::io;
use std::process::exit;
use std::thread::{self, sleep};
use std::time::Duration;

use evictlab_stress::agnhost::StressOptions;
use evictlab_stress::{EXIT_REFUSED, OnTerm};

use super::lifetime::{handle_signals, park, print_line};

/// The exit code of Go's runtime after a fatal error, or a signal that it does not survive as init.
const GO_EXIT: u8 = 2;

/// Allocates memory in steps and keeps CPUs busy.
pub(crate) fn agnhost_stress(options: &StressOptions) {
    handle_signals(OnTerm::Exit { code: GO_EXIT, delay: Duration::ZERO });
    print_line(options.start_message());
    for _ in 0..options.cpus {
        thread::spawn(burn_cpu);
    }
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let size = usize::try_from(options.step_bytes()).unwrap_or(usize::MAX);
    for _ in 0..options.steps().unwrap_or(u64::MAX) {
        // Zeros like agnhost's, but written: memory that is only reserved does not count.
        let mut chunk = Vec::new();
        if chunk.try_reserve_exact(size).is_err() {
            print_line("fatal error: runtime: out of memory");
            exit(GO_EXIT.into());
        }
        chunk.extend(std::iter::repeat_n(0, size));
        chunks.push(chunk);
        sleep(options.pause);
    }
    print_line(options.done_message());
    park()
}

fn burn_cpu() {
    let copied = File::open("/dev/zero").and_then(|mut zero| io::copy(&mut zero, &mut io::sink()));
    if let Err(error) = copied {
        print_line(format_args!("failed to copy from /dev/zero: {error}"));
        exit(EXIT_REFUSED);
    }
}
