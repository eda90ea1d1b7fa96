//! The command line, the ramp and the messages of `stress`, the program of evictlab's own image.
//!
//! The binary of this crate consumes resources; the embedded cluster models that, with the same
//! command line:
//!
//! ```
//! use evictlab_stress::{Command, Resource, parse};
//!
//! let command = parse("memory --total 352Mi --step 20Mi".split_whitespace())?;
//! let Command::Consume(options) = command else { panic!("{command:?}") };
//! assert_eq!(options.resource, Resource::Memory);
//! assert_eq!(options.ramp.next_step(340 << 20), Some(12 << 20));
//! # Ok::<(), evictlab_stress::ArgumentError>(())
//! ```

#![deny(unreachable_pub)]

pub mod agnhost;
mod command;
mod messages;
mod parse;
mod ramp;

#[cfg(test)]
mod error_texts;

pub use command::{AfterHold, Command, ConsumeOptions, EXIT_REFUSED, Lifetime, OnRefusal, OnTerm, Resource};
pub use messages::TERM_IGNORED;
pub use parse::{ArgumentError, EXIT_USAGE, HELP, parse};
pub use ramp::Ramp;
