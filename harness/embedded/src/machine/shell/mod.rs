//! A POSIX shell in the style of busybox ash, interpreted one operation at a time.
//!
//! It supports simple commands, lists, `if`, `while`, `for`, subshells, background commands,
//! command substitution, integer arithmetic, redirections and traps. A script that needs
//! more is rejected as a whole before it runs ([`error::ShellError::Unsupported`]), or ends where
//! it needs more.

mod applets;
mod arithmetic;
mod builtins;
mod compile;
mod error;
mod execute;
mod expand;
mod fork;
mod format;
mod interpreter;
mod redirect;
mod resume;
mod script;
mod test_command;
mod traps;
mod word;

pub(super) use applets::is_applet;
pub(super) use error::ShellError;
pub(super) use interpreter::Shell;
