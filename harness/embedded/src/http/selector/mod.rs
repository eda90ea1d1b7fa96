//! Label and field selectors of requests.

mod error;
mod field_selector;
mod label_selector;
mod object_selector;

pub(crate) use object_selector::ObjectSelector;
