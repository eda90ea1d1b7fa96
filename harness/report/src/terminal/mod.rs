//! Reports on standard output: a live region on a terminal, plain lines elsewhere.

mod live;
mod plain_log;
mod region;
mod screen;
mod status_line;
mod style;
mod summary;
mod tally;

pub use live::LiveTerminal;
pub(crate) use plain_log::LogFormatter;
pub use plain_log::PlainLog;
pub use screen::Screen;
pub use status_line::StatusLine;
pub use style::{Line, Style, color_markdown};
pub use summary::RunSummary;
pub use tally::Tally;
