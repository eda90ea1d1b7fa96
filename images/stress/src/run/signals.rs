//! What happens when the program is told to stop.

use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, sleep};

use evictlab_stress::{OnTerm, REFUSED, STAYS};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;
use signal_hook::iterator::Signals;

use super::tell::tell;

/// Has the program do that from now on.
pub fn handle(on_term: OnTerm) {
    let handled = match on_term {
        // In the handler itself: whatever the program is busy with, it ends at once.
        OnTerm::Exit { code, after } if after.is_zero() => {
            [SIGTERM, SIGINT].into_iter().try_for_each(|signal| {
                register_conditional_shutdown(signal, code.into(), Arc::new(AtomicBool::new(true))).map(drop)
            })
        }
        other => {
            Signals::new([SIGTERM, SIGINT]).map(|signals| drop(thread::spawn(move || follow(signals, other))))
        }
    };
    if let Err(error) = handled {
        tell(format_args!("signals cannot be handled: {error}"));
        exit(REFUSED);
    }
}

fn follow(mut signals: Signals, on_term: OnTerm) {
    for _ in signals.forever() {
        match on_term {
            OnTerm::Ignore => tell(STAYS),
            OnTerm::Exit { code, after } => {
                sleep(after);
                exit(code.into());
            }
        }
    }
}
