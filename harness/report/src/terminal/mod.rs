//! Reports on standard output: a live table on a terminal, plain lines elsewhere.

mod caps;
mod live;
mod plain_log;
mod screen;
mod style;
mod table;
mod tally;

pub use caps::TerminalCaps;
pub use live::LiveTerminal;
pub use plain_log::PlainLog;
pub use screen::Screen;
pub use style::{Line, Style};
pub use tally::Tally;
