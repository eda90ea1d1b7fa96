//! Staying.

use std::process::exit;
use std::thread::sleep;

use evictlab_stress::{Stay, Then};

use super::signals;

/// Takes nothing, and stays.
pub fn idle(stay: &Stay) {
    signals::handle(stay.on_term);
    stop_after(stay);
    park()
}

/// Waits as long as it is stated, and ends if that is what comes then.
pub fn stop_after(stay: &Stay) {
    match stay.hold {
        None => park(),
        Some(hold) => sleep(hold),
    }
    if stay.then == Then::Exit {
        exit(stay.exit.into());
    }
}

/// Stays until it is stopped.
pub fn park() -> ! {
    loop {
        std::thread::park();
    }
}
