//! What the program of our own image is told and what it says: its command line, its pace and its lines. Doing it is the binary's; the
//! embedded cluster does it in a model.

pub mod agnhost;
pub mod duration;
mod order;
mod pace;
mod read;
mod say;

pub use order::{OnRefusal, OnTerm, Order, Stay, Take, Then, What};
pub use pace::Pace;
pub use read::{HELP, Wrong, read};
pub use say::STAYS;

/// The exit code of a command line that cannot be used.
pub const WRONG: i32 = 2;
/// The exit code of a program that the system gave no more.
pub const REFUSED: i32 = 3;
