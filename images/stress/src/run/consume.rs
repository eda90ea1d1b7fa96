//! Consumes a resource step by step.

use std::io;
use std::process::exit;
use std::thread::sleep;
use std::time::{Duration, Instant};

use evictlab_stress::{AfterHold, ConsumeOptions, EXIT_REFUSED, OnRefusal};

use super::consumer::Consumer;
use super::lifetime::{handle_signals, hold, park, print_line};

/// The shortest interval between two lines about progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Consumes a resource, holds it and releases it or exits.
pub(crate) fn consume(options: &ConsumeOptions) {
    handle_signals(options.lifetime.on_term);
    sleep(options.ramp.delay);
    let start = Instant::now();
    let print_refusal = |consumed, error: io::Error| {
        print_line(options.refused_message(consumed, start.elapsed(), &error.to_string()));
    };
    let mut consumed = 0;
    let mut consumer = Consumer::new(options).unwrap_or_else(|error| {
        print_refusal(consumed, error);
        exit(EXIT_REFUSED);
    });
    match run_steps(options, &mut consumer, start, &mut consumed) {
        Ok(()) => print_line(options.done_message(consumed, start.elapsed())),
        Err(error) => {
            print_refusal(consumed, error);
            if options.on_refusal == OnRefusal::Exit {
                exit(EXIT_REFUSED);
            }
        }
    }
    hold(&options.lifetime);
    if options.lifetime.after_hold == AfterHold::Release {
        match consumer.release() {
            Ok(()) => print_line(options.released_message(consumed, start.elapsed())),
            Err(error) => {
                print_line(format_args!("{}: failed to release: {error}", options.resource.command()));
                exit(EXIT_REFUSED);
            }
        }
    }
    park()
}

fn run_steps(
    options: &ConsumeOptions,
    consumer: &mut Consumer,
    start: Instant,
    consumed: &mut u64,
) -> io::Result<()> {
    let mut printed_at = start;
    while let Some(step) = options.ramp.next_step(*consumed) {
        consumer.consume(step, consumed)?;
        if options.ramp.is_complete(*consumed) {
            break;
        }
        if printed_at.elapsed() >= PROGRESS_INTERVAL {
            printed_at = Instant::now();
            print_line(options.progress_message(*consumed, start.elapsed()));
        }
        sleep(options.ramp.pause);
    }
    Ok(())
}
