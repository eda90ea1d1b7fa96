//! Pass rates, flaky cases and changes over many runs.

mod fisher;
mod html;
mod markdown;
mod series;

pub use html::history_page;
pub use markdown::history_table;
pub use series::{History, PastResult, Series, SeriesChange};
