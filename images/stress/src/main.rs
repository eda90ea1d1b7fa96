//! `stress`, the program of evictlab's own image.
//!
//! It runs as the init of a container's PID namespace, which gets only signals that it handles.

#![deny(unreachable_pub)]

mod run;

use std::process::exit;

use evictlab_stress::{Command, HELP, parse};

fn main() {
    match parse(std::env::args_os().skip(1)) {
        Ok(Command::Help) => print!("{HELP}"),
        Ok(Command::Consume(options)) => run::consume(&options),
        Ok(Command::Idle(lifetime)) => run::idle(&lifetime),
        Ok(Command::AgnhostStress(options)) => run::agnhost_stress(&options),
        Ok(Command::Child) => run::child(),
        Err(error) => {
            eprintln!("{}", error.to_string().trim_end());
            exit(error.exit_code());
        }
    }
}
