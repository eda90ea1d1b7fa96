//! Reports on standard output: a live table on a terminal, plain lines elsewhere.

mod live;
mod plain_log;
mod screen;
mod style;
mod summary;
mod table;
mod tally;

pub use live::LiveTerminal;
pub(crate) use plain_log::LogFormatter;
pub use plain_log::PlainLog;
pub use screen::Screen;
pub(crate) use style::colour_markdown;
pub use style::{Line, Style};
pub use summary::Summary;
pub use tally::Tally;
