//! The program of our own image. It runs as the first process of a container, where the kernel keeps signals from what does not handle
//! them.

mod run;

use std::process::exit;

use evictlab_stress::{HELP, Order, read};

fn main() {
    match read(std::env::args_os().skip(1)) {
        Ok(Order::Help) => print!("{HELP}"),
        Ok(Order::Take(take)) => run::take(&take),
        Ok(Order::Idle(stay)) => run::idle(&stay),
        Ok(Order::Stress(stress)) => run::stress(&stress),
        Ok(Order::Child) => run::child(),
        Err(wrong) => {
            eprintln!("{}", wrong.to_string().trim_end());
            exit(wrong.code());
        }
    }
}
