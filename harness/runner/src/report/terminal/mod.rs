//! The run as a person sees it: a live table on a terminal, plain lines elsewhere, and the account of it at the end.

mod frame;
mod live;
mod manners;
mod paint;
mod plain;
mod screen;
mod tally;

pub use live::Live;
pub use manners::Manners;
pub(crate) use paint::{Ink, Line};
pub use plain::Plain;
pub(crate) use screen::Screen;
pub use tally::Tally;
