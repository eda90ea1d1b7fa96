//! Rows of the snapshots of error texts, included by the module `error_texts` of each crate.

use std::any::type_name;
use std::error::Error;

/// Returns `Type::Variant`, or `Type` for a struct, and below it the indented text of an error.
pub(crate) fn row<E: Error>(error: E) -> String {
    let path = type_name::<E>();
    let name = path.rsplit("::").next().unwrap_or(path);
    let debug = format!("{error:?}");
    let variant = debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let title = if variant == name { name.to_owned() } else { format!("{name}::{variant}") };
    let text = error.to_string();
    let lines = text.split('\n').map(|line| format!("    {line}").trim_end().to_owned() + "\n");
    format!("{title}\n{}", lines.collect::<String>())
}
