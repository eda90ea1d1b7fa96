//! Signals, the time after the last step, and output.

use std::fmt::Display;
use std::io::{Write, stderr};
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, sleep};

use evictlab_stress::{AfterHold, EXIT_REFUSED, Lifetime, OnTerm, TERM_IGNORED};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;
use signal_hook::iterator::Signals;

/// Runs `stress idle`.
pub(crate) fn idle(lifetime: &Lifetime) {
    handle_signals(lifetime.on_term);
    hold(lifetime);
    park()
}

/// Installs the handlers of SIGTERM and SIGINT. Exits if that fails.
pub(super) fn handle_signals(on_term: OnTerm) {
    let installed = match on_term {
        // The handler itself exits, so that a busy program exits at once.
        OnTerm::Exit { code, delay } if delay.is_zero() => {
            [SIGTERM, SIGINT].into_iter().try_for_each(|signal| {
                let always = Arc::new(AtomicBool::new(true));
                register_conditional_shutdown(signal, code.into(), always).map(drop)
            })
        }
        on_term => Signals::new([SIGTERM, SIGINT])
            .map(|signals| drop(thread::spawn(move || wait_for_signals(signals, on_term)))),
    };
    if let Err(error) = installed {
        print_line(format_args!("failed to install signal handlers: {error}"));
        exit(EXIT_REFUSED);
    }
}

fn wait_for_signals(mut signals: Signals, on_term: OnTerm) {
    for _ in signals.forever() {
        match on_term {
            OnTerm::Ignore => print_line(TERM_IGNORED),
            OnTerm::Exit { code, delay } => {
                sleep(delay);
                exit(code.into());
            }
        }
    }
}

/// Holds the resource for the stated time. Returns if it is to be released then.
pub(super) fn hold(lifetime: &Lifetime) {
    match lifetime.hold {
        None => park(),
        Some(hold) => sleep(hold),
    }
    if lifetime.after_hold == AfterHold::Exit {
        exit(lifetime.exit_code.into());
    }
}

/// Runs until a signal ends the program.
pub(super) fn park() -> ! {
    loop {
        thread::park();
    }
}

/// Prints a line on stderr. Ignores errors: the reader may be gone.
pub(super) fn print_line(line: impl Display) {
    let _ = writeln!(stderr(), "{line}");
}
