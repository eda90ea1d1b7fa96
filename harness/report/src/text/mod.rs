//! Formats of texts: command lines, Markdown, terminals, lists, and durations.

mod markdown;
mod phrases;
mod sanitize;
mod shell;
mod truncate;
mod wrap;

pub use evictlab_case::count_noun;
pub(crate) use markdown::inert_markdown;
pub use markdown::{code_block, markdown_cell, markdown_code, markdown_table};
pub(crate) use phrases::duration;
pub use phrases::{first_line, first_of, marked_ranges};
pub use sanitize::{visible, without_workflow_commands};
pub(crate) use shell::STDIN;
pub use shell::{evictlab_command, shell_quote, shell_quote_list};
pub(crate) use truncate::truncate;
pub use wrap::wrap_markdown;
pub(crate) use wrap::{LineBreaks, words};
